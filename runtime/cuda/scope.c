/* Makes the device's context the current one of a thread, and restores the previous one. */
#include "core/base/fork.h"
#include "runtime/cuda/device.h"

wlm_status wlmi_cuda_check_process(const wlmi_device *device) {
  const wlmi_cuda_device *cuda = (const wlmi_cuda_device *)device;
  if (cuda->forks == wlmi_fork_count()) return WLM_OK;
  return wlmi_fail(WLM_ERR_DEVICE,
                   "cuda:%d: this process was forked after the context was created, and CUDA works in the parent only;"
                   " start processes with exec, or with Python's method \"spawn\"",
                   cuda->ordinal);
}

wlm_status wlmi_cuda_enter(const wlmi_device *device, wlmi_cuda_scope *scope) {
  const wlmi_cuda_device *cuda = (const wlmi_cuda_device *)device;
  CUcontext current = NULL;
  scope->pushed = 0;
  WLM_CHECK(wlmi_cuda_check_process(device));
  if (wlmi_cuda.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == cuda->context) return WLM_OK;
  wlm_status status = WLM_CUDA(cuCtxPushCurrent, cuda->context);
  scope->pushed = status == WLM_OK;
  return status;
}

void wlmi_cuda_leave(const wlmi_cuda_scope *scope) {
  CUcontext popped;
  if (scope->pushed) wlmi_cuda.cuCtxPopCurrent(&popped);
}
