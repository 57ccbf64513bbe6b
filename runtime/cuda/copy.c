/* Copies, fills and waiting. */
#include "runtime/cuda/device.h"

wlm_status wlmi_cuda_synchronize(wlmi_device *device, void *stream) {
  WLM_CUDA_SCOPE(device);
  return stream ? WLM_CUDA(cuStreamSynchronize, stream) : WLM_CUDA(cuCtxSynchronize);
}

wlm_status wlmi_cuda_wait(wlmi_device *device, void *stream) {
  WLM_CUDA_SCOPE(device);
  return WLM_CUDA(cuStreamSynchronize, stream);
}

wlm_status wlmi_cuda_copy_in(wlmi_device *device, void *to, const void *from_host, size_t size) {
  if (!size) return WLM_OK;
  WLM_CUDA_SCOPE(device);
  WLM_CHECK(WLM_CUDA(cuMemcpyHtoD, (CUdeviceptr)(uintptr_t)to, from_host, size));
  return WLM_CUDA(cuStreamSynchronize, NULL); /* the driver may still copy from its own buffer */
}

wlm_status wlmi_cuda_copy_out(wlmi_device *device, void *stream, void *to_host, const void *from, size_t size) {
  if (!size) return WLM_OK;
  WLM_CUDA_SCOPE(device);
  WLM_CHECK(WLM_CUDA(cuMemcpyDtoHAsync, to_host, (CUdeviceptr)(uintptr_t)from, size, stream));
  return WLM_CUDA(cuStreamSynchronize, stream);
}

wlm_status wlmi_cuda_fill(wlmi_device *device, void *stream, void *to, int byte, size_t size) {
  if (!size) return WLM_OK;
  WLM_CUDA_SCOPE(device);
  return WLM_CUDA(cuMemsetD8Async, (CUdeviceptr)(uintptr_t)to, (unsigned char)byte, size, stream);
}
