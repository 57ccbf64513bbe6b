/* From a problem to a plan: select, emit, compile or load, and compute every launch. The plan gets the first variant of
 * the decision that loads; the last one is the kernel that the library carries. So whatever is missing on the way
 * (database, compiler, cache) costs a step, never the call, as long as that kernel serves the problem. */
#include <math.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "runtime/context_state.h"

typedef struct variants {
  wlm_context *context;
  const wlmi_spec *spec;
  wlmi_candidate *candidates; /* NULL until they are listed */
} variants;

/* Asks the family itself whether it prepares: what was stored may be older than the template. */
static int is_valid(void *user, const char *variant, int may_prepare) {
  const variants *v = user;
  wlmi_generator *generator = v->context->generator;
  const wlmi_limits *limits = &v->context->device->info.limits;
  wlmi_text reason = {0};
  int prepares = 0;
  wlm_status status = wlmi_generator_refusal(generator, variant, v->spec, limits, &reason);
  int yes = status == WLM_OK && reason.size == 0;
  wlmi_text_release(&reason);
  if (!yes || may_prepare) return yes;
  return wlmi_generator_prepares(generator, variant, v->spec, limits, &prepares) == WLM_OK && !prepares;
}

static void explain(void *user, const char *variant, int may_prepare, wlmi_text *reason) {
  const variants *v = user;
  wlm_status status =
      wlmi_generator_refusal(v->context->generator, variant, v->spec, &v->context->device->info.limits, reason);
  if (status != WLM_OK)
    wlmi_text_puts(reason, wlm_error_detail());
  else if (!reason->size && !may_prepare)
    wlmi_text_puts(reason, "must be prepared, which one call does not pay");
}

static int64_t list(void *user, const wlmi_candidate **candidates) {
  variants *v = user;
  int64_t count = 0;
  wlmi_free(v->candidates);
  if (wlmi_generator_describe(v->context->generator, v->spec, &v->context->device->info.limits, &v->candidates,
                              &count) != WLM_OK)
    wlmi_log(WLM_LOG_WARNING, "no model is used: %s", wlm_error_detail());
  *candidates = v->candidates;
  return count;
}

wlm_status wlmi_context_select(wlm_context *context, const wlmi_snapshot *snapshot, const wlm_stats *stats,
                               wlmi_grade grade, const wlmi_spec *spec, wlmi_decision *decision) {
  variants v = {context, spec, NULL};
  const wlmi_variant_set set = {is_valid, explain, list, &v};
  char problem[WLM_SPEC_KEY];
  wlmi_spec_key(spec, problem);
  const wlmi_request request = {stats, grade, problem, spec, &context->device->info.limits, &set};
  wlmi_snapshot *own = snapshot ? NULL : wlmi_context_snapshot(context);
  const wlm_status status = wlmi_select(snapshot ? snapshot : own, &request, decision);
  wlmi_snapshot_release(own);
  wlmi_free(v.candidates);
  return status;
}

/* A variant that the caller named is the only entry. */
static wlm_status choose(wlm_context *context, wlm_plan *plan, const wlmi_spec *spec, const char *variant) {
  wlmi_decision *d = &plan->decision;
  if (!variant) return wlmi_context_select(context, NULL, &plan->stats, WLM_GRADE_MEASURED, spec, d);
  *d = (wlmi_decision){.step = WLM_STEP_NAMED, .distance = (double)NAN, .calls = spec->problem.expected_calls};
  d->entries[d->entry_count++] = (wlmi_entry){.step = WLM_STEP_NAMED, .reason = "named by the caller"};
  snprintf(d->variant, sizeof d->variant, "%s", variant);
  memcpy(d->entries[0].variant, d->variant, sizeof d->variant);
  return WLM_OK;
}

static wlm_status load_entry(wlm_context *context, const wlmi_entry *entry, const wlmi_spec *spec,
                             wlmi_program *program, void *kernels[WLM_MAX_PASSES]) {
  if (entry->step == WLM_STEP_BUILTIN) return wlmi_context_load_builtin(context, spec, program, kernels);
  const wlm_status status =
      wlmi_generator_emit(context->generator, entry->variant, spec, &context->device->info.limits, program);
  return status == WLM_OK ? wlmi_context_load(context, program, kernels) : status;
}

/* Without a compiler no other entry helps but the built-in kernel. */
static int next_entry(const wlmi_decision *decision, int entry, wlm_status status) {
  return status == WLM_ERR_NO_COMPILER ? decision->entry_count - 1 : entry + 1;
}

/* The first entry of the decision that loads. `chosen` is the status of making the decision: where that is an error the
 * built-in kernel is the only entry. If no entry loads, the error is the first one, which is the one to mend. */
static wlm_status load(wlm_context *context, wlm_plan *plan, const wlmi_spec *spec, wlm_status chosen,
                       wlmi_program *program, void *kernels[WLM_MAX_PASSES]) {
  wlmi_decision *d = &plan->decision;
  wlm_status first = chosen, status = chosen;
  char *reason = chosen == WLM_OK ? NULL : wlmi_strdup(wlm_error_detail());
  int entry = 0;
  for (;;) {
    status = load_entry(context, &d->entries[entry], spec, program, kernels);
    if (status == WLM_OK || status == WLM_ERR_OUT_OF_MEMORY) break;
    if (first == WLM_OK) {
      first = status;
      reason = wlmi_strdup(wlm_error_detail());
    }
    wlmi_program_release(program);
    if (entry + 1 == d->entry_count) break;
    entry = next_entry(d, entry, status);
  }
  if (status == WLM_OK && first == WLM_OK) return WLM_OK;
  if (status == WLM_OK) {
    wlmi_log(WLM_LOG_WARNING, "falling back to %s: %s",
             d->entries[entry].step == WLM_STEP_BUILTIN ? "the built-in kernel" : d->entries[entry].variant,
             reason ? reason : "");
    wlmi_decision_advance(d, entry, reason ? reason : "");
  } else if (status != WLM_ERR_OUT_OF_MEMORY) {
    status = reason ? wlmi_fail(first, "%s", reason) : first;
  }
  wlmi_free(reason);
  return status;
}

/* A plan with argmax indices is usually for training, so its backward kernels are compiled at plan creation, once for
 * all variants. */
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
  WLM_TRY(wlmi_matrix_see(matrix, &spec.problem, &view));
  plan->stats = *view.stats;
  plan->transpose_seconds = view.made_seconds;
  plan->transpose_bytes = view.made_bytes;
  wlmi_spec_key(&spec, plan->problem_key);
  status = choose(context, plan, &spec, variant);
  if (status != WLM_OK && status != WLM_ERR_NOT_FOUND) goto done;
  wlmi_context_note(context, plan, spec.problem.n);
  WLM_TRY(load(context, plan, &spec, status, &program, kernels));
  snprintf(plan->decision.variant, sizeof plan->decision.variant, "%s", program.variant);
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
  const wlm_status status = wlmi_context_spec(context, matrix, problem, &spec);
  if (status != WLM_OK) return status;
  return wlmi_context_select(context, NULL, wlm_matrix_stats(matrix), WLM_GRADE_MEASURED, &spec, decision);
}

void wlm_plan_destroy(wlm_plan *plan) { wlmi_free(plan); }
