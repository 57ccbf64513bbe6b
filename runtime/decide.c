/* From a problem and stats to a kernel that is loaded: choose, emit, compile or load. Whatever is missing on the way -
 * database, compiler, cache - costs a step, never the call, as long as any kernel that the library carries can serve
 * the problem. */
#include "runtime/decide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cell.h"
#include "common/log.h"
#include "common/memory.h"
#include "csr/stats.h"

typedef struct candidate_check {
  wlm_context *context;
  const wlmi_spec *spec;
  wlmi_candidate *candidates; /* NULL until they are asked for */
} candidate_check;

/* Asks the family itself whether it prepares: what was stored may be older than the template. */
static int usable(void *user, const char *variant, int may_prepare) {
  const candidate_check *check = user;
  wlmi_generator *generator = check->context->generator;
  const wlmi_limits *limits = &check->context->device->info.limits;
  wlmi_text reason = {0};
  int prepares = 0;
  wlm_status status = wlmi_generator_refusal(generator, variant, check->spec, limits, &reason);
  int yes = status == WLM_OK && reason.size == 0;
  wlmi_text_release(&reason);
  if (!yes || may_prepare) return yes;
  return wlmi_generator_prepares(generator, variant, check->spec, limits, &prepares) == WLM_OK && !prepares;
}

static void why(void *user, const char *variant, int may_prepare, wlmi_text *reason) {
  const candidate_check *check = user;
  wlm_status status = wlmi_generator_refusal(check->context->generator, variant, check->spec,
                                             &check->context->device->info.limits, reason);
  if (status != WLM_OK)
    wlmi_text_puts(reason, wlm_error_detail());
  else if (!reason->size && !may_prepare)
    wlmi_text_puts(reason, "must be prepared, which one call does not pay");
}

static int64_t describe(void *user, const wlmi_candidate **candidates) {
  candidate_check *check = user;
  int64_t count = 0;
  wlmi_free(check->candidates);
  if (wlmi_generator_describe(check->context->generator, check->spec, &check->context->device->info.limits,
                              &check->candidates, &count) != WLM_OK)
    wlmi_log(WLM_LOG_WARNING, "no model is asked: %s", wlm_error_detail());
  *candidates = check->candidates;
  return count;
}

static wlm_status choose(wlm_context *context, const wlm_stats *stats, wlm_plan *plan, const wlmi_spec *spec,
                         const char *variant) {
  if (variant) {
    plan->record.decision =
        (wlmi_decision){.step = WLM_STEP_NAMED, .distance = (double)NAN, .calls = spec->problem.policy.expected_calls};
    snprintf(plan->record.decision.variant, sizeof plan->record.decision.variant, "%s", variant);
    return WLM_OK;
  }
  candidate_check check = {context, spec, NULL};
  const wlmi_judge judge = {usable, why, describe, &check};
  const wlmi_limits *limits = &context->device->info.limits;
  pthread_rwlock_rdlock(&context->snapshot_lock);
  wlm_status status =
      wlmi_choose(&context->snapshot, stats, plan->record.problem_key, spec, limits, &judge, &plan->record.decision);
  pthread_rwlock_unlock(&context->snapshot_lock);
  wlmi_free(check.candidates);
  return status;
}

/* Columns that a variant covers at once: as few as cover all of B, or as many as there are. */
static int64_t misfit(const wlmi_candidate *c, int64_t n) {
  const int64_t width = c->pass.columns_per_block ? c->pass.columns_per_block : n;
  return width >= n ? width - n : (n - width) * 4;
}

/* The share of non-zeros that a group of lanes walks: short ones fill the device where the matrix is small. */
static int64_t share_misfit(const wlmi_candidate *c, const wlm_stats *stats, int processors) {
  const int64_t wanted = stats->nnz / (64 * (int64_t)processors) + 1;
  return llabs(c->pass.units_per_block - wanted);
}

