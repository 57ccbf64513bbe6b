#include "support/verified.h"

#include "support/own.h"

wlm_status plan_memory_make(const wlmi_operands *operands, wlm_plan *plan, plan_memory *memory) {
  wlmi_device *device = operands->device;
  const size_t workspace = wlm_plan_workspace_size(plan), prepared = wlm_plan_prepared_size(plan);
  *memory = (plan_memory){.device = device};
  if (workspace) WLM_CHECK(device->ops->allocate(device, workspace, &memory->workspace));
  if (!prepared) return WLM_OK;
  WLM_CHECK(device->ops->allocate(device, prepared, &memory->prepared));
  WLM_CHECK(device->ops->fill(device, NULL, memory->prepared, 0xFF, prepared));
  WLM_CHECK(device->ops->synchronize(device, NULL));
  WLM_CHECK(wlm_plan_prepare(plan, memory->prepared, NULL));
  return device->ops->synchronize(device, NULL);
}

void plan_memory_release(plan_memory *memory) {
  memory->device->ops->release(memory->device, memory->workspace);
  memory->device->ops->release(memory->device, memory->prepared);
}

wlm_status verify_with(wlmi_operands *operands, wlmi_verifier *verifier, wlm_plan *plan, const plan_memory *memory,
                       double *max_rel_err) {
  wlmi_device *device = operands->device;
  if (memory->workspace)
    WLM_CHECK(device->ops->fill(device, NULL, memory->workspace, 0xFF, wlm_plan_workspace_size(plan)));
  WLM_CHECK(wlmi_operands_poison(operands));
  WLM_CHECK(wlmi_operands_call(operands, plan, memory->workspace, NULL));
  WLM_CHECK(device->ops->synchronize(device, NULL));
  WLM_CHECK(wlmi_verify_result(verifier, max_rel_err));
  return wlmi_operands_intact(operands, 1);
}

wlm_status verify_plan(wlmi_operands *operands, wlmi_verifier *verifier, wlm_plan *plan, double *max_rel_err) {
  HELD(plan_memory) memory;
  wlm_status status = plan_memory_make(operands, plan, &memory);
  if (status == WLM_OK) status = verify_with(operands, verifier, plan, &memory, max_rel_err);
  return status;
}
