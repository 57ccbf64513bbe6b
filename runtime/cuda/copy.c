/* Copies, fills and waiting. The functions without a stream are for preparing data and checking results: they wait
 * until all work has ended. */
#include "runtime/cuda/device.h"

wlm_status wlmi_cuda_synchronize(wlmi_device *device, void *stream) {
  wlmi_cuda_scope scope;
  if (stream) return wlmi_cuda_wait(device, stream);
  WLM_CHECK(wlmi_cuda_enter(device, &scope));
  wlm_status status = WLM_CUDA(cuCtxSynchronize);
  wlmi_cuda_leave(&scope);
  return status;
}

wlm_status wlmi_cuda_wait(wlmi_device *device, void *stream) {
  wlmi_cuda_scope scope;
  WLM_CHECK(wlmi_cuda_enter(device, &scope));
  wlm_status status = WLM_CUDA(cuStreamSynchronize, stream);
  wlmi_cuda_leave(&scope);
  return status;
}

wlm_status wlmi_cuda_copy_in(wlmi_device *device, void *to, const void *from_host, size_t size) {
  wlmi_cuda_scope scope;
  wlm_status status = size ? wlmi_cuda_enter(device, &scope) : WLM_OK;
  if (!size || status != WLM_OK) return status;
  status = WLM_CUDA(cuMemcpyHtoD, (CUdeviceptr)(uintptr_t)to, from_host, size);
  wlmi_cuda_leave(&scope);
  return status == WLM_OK ? wlmi_cuda_wait(device, NULL) : status; /* the driver may still copy from its own buffer */
}

wlm_status wlmi_cuda_copy_out_on(wlmi_device *device, void *stream, void *to_host, const void *from, size_t size) {
  wlmi_cuda_scope scope;
  wlm_status status = size ? wlmi_cuda_enter(device, &scope) : WLM_OK;
  if (!size || status != WLM_OK) return status;
  status = WLM_CUDA(cuMemcpyDtoHAsync, to_host, (CUdeviceptr)(uintptr_t)from, size, stream);
  if (status == WLM_OK) status = WLM_CUDA(cuStreamSynchronize, stream);
  wlmi_cuda_leave(&scope);
  return status;
}

wlm_status wlmi_cuda_copy_out(wlmi_device *device, void *to_host, const void *from, size_t size) {
  return wlmi_cuda_copy_out_on(device, NULL, to_host, from, size);
}

wlm_status wlmi_cuda_fill_on(wlmi_device *device, void *stream, void *to, int byte, size_t size) {
  wlmi_cuda_scope scope;
  wlm_status status = size ? wlmi_cuda_enter(device, &scope) : WLM_OK;
  if (!size || status != WLM_OK) return status;
  status = WLM_CUDA(cuMemsetD8Async, (CUdeviceptr)(uintptr_t)to, (unsigned char)byte, size, stream);
  wlmi_cuda_leave(&scope);
  return status;
}

wlm_status wlmi_cuda_fill(wlmi_device *device, void *to, int byte, size_t size) {
  const wlm_status status = wlmi_cuda_fill_on(device, NULL, to, byte, size);
  return size && status == WLM_OK ? wlmi_cuda_wait(device, NULL) : status;
}
