/* Gets from a problem and stats to a loaded kernel: choose, emit, compile or load. A missing database, compiler or
 * cache never makes the call fail, as long as the built-in kernel serves the problem. */
#include "runtime/decide.h"

#include <math.h>

#include "core/base/memory.h"
#include "core/csr/stats.h"
#include "core/problem/cell.h"
#include "core/problem/spec_key.h"
#include "runtime/load.h"

/* The argument of explain(). */
struct asked {
  wlm_context *context;
  const wlmi_spec *spec;
};

/* Whether only kernels of the archive can be loaded. */
static int is_without_compiler(const wlm_context *context) {
  return context->archives.count && !*context->device->info.compiler;
}

static int can_load(wlm_context *context, const char *variant, const wlmi_spec *spec) {
  wlmi_variant value;
  return !is_without_compiler(context) ||
         wlmi_variant_parse(wlmi_generator_families(context->generator), variant, &value) != WLM_OK ||
         wlmi_context_has(context, &(wlmi_wanted){.spec = spec, .variant = value});
}

static void explain(void *user, const char *variant, int may_prepare, wlmi_text *reason) {
  const struct asked *asked = user;
  wlm_status status = wlmi_generator_refusal(asked->context->generator, variant, asked->spec,
                                             &asked->context->device->info.limits, reason);
  if (status != WLM_OK)
    wlmi_text_puts(reason, wlm_error_detail());
  else if (!reason->size && !can_load(asked->context, variant, asked->spec))
    wlmi_text_puts(reason, "is not in the kernel archive, and there is no compiler");
  else if (!reason->size && !may_prepare)
    wlmi_text_puts(reason, "must be prepared, which one call does not pay");
}

/* Without a compiler the context chooses among the candidates that the archive has: keeps these of the list, in *kept.
 */
static wlm_status keep_archived(wlm_context *context, const wlmi_spec *spec, wlmi_candidate_list *list,
                                wlmi_candidate **kept) {
  int64_t count = 0;
  WLM_CHECK(wlmi_alloc_array(list->count, sizeof **kept, "candidates", (void **)kept));
  for (int64_t i = 0; i < list->count; i++)
    if (wlmi_context_has(context, &(wlmi_wanted){.spec = spec, .variant = list->candidates[i].value}))
      (*kept)[count++] = list->candidates[i];
  if (count < list->count && !atomic_flag_test_and_set(&context->told_archived))
    wlmi_log(WLM_LOG_WARNING,
             "there is no compiler: kernels are chosen among those of the kernel archive, and others may be faster");
  list->candidates = *kept;
  list->count = count;
  return WLM_OK;
}

wlm_status wlmi_context_select(wlm_context *context, const wlmi_snapshot *snapshot, const wlm_stats *stats,
                               wlmi_use use, const wlmi_spec *spec, wlmi_decision *decision) {
  struct asked asked = {context, spec};
  const wlmi_limits *limits = &context->device->info.limits;
  const wlmi_candidate_list *all = NULL; /* the generator's */
  wlmi_candidate_list list = {.families = wlmi_generator_families(context->generator)};
  wlmi_candidate *kept = NULL;
  wlmi_snapshot *own = NULL;
  char problem[WLMI_SPEC_KEY];
  if (spec->problem.operation == WLM_ARGMAX_GRADIENT) return wlmi_select_only(spec, decision);
  wlm_status status = wlmi_generator_describe(context->generator, spec, limits, &all);
  if (status == WLM_OK) list = *all;
  if (status == WLM_OK && is_without_compiler(context)) status = keep_archived(context, spec, &list, &kept);
  if (status == WLM_ERR_OUT_OF_MEMORY || status == WLM_ERR_UNSUPPORTED) goto done;
  if (status != WLM_OK) wlmi_log(WLM_LOG_WARNING, "no family is used: %s", wlm_error_detail());
  wlmi_spec_key(spec, problem);
  const wlmi_variant_set set = {.families = list.families, .list = &list, .explain = explain, .user = &asked};
  const wlmi_request request = {stats, use, problem, spec, limits, &set};
  if (!snapshot) snapshot = own = wlmi_context_snapshot(context);
  status = wlmi_select(snapshot, &request, decision);
done:
  wlmi_candidates_drop(all);
  wlmi_free(kept);
  wlmi_snapshot_release(own);
  return status;
}

const double wlmi_near_enough = 1.1, wlmi_near_enough_for_plans = 1.05;

static int has_entry(wlm_context *context, const wlmi_spec *spec, const wlmi_decision *d, int i) {
  const wlmi_wanted wanted = wlmi_wanted_of(spec, d, i);
  return wlmi_context_has(context, &wanted);
}

/* The first entry behind the choice whose kernels are loaded; -1 if there is none, or if it is expected to be too slow.
 */
