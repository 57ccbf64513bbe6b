#include "bench/stream.h"

#include "runtime/cuda/device.h"

static wlm_status open_cuda(wlmi_bench_stream *stream) {
  wlmi_cuda_scope scope;
  WLM_CHECK(wlmi_cuda_enter(stream->device, &scope));
  stream->pushed = scope.pushed;
  wlm_status status = WLM_CUDA(cuStreamCreate, (CUstream *)&stream->handle, CU_STREAM_NON_BLOCKING);
  if (status != WLM_OK) wlmi_cuda_leave(&scope);
  return status;
}

static void close_cuda(wlmi_bench_stream *stream) {
  wlmi_cuda.cuStreamDestroy(stream->handle);
  wlmi_cuda_leave(&(wlmi_cuda_scope){stream->pushed});
}

wlm_status wlmi_bench_stream_open(wlmi_device *device, wlmi_bench_stream *stream) {
  *stream = (wlmi_bench_stream){.device = device};
  if (device->info.limits.target != WLM_TARGET_CUDA) return WLM_OK;
  wlm_status status = open_cuda(stream);
  if (status != WLM_OK) *stream = (wlmi_bench_stream){0};
  return status;
}

void wlmi_bench_stream_close(wlmi_bench_stream *stream) {
  if (stream->handle) close_cuda(stream);
  *stream = (wlmi_bench_stream){0};
}