/* A kernel that scatters a transposed product from A itself. WLM_ERR_NOT_FOUND where no family can. */
static wlm_status choose_scatter(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec,
                                 wlmi_decision *decision) {
  const wlmi_limits *limits = &context->device->info.limits;
  wlmi_candidate *candidates = NULL;
  const wlmi_candidate *best = NULL;
  int64_t count = 0;
  const wlm_status status = wlmi_generator_describe(context->generator, spec, limits, &candidates, &count);
  for (int64_t i = 0; status == WLM_OK && i < count; i++) {
    const wlmi_candidate *c = &candidates[i];
    if (!c->walks_a) continue;
    const int64_t n = spec->problem.n, difference = best ? misfit(c, n) - misfit(best, n) : -1;
    if (difference < 0 ||
        (difference == 0 && share_misfit(c, stats, limits->processors) < share_misfit(best, stats, limits->processors)))
      best = c;
  }
  *decision = (wlmi_decision){.step = WLM_STEP_RULE,
                              .rule = "a matrix that is used once is scattered, not transposed",
                              .distance = (double)NAN,
                              .calls = spec->problem.policy.expected_calls};
  if (best) snprintf(decision->variant, sizeof decision->variant, "%s", best->variant);
  wlmi_free(candidates);
  if (status != WLM_OK || best) return status;
  return wlmi_fail(WLM_ERR_NOT_FOUND, "no family scatters this product");
}

/* Loads the plan's chosen variant; where that cannot be had the next of the list, and at last what the library carries.
 * A variant that the caller named is never replaced. */
static wlm_status load(wlm_context *context, wlm_plan *plan, const wlmi_spec *spec, wlmi_program *program,
                       void *kernels[WLM_MAX_PASSES]) {
  wlmi_decision *decision = &plan->record.decision;
  wlm_status status = wlmi_context_load_variant(context, decision->variant, spec, program, kernels);
  if (status == WLM_OK || decision->step == WLM_STEP_NAMED || status == WLM_ERR_OUT_OF_MEMORY) return status;
  char *reason = wlmi_strdup(wlm_error_detail());
  for (int i = 0; i < decision->runner_count && status != WLM_OK; i++) {
    const char *next = decision->runners[i].variant;
    if (!strcmp(next, decision->variant) || decision->runners[i].prepare > 0) continue;
    wlmi_log(WLM_LOG_WARNING, "%s does not load, trying %s: %s", decision->variant, next, wlm_error_detail());
    status = wlmi_context_load_variant(context, next, spec, program, kernels);
    if (status == WLM_ERR_NO_COMPILER) break;
  }
  if (status != WLM_OK) {
    wlmi_log(WLM_LOG_WARNING, "falling back to the built-in kernel: %s", reason ? reason : "");
    if (wlmi_context_load_builtin(context, spec, program, kernels) == WLM_OK) {
      *decision = (wlmi_decision){
          .step = WLM_STEP_BUILTIN, .distance = (double)NAN, .calls = spec->problem.policy.expected_calls};
      status = WLM_OK;
    } else if (reason) {
      wlmi_fail(status, "%s", reason);
    }
  }
  wlmi_free(reason);
  return status;
}

/* A plan with argmax indices is usually for training, so its backward kernels are compiled with it, once for all
 * variants. */
static wlm_status add_backward(wlm_context *context, const wlmi_spec *spec, wlm_plan *plan) {
  wlmi_program program;
  void *kernels[WLM_MAX_PASSES] = {0};
  if (!spec->problem.want_argmax) return WLM_OK;
  const wlm_status status = wlmi_context_load_backward(context, spec, &program, kernels);
  if (status == WLM_OK) wlmi_plan_set_backward(plan, &program, kernels, spec);
  return status;
}

