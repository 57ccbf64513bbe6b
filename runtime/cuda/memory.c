/* Device memory. The copies and the fill are for setting things up and for checking results: they wait until all
 * is done. */
#include "runtime/cuda/device.h"

wlm_status wlmi_cuda_allocate(wlmi_device *device, size_t size, void **memory) {
  wlmi_cuda_scope scope;
  CUdeviceptr address = 0;
  *memory = NULL;
  wlm_status status = wlmi_cuda_enter(device, &scope);
  if (status != WLM_OK) return status;
  status = WLM_CUDA(cuMemAlloc, &address, size ? size : 1); /* aligned to 256 bytes at least */
  if (status != WLM_OK) wlmi_fail_in(status, "%zu bytes on %s", size, device->info.name);
  *memory = (void *)(uintptr_t)address;
  wlmi_cuda_leave(&scope);
  return status;
}

void wlmi_cuda_release(wlmi_device *device, void *memory) {
  wlmi_cuda_scope scope;
  if (!memory || wlmi_cuda_enter(device, &scope) != WLM_OK) return;
  wlmi_cuda.cuMemFree((CUdeviceptr)(uintptr_t)memory);
  wlmi_cuda_leave(&scope);
}

wlm_status wlmi_cuda_synchronize(wlmi_device *device, void *stream) {
  wlmi_cuda_scope scope;
  wlm_status status = wlmi_cuda_enter(device, &scope);
  if (status != WLM_OK) return status;
  status = stream ? WLM_CUDA(cuStreamSynchronize, stream) : WLM_CUDA(cuCtxSynchronize);
  wlmi_cuda_leave(&scope);
  return status;
}

/* Work on the legacy stream may outlive the call that asked for it (a copy from pageable memory, a fill). */
static wlm_status finish(wlm_status status, const wlmi_cuda_scope *scope) {
  if (status == WLM_OK) status = WLM_CUDA(cuStreamSynchronize, NULL);
  wlmi_cuda_leave(scope);
  return status;
}

wlm_status wlmi_cuda_copy_in(wlmi_device *device, void *to, const void *from_host, size_t size) {
  wlmi_cuda_scope scope;
  wlm_status status = size ? wlmi_cuda_enter(device, &scope) : WLM_OK;
  if (!size || status != WLM_OK) return status;
  return finish(WLM_CUDA(cuMemcpyHtoD, (CUdeviceptr)(uintptr_t)to, from_host, size), &scope);
}

wlm_status wlmi_cuda_copy_out(wlmi_device *device, void *to_host, const void *from, size_t size) {
  wlmi_cuda_scope scope;
  wlm_status status = size ? wlmi_cuda_enter(device, &scope) : WLM_OK;
  if (!size || status != WLM_OK) return status;
  return finish(WLM_CUDA(cuMemcpyDtoH, to_host, (CUdeviceptr)(uintptr_t)from, size), &scope);
}

wlm_status wlmi_cuda_fill(wlmi_device *device, void *to, int byte, size_t size) {
  wlmi_cuda_scope scope;
  wlm_status status = size ? wlmi_cuda_enter(device, &scope) : WLM_OK;
  if (!size || status != WLM_OK) return status;
  return finish(WLM_CUDA(cuMemsetD8, (CUdeviceptr)(uintptr_t)to, (unsigned char)byte, size), &scope);
}
