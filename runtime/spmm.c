/* The whole path in one call, for those who multiply once: there is no second call that could repay a preparing. */
#include "runtime/context.h"

wlm_status wlm_spmm(wlm_context *context, const wlm_csr *csr, const wlm_problem *problem, const void *b, void *c,
                    void *stream) {
  wlmi_device *device = wlmi_context_device(context);
  wlm_matrix *matrix = NULL;
  wlm_plan *plan = NULL;
  wlmi_spec spec;
  void *workspace = NULL;
  wlm_status status;
  WLM_TRY(wlm_matrix_create(context, csr, NULL, &matrix));
  WLM_TRY(wlmi_context_spec(context, matrix, problem, &spec));
  spec.problem.expected_calls = 1;
  WLM_TRY(wlm_plan_create(context, matrix, &spec.problem, &plan));
  if (wlm_plan_workspace_size(plan)) WLM_TRY(device->ops->allocate(device, wlm_plan_workspace_size(plan), &workspace));
  WLM_TRY(wlm_plan_execute(plan, b, c, workspace, stream));
  WLM_TRY(device->ops->synchronize(device, stream));
done:
  if (workspace) device->ops->release(device, workspace);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  return status;
}