static wlm_status fill(wlm_context *context, const wlmi_spec *spec, wlm_plan *plan) {
  wlmi_program program = {0};
  void *kernels[WLM_MAX_PASSES] = {0};
  wlm_status status;
  WLM_TRY(load(context, plan, spec, &program, kernels));
  snprintf(plan->record.decision.variant, sizeof plan->record.decision.variant, "%s", program.variant);
  WLM_TRY(wlmi_plan_set_program(plan, context->device, &program, kernels, spec));
  WLM_TRY(add_backward(context, spec, plan));
done:
  wlmi_program_release(&program);
  return status;
}

static wlmi_decided *new_decided(const wlmi_hash *key) {
  wlmi_decided *decided = wlmi_alloc_zero(1, sizeof *decided);
  if (!decided) return NULL;
  atomic_init(&decided->users, 1);
  decided->key = *key;
  return decided;
}

wlm_status wlmi_decide_load(wlm_context *context, const wlm_problem *problem, const wlm_csr *types,
                            const wlmi_decision *decision, const wlmi_hash *key, wlmi_decided **out) {
  wlmi_spec spec;
  wlm_status status;
  wlmi_decided *decided = new_decided(key);
  *out = NULL;
  if (!decided) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "decision");
  decided->plan.record.decision = *decision;
  WLM_TRY(wlmi_spec_make(problem, types, &spec));
  wlmi_spec_key(&spec, decided->plan.record.problem_key);
  WLM_TRY(fill(context, &spec, &decided->plan));
  *out = decided;
done:
  if (status != WLM_OK) wlmi_decided_drop(decided);
  return status;
}

/* How much slower than the best a loaded kernel may be expected to be, and yet run rather than have one compiled. */
static const double near_enough = 1.1;

/* The best of the list whose kernels are loaded; NULL where none is, or where it is not good enough. */
static const wlmi_runner_up *loaded_one(wlm_context *context, const wlmi_spec *spec, const wlmi_decision *decision,
                                        double most) {
  for (int i = 0; i < decision->runner_count; i++) {
    const wlmi_runner_up *r = &decision->runners[i];
    if (r->prepare == 0 && r->relative <= most && wlmi_context_has_variant(context, r->variant, spec)) return r;
  }
  return NULL;
}

static wlm_status queue(wlm_context *context, const wlmi_decide_request *request, const wlmi_decided *decided,
                        uint64_t generation, wlmi_upgrade **upgrade) {
  return wlmi_background_add(context, request->problem, request->types, &decided->plan.record.decision, &decided->key,
                             generation, upgrade);
}

/* Replaces a choice whose kernel is not loaded yet by one that runs at once, where the request or the context wants
 * that. What is compiled meanwhile must need no preparing, which only the caller could do. */
static wlm_status avoid_compiling(wlm_context *context, const wlmi_decide_request *request, const wlmi_spec *spec,
                                  uint64_t generation, wlmi_decided *decided) {
  wlm_plan *plan = &decided->plan;
  wlmi_decision *decision = &plan->record.decision;
  const int background = context->background.wanted && !spec->problem.policy.deterministic;
  if (request->variant || (!background && request->use != WLM_CELL_ONE_CALL)) return WLM_OK;
  if (wlmi_context_has_variant(context, decision->variant, spec)) return WLM_OK;
  const wlmi_runner_up *loaded = loaded_one(context, spec, decision, background ? (double)INFINITY : near_enough);
  int prepares = 0;
  if (background && (wlmi_generator_prepares(context->generator, decision->variant, spec, &context->device->info.limits,
                                             &prepares) != WLM_OK ||
                     prepares))
    return WLM_OK;
  if (background && !loaded && !wlmi_context_has_builtin(context, spec)) return WLM_OK;
  if (background) {
    const wlm_status status = queue(context, request, decided, generation, &plan->upgrade);
    if (status != WLM_OK) return status;
    plan->upgraded = wlmi_plan_upgraded;
  }
  if (loaded)
    snprintf(decision->variant, sizeof decision->variant, "%s", loaded->variant);
  else if (background)
    *decision->variant = 0; /* the built-in kernel */
  return WLM_OK;
}

