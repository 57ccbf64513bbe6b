/* The gradients of max and min: the one edge that each element of C came from gets the element of dC (what the kernels
 * do is told in templates/prelude/arg_backward.cu.in). The program is made with the plan, for whoever asks for
 * positions is going to train; it is the same for every variant. */
#include "common/pointer.h"
#include "runtime/dispatch/plan.h"

wlm_status wlmi_plan_fill_backward(wlm_plan *plan, const wlmi_program *program, void *const kernels[WLM_MAX_PASSES],
                                   const wlm_csr *csr, const wlmi_spec *spec) {
  wlm_status status = WLM_OK;
  const wlmi_target target = plan->device->info.limits.target;
  const int64_t rows[WLM_BACKWARD_PASSES] = {plan->args.cols, plan->args.rows}; /* of dB, of dC */
  plan->backward_uses_b = program->uses_b;
  plan->backward_args = plan->args;
  plan->backward_args.rowptr = csr->rowptr;
  plan->backward_args.colind = csr->colind;
  plan->no_backward = spec->problem.activation ? "an activation: give dC as it is before it to a plan without"
                      : spec->problem.deterministic && !program->deterministic
                          ? "deterministic: on a GPU terms are added atomically, in any order"
                          : NULL;
  for (int i = 0; i < WLM_BACKWARD_PASSES; i++) {
    const wlmi_extent extent = {rows[i], csr->cols, csr->nnz, spec->problem.n};
    const int64_t units = wlmi_pass_unit_blocks(&program->passes[i], &extent, 0);
    WLM_TRY(wlmi_launch_make(&program->passes[i], target, units ? units : 1, spec->problem.n, kernels[i],
                             &plan->backward[i]));
  }
done:
  return status;
}

wlm_status wlm_plan_execute_arg_backward(const wlm_plan *plan, const void *dc, const void *arg, const void *b, void *db,
                                         void *dvalues, void *stream) {
  if (!plan->wants_arg)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "the plan gives no positions: make it with want_arg = 1");
  if (plan->no_backward)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "no gradients by arg of a plan with %s", plan->no_backward);
  if (!plan->args.n || (!db && !dvalues)) return WLM_OK;
  const wlmi_pointer given[] = {{"dc", dc, plan->dense_size, !plan->empty},
                                {"arg", arg, plan->arg_size, !plan->empty},
                                {"b", b, plan->dense_size, plan->backward_uses_b && !plan->empty && plan->args.nnz},
                                {"db", db, plan->sum_size, 0},
                                {"dvalues", dvalues, plan->sum_size, 0}};
  wlm_status status = wlmi_check_pointers("wlm_plan_execute_arg_backward", given, 5);
  if (status != WLM_OK) return status;
  struct wlm_args args = plan->backward_args;
  args.x = dc;
  args.arg = (void *)(uintptr_t)arg; /* which is only read */
  args.b = b;
  args.c = db;
  args.workspace = dvalues;
  for (int i = 0; i < WLM_BACKWARD_PASSES; i++) {
    status = plan->device->ops->launch(plan->device, &plan->backward[i], &args, stream);
    if (status != WLM_OK) return status;
  }
  return WLM_OK;
}