static int loaded_entry(wlm_context *context, const wlmi_spec *spec, const wlmi_decision *d, double most) {
  for (int i = 1; i < d->entry_count; i++) {
    const wlmi_entry *entry = &d->entries[i];
    const int near = !isfinite(most) || (d->entries[0].seconds > 0 && entry->seconds > 0 &&
                                         entry->seconds <= most * d->entries[0].seconds);
    if (near && has_entry(context, spec, d, i)) return i;
  }
  return -1;
}

/* The plan with the kernel that was compiled in the background; NULL until then. A kernel that walks A itself cannot
 * replace one that is bound to A^T, nor the other way round. */
static const wlm_plan *upgraded(const wlm_plan *plan) {
  const wlmi_decided *better = atomic_load(&plan->upgrade->result);
  const int walks_a = plan->shape.loaded.program.walks_a;
  return better && better->plan.shape.loaded.program.walks_a == walks_a ? &better->plan : NULL;
}

/* How many times the expected time of the choice a kernel that is loaded or archived may take to run in its place; 0 =
 * the choice is compiled, as in a plan whose matrix was tuned, because a plan is used often, and in a deterministic
 * one, whose bits must not depend on the kernels that happen to be loaded. */
static double most_of_choice(const wlm_context *context, const wlmi_decide_request *request, const wlmi_spec *spec,
                             const wlmi_decision *decision) {
  if (request->variant) return 0;
  if (context->background.wanted && !spec->problem.policy.deterministic) return (double)INFINITY;
  if (request->use == WLMI_USE_ONE_CALL) return wlmi_near_enough;
  const int is_predicted = decision->step == WLMI_STEP_MODEL && !spec->problem.policy.deterministic;
  return context->archives.count && is_predicted ? wlmi_near_enough_for_plans : 0;
}

static wlmi_decision decision_named(const wlm_context *context, const wlmi_spec *spec, const wlmi_variant *variant) {
  wlmi_decision decision = {.step = WLMI_STEP_NAMED,
                            .families = wlmi_generator_families(context->generator),
                            .distance = (double)NAN,
                            .calls = spec->problem.policy.expected_calls,
                            .entry_count = 1,
                            .entries[0] = {*variant, 0, WLMI_STEP_NAMED, "named by the caller"}};
  wlmi_entry_print(&decision, 0, decision.variant);
  return decision;
}

/* Sets *prepares to whether the chosen kernel must be prepared. */
static wlm_status see_preparing(wlm_context *context, const wlmi_spec *spec, const wlmi_variant *chosen,
                                int *prepares) {
  const wlmi_candidate_list *list;
  *prepares = 0;
  if (spec->problem.operation == WLM_ARGMAX_GRADIENT) return WLM_OK;
  WLM_CHECK(wlmi_generator_describe(context->generator, spec, &context->device->info.limits, &list));
  const wlmi_candidate *candidate = wlmi_candidate_find(list, chosen);
  *prepares = !candidate || candidate->prepares;
  wlmi_candidates_drop(list);
  return WLM_OK;
}

/* Chooses among the kernels that need no preparing, as for one call. */
static wlm_status choose_unprepared(wlm_context *context, const wlmi_snapshot *snapshot,
                                    const wlmi_decide_request *request, const wlm_stats *stats, const wlmi_spec *spec,
                                    wlmi_decision *decision) {
  wlmi_spec once = *spec;
  once.problem.policy.expected_calls = 1;
  const wlm_status status = wlmi_context_select(context, snapshot, stats, request->use, &once, decision);
  if (status != WLM_OK && status != WLM_ERR_NOT_FOUND) return status; /* not found: the built-in kernel is left */
  decision->calls = spec->problem.policy.expected_calls;
  decision->unprepared = 0; /* not because of the calls */
  return WLM_OK;
}

/* Sets *start to the entry to load: normally 0, the choice. If compiling is to be avoided and the choice is not loaded,
 * it is the first later entry that is loaded and near enough in time. The background thread cannot prepare a plan, so
 * what it compiles is chosen among the kernels that need no preparing. */
static wlm_status avoid_compiling(wlm_context *context, const wlmi_snapshot *snapshot,
                                  const wlmi_decide_request *request, const wlm_stats *stats, const wlmi_spec *spec,
                                  wlmi_decided *decided, int *start) {
  wlm_plan *plan = &decided->plan;
  wlmi_decision *decision = &plan->reason.decision;
  const double most = most_of_choice(context, request, spec, decision);
  const int background = isinf(most);
  *start = 0;
  if (most == 0) return WLM_OK;
  if (has_entry(context, spec, decision, 0)) return WLM_OK;
  int entry = loaded_entry(context, spec, decision, most);
  if (entry < 0) return WLM_OK;
  if (background) {
    int prepares;
    WLM_CHECK(see_preparing(context, spec, &decision->entries[0].variant, &prepares));
    if (prepares) {
      WLM_CHECK(choose_unprepared(context, snapshot, request, stats, spec, decision));
      if (has_entry(context, spec, decision, 0)) return WLM_OK;
      entry = loaded_entry(context, spec, decision, most);
      if (entry < 0) return WLM_OK;
    }
    WLM_CHECK(wlmi_background_add(context, spec, decision, &decided->key, snapshot->generation, &plan->upgrade));
    plan->upgraded = upgraded;
  }
  *start = entry;
  return WLM_OK;
}