const wlm_plan *wlmi_plan_upgraded(const wlm_plan *plan) {
  const wlmi_decided *better = atomic_load(&plan->upgrade->result);
  return better ? &better->plan : NULL;
}

static wlm_status decide(wlm_context *context, const wlmi_decide_request *request, wlmi_cell_use use,
                         const wlmi_hash *key, uint64_t generation, wlmi_decided **out) {
  wlmi_spec spec;
  wlm_stats centre;
  const wlm_stats *stats = request->stats;
  wlm_status status;
  wlmi_decided *decided = new_decided(key);
  if (!decided) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "decision");
  if (use != WLM_CELL_EXACT && !request->variant) {
    wlmi_cell cell;
    wlmi_cell_of(stats, use != WLM_CELL_MEASURED, &cell);
    wlmi_cell_centre(&cell, &centre);
    stats = &centre;
  }
  WLM_TRY(wlmi_spec_make(request->problem, request->types, &spec));
  wlmi_spec_key(&spec, decided->plan.record.problem_key);
  if (use == WLM_CELL_SCATTER)
    WLM_TRY(choose_scatter(context, stats, &spec, &decided->plan.record.decision));
  else
    WLM_TRY(choose(context, stats, &decided->plan, &spec, request->variant));
  WLM_TRY(avoid_compiling(context, request, &spec, generation, decided));
  WLM_TRY(fill(context, &spec, &decided->plan));
  *out = decided;
done:
  if (status != WLM_OK) wlmi_decided_drop(decided);
  return status;
}

/* Scattering reads and adds every element of C once a non-zero; building A^T costs a few launches and passes over the
 * pattern, and then rows of C are written once. Where the two cross was measured on an H200 (docs/architecture.md). */
int wlmi_scatter_pays(const wlm_problem *problem, const wlm_csr *csr) {
  static const double most_terms = 1e18;
  return !problem->policy.deterministic && !problem->want_argmax && problem->sampling.sample == WLM_SAMPLE_NONE &&
         problem->operation == WLM_SPMM && problem->reduce == WLM_SUM &&
         (double)csr->nnz * (double)problem->n <= most_terms;
}

wlm_status wlmi_decide(wlm_context *context, const wlmi_decide_request *request, wlmi_decided **out) {
  const wlm_stats *s = request->stats;
  const int exact = request->use != WLM_CELL_SCATTER && wlmi_stats_has_fingerprint(s) &&
                    wlmi_decisions_know_size(&context->decisions, s->rows, s->nnz, request->problem->n, NULL);
  const wlmi_cell_use use = exact ? WLM_CELL_EXACT : request->use;
  const uint64_t generation = wlmi_decisions_generation(&context->decisions);
  const wlmi_hash id = wlmi_problem_id(request->problem, request->types);
  const wlmi_hash key = wlmi_decision_key(&id, s, use);
  *out = request->variant ? NULL : wlmi_decisions_take(&context->decisions, &key);
  if (*out) return WLM_OK;
  const wlm_status status = decide(context, request, use, &key, generation, out);
  if (status == WLM_OK && !request->variant) wlmi_decisions_add(&context->decisions, *out, generation);
  return status;
}

wlm_status wlmi_context_choose(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                               wlmi_decision *decision) {
  wlmi_spec spec;
  wlm_plan plan = {0};
  wlm_status status = wlmi_matrix_fingerprint(matrix);
  if (status == WLM_OK) status = wlmi_context_spec(context, matrix, problem, &spec);
  if (status != WLM_OK) return status;
  wlmi_spec_key(&spec, plan.record.problem_key);
  status = choose(context, wlm_matrix_stats(matrix), &plan, &spec, NULL);
  *decision = plan.record.decision;
  return status;
}
