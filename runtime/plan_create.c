/* From a problem to a plan: choose, emit, compile or load, and compute every launch. Whatever is missing
 * on the way - database, compiler, cache - costs a step, never the call, as long as any kernel that the
 * library carries can serve the problem. */
#include <math.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "runtime/context_state.h"

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

static wlm_status choose(wlm_context *context, wlm_plan *plan, const wlmi_spec *spec, const char *variant) {
  if (variant) {
    plan->decision =
        (wlmi_decision){.step = WLM_STEP_NAMED, .distance = (double)NAN, .calls = spec->problem.expected_calls};
    snprintf(plan->decision.variant, sizeof plan->decision.variant, "%s", variant);
    return WLM_OK;
  }
  candidate_check check = {context, spec, NULL};
  const wlmi_judge judge = {usable, why, describe, &check};
  const wlmi_limits *limits = &context->device->info.limits;
  pthread_rwlock_rdlock(&context->snapshot_lock);
  wlm_status status =
      wlmi_choose(&context->snapshot, &plan->stats, plan->problem_key, spec, limits, &judge, &plan->decision);
  pthread_rwlock_unlock(&context->snapshot_lock);
  wlmi_free(check.candidates);
  return status;
}

/* The chosen program, or what the library carries where the chosen one cannot be had. A variant that the
 * caller named is never replaced. */
static wlm_status load(wlm_context *context, wlm_plan *plan, const wlmi_spec *spec, wlmi_program *program,
                       void *kernels[WLM_MAX_PASSES]) {
  wlm_status status =
      wlmi_generator_emit(context->generator, plan->decision.variant, spec, &context->device->info.limits, program);
  if (status == WLM_OK) status = wlmi_context_load(context, program, kernels);
  if (status == WLM_OK || plan->decision.step == WLM_STEP_NAMED || status == WLM_ERR_OUT_OF_MEMORY) return status;
  char *reason = wlmi_strdup(wlm_error_detail());
  wlmi_log(WLM_LOG_WARNING, "falling back to the built-in kernel: %s", reason ? reason : "");
  wlmi_program_release(program);
  if (wlmi_context_load_builtin(context, spec, program, kernels) == WLM_OK) {
    plan->decision =
        (wlmi_decision){.step = WLM_STEP_BUILTIN, .distance = (double)NAN, .calls = spec->problem.expected_calls};
    snprintf(plan->decision.variant, sizeof plan->decision.variant, "%s", program->variant);
    status = WLM_OK;
  } else if (reason) {
    wlmi_fail(status, "%s", reason);
  }
  wlmi_free(reason);
  return status;
}

/* Whoever wants positions is going to train: the gradients' kernels are compiled with the plan, not with their first
 * call, and once for all variants. */
static wlm_status add_backward(wlm_context *context, const wlm_matrix *matrix, const wlmi_spec *spec, wlm_plan *plan) {
  wlmi_program program;
  void *kernels[WLM_MAX_PASSES] = {0};
  if (!spec->problem.want_arg) return WLM_OK;
  wlm_status status = wlmi_generator_arg_backward(context->generator, spec, &context->device->info.limits, &program);
  if (status == WLM_OK) status = wlmi_context_load(context, &program, kernels);
  if (status == WLM_OK) status = wlmi_plan_fill_backward(plan, &program, kernels, &matrix->csr, spec);
  wlmi_program_release(&program);
  return status;
}

/* op(A), or A itself for kernels that walk it: then A^T is not made. */
static wlm_status see(const wlm_matrix *matrix, const wlmi_spec *spec, int walks_a, wlmi_matrix_view *view) {
  wlm_problem problem = spec->problem;
  problem.transpose = problem.transpose && !walks_a;
  return wlmi_matrix_see(matrix, &problem, view);
}

static void describe_matrix(wlm_plan *plan, const wlmi_matrix_view *view) {
  plan->stats = *view->stats;
  plan->transpose_seconds = view->made_seconds;
  plan->transpose_bytes = view->made_bytes;
}

wlm_status wlm_plan_create_variant(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                   const char *variant, wlm_plan **out) {
  wlmi_spec spec;
  wlmi_matrix_view view;
  wlmi_program program = {0};
  void *kernels[WLM_MAX_PASSES] = {0};
  wlm_status status;
  *out = NULL;
  wlm_plan *plan = wlmi_alloc_zero(1, sizeof *plan);
  if (!plan) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "plan");
  WLM_TRY(wlmi_context_spec(context, matrix, problem, &spec));
  if (!variant) { /* the stats of op(A) decide */
    WLM_TRY(see(matrix, &spec, 0, &view));
    describe_matrix(plan, &view);
  }
  wlmi_spec_key(&spec, plan->problem_key);
  WLM_TRY(choose(context, plan, &spec, variant));
  wlmi_context_note(context, plan, spec.problem.n);
  WLM_TRY(load(context, plan, &spec, &program, kernels));
  snprintf(plan->decision.variant, sizeof plan->decision.variant, "%s", program.variant);
  if (variant || program.walks_a) WLM_TRY(see(matrix, &spec, program.walks_a, &view));
  if (variant) describe_matrix(plan, &view);
  WLM_TRY(wlmi_plan_fill(plan, context->device, &program, kernels, &view.csr, &spec));
  plan->args.order = view.order;
  WLM_TRY(add_backward(context, matrix, &spec, plan));
  *out = plan;
done:
  wlmi_program_release(&program);
  if (status != WLM_OK) wlm_plan_destroy(plan);
  return status;
}

wlm_status wlm_plan_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                           wlm_plan **plan) {
  return wlm_plan_create_variant(context, matrix, problem, NULL, plan);
}

wlm_status wlmi_context_choose(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                               wlmi_decision *decision) {
  wlmi_spec spec;
  wlm_plan plan = {.stats = *wlm_matrix_stats(matrix)};
  wlm_status status = wlmi_context_spec(context, matrix, problem, &spec);
  if (status != WLM_OK) return status;
  wlmi_spec_key(&spec, plan.problem_key);
  status = choose(context, &plan, &spec, NULL);
  *decision = plan.decision;
  return status;
}

void wlm_plan_destroy(wlm_plan *plan) { wlmi_free(plan); }
