/* Copies, fills and waiting. The functions without a stream are for preparing data and checking results: they wait
 * until all work has ended. */
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

wlm_status wlmi_cuda_copy_out_on(wlmi_device *device, void *stream, void *to_host, const void *from, size_t size) {
  if (!size) return WLM_OK;
  WLM_CUDA_SCOPE(device);
  WLM_CHECK(WLM_CUDA(cuMemcpyDtoHAsync, to_host, (CUdeviceptr)(uintptr_t)from, size, stream));
  return WLM_CUDA(cuStreamSynchronize, stream);
}

wlm_status wlmi_cuda_copy_out(wlmi_device *device, void *to_host, const void *from, size_t size) {
  return wlmi_cuda_copy_out_on(device, NULL, to_host, from, size);
}

wlm_status wlmi_cuda_fill_on(wlmi_device *device, void *stream, void *to, int byte, size_t size) {
  if (!size) return WLM_OK;
  WLM_CUDA_SCOPE(device);
  return WLM_CUDA(cuMemsetD8Async, (CUdeviceptr)(uintptr_t)to, (unsigned char)byte, size, stream);
}

wlm_status wlmi_cuda_fill(wlmi_device *device, void *to, int byte, size_t size) {
  WLM_CHECK(wlmi_cuda_fill_on(device, NULL, to, byte, size));
  return size ? wlmi_cuda_wait(device, NULL) : WLM_OK;
}