static wlm_status decide(wlm_context *context, const wlmi_snapshot *snapshot, const wlmi_decide_request *request,
                         const wlmi_decision_slot *slot, wlmi_decided **out) {
  wlmi_spec spec;
  wlm_stats centre;
  const wlm_stats *stats = request->stats;
  wlm_status status;
  int start = 0;
  wlmi_decided *decided = wlmi_decided_new(&slot->key);
  if (!decided) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "decision");
  if (!slot->exact && !request->variant) {
    wlmi_cell_centre_of(stats, request->use != WLMI_USE_MEASURED, &centre);
    stats = &centre;
  }
  WLM_TRY(wlmi_spec_make(request->problem, request->types, &spec));
  /* Without a compiler there are only kernels of single products, launched one by one, and of row-major arrays. */
  if (!*context->device->info.compiler) spec.is_batched = spec.has_steps = 0;
  wlmi_spec_key(&spec, decided->plan.reason.problem_key);
  if (request->variant)
    decided->plan.reason.decision = decision_named(context, &spec, request->variant);
  else
    status = wlmi_context_select(context, snapshot, stats, request->use, &spec, &decided->plan.reason.decision);
  if (status == WLM_ERR_NOT_FOUND && request->use == WLMI_USE_SCATTER) {
    decided->refused = 1;
    *out = decided;
    return WLM_OK;
  }
  if (status != WLM_OK && status != WLM_ERR_NOT_FOUND) goto done;
  const wlm_status chosen = status;
  if (chosen == WLM_OK) WLM_TRY(avoid_compiling(context, snapshot, request, stats, &spec, decided, &start));
  WLM_TRY(wlmi_load_plan(context, &spec, chosen, start, &decided->plan));
  *out = decided;
done:
  if (status != WLM_OK) wlmi_decided_drop(decided);
  return status;
}

/* Compares the times of both ways as measured on an H200 (docs/architecture.md has their source), in microseconds:
 * scattering takes 3.7e-6 edges n; building A^T takes 36 + 1.5e-4 nnz and the product behind it 1.4e-6 edges n. Below
 * 66 columns scattering is always faster. For a sampled matrix `edges` are those that it may keep; this was not
 * measured. */
int wlmi_scatter_pays(const wlm_problem *problem, const wlm_csr *csr) {
  const double nnz = (double)csr->nnz, most = (double)csr->rows * (double)problem->sampling.width;
  const double edges = problem->sampling.sample == WLM_SAMPLE_NONE || nnz < most ? nnz : most;
  const double terms = edges * (double)problem->n * (double)problem->batch;
  return !problem->policy.deterministic && !problem->want_argmax && problem->operation == WLM_SPMM &&
         problem->reduce == WLM_SUM && 3.7e-6 * terms <= 36 + 1.5e-4 * nnz + 1.4e-6 * terms;
}

void wlmi_stats_of_batch(const wlm_problem *problem, wlm_stats *stats) {
  if (problem->batch > 1) wlmi_stats_repeat(stats, problem->batch);
}

wlm_status wlmi_decide(wlm_context *context, const wlmi_decide_request *request, wlmi_decided **out) {
  const wlmi_hash id = wlmi_problem_id(request->problem, request->types);
  wlmi_decision_slot slot;
  wlm_status status = WLM_OK;
  *out = NULL;
  wlmi_stats_of_batch(request->problem, request->stats);
  wlmi_decided *decided =
      wlmi_decisions_take(&context->decisions, &id, request->problem->n, request->use, request->stats, &slot);
  if (!decided || request->variant) {
    wlmi_decided_drop(decided);
    wlmi_snapshot *snapshot = wlmi_context_snapshot(context);
    status = decide(context, snapshot, request, &slot, &decided);
    if (status == WLM_OK && !request->variant) wlmi_decisions_add(&context->decisions, decided, snapshot->generation);
    wlmi_snapshot_release(snapshot);
  }
  if (status == WLM_OK && !decided->refused) *out = decided;
  if (status != WLM_OK || *out) return status;
  wlmi_decided_drop(decided);
  return wlmi_fail(WLM_ERR_NOT_FOUND, "no family scatters this product");
}

wlm_status wlmi_context_choose(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                               wlmi_decision *decision) {
  wlmi_matrix_view view;
  wlmi_spec spec;
  WLM_CHECK(wlmi_context_spec(context, matrix, problem, &spec));
  WLM_CHECK(wlmi_matrix_see(matrix, problem, &view));
  if (!problem->transpose) WLM_CHECK(wlmi_matrix_fingerprint(matrix)); /* A^T has one */
  return wlmi_context_select(context, NULL, view.stats, WLMI_USE_MEASURED, &spec, decision);
}
