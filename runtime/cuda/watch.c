/* Times calls on a caller's stream without waiting: two events around a call, which are queried later. */
#include "core/base/memory.h"
#include "runtime/cuda/device.h"

struct wlmi_watch {
  wlmi_device *device;
  CUevent start, stop;
};

wlm_status wlmi_cuda_watch_create(wlmi_device *device, wlmi_watch **out) {
  *out = NULL;
  WLM_CUDA_SCOPE(device);
  wlmi_watch *watch = wlmi_alloc_zero(1, sizeof *watch);
  if (!watch) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "watch");
  watch->device = device;
  wlm_status status = WLM_CUDA(cuEventCreate, &watch->start, CU_EVENT_DEFAULT);
  if (status == WLM_OK) status = WLM_CUDA(cuEventCreate, &watch->stop, CU_EVENT_DEFAULT);
  if (status != WLM_OK)
    wlmi_cuda_watch_destroy(watch);
  else
    *out = watch;
  return status;
}

static wlm_status record(const wlmi_watch *watch, CUevent event, void *stream) {
  WLM_CUDA_SCOPE(watch->device);
  return WLM_CUDA(cuEventRecord, event, stream);
}

wlm_status wlmi_cuda_watch_start(wlmi_watch *watch, void *stream) { return record(watch, watch->start, stream); }
wlm_status wlmi_cuda_watch_stop(wlmi_watch *watch, void *stream) { return record(watch, watch->stop, stream); }

static wlm_status query(const wlmi_watch *watch, int *done, double *seconds) {
  float milliseconds = 0;
  const CUresult result = wlmi_cuda.cuEventQuery(watch->stop);
  if (result == CUDA_ERROR_NOT_READY) return WLM_OK;
  wlm_status status = wlmi_cuda_check(result, "cuEventQuery");
  if (status == WLM_OK) status = WLM_CUDA(cuEventElapsedTime, &milliseconds, watch->start, watch->stop);
  *done = status == WLM_OK;
  *seconds = 1e-3 * (double)milliseconds;
  return status;
}

/* If a graph is being captured in the driver's global mode, even on another stream, querying an event would invalidate
 * that capture. The capture does not concern these events, and a thread in relaxed mode may query them. */
wlm_status wlmi_cuda_watch_poll(wlmi_watch *watch, int *done, double *seconds) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  *done = 0;
  WLM_CUDA_SCOPE(watch->device);
  WLM_CHECK(WLM_CUDA(cuThreadExchangeStreamCaptureMode, &mode));
  const wlm_status status = query(watch, done, seconds);
  wlmi_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return status;
}

void wlmi_cuda_watch_destroy(wlmi_watch *watch) {
  wlmi_cuda_scope scope;
  if (!watch) return;
  if (wlmi_cuda_enter(watch->device, &scope) == WLM_OK) {
    if (watch->start) wlmi_cuda.cuEventDestroy(watch->start);
    if (watch->stop) wlmi_cuda.cuEventDestroy(watch->stop);
    wlmi_cuda_leave(&scope);
  }
  wlmi_free(watch);
}

/* The legacy stream cannot be queried while another one is captured; this is reported as a capture. */
int wlmi_cuda_is_captured(wlmi_device *device, void *stream) {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  wlmi_cuda_scope scope;
  if (wlmi_cuda_enter(device, &scope) != WLM_OK) return 1;
  const CUresult result = wlmi_cuda.cuStreamIsCapturing(stream, &capture);
  wlmi_cuda_leave(&scope);
  return result != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_NONE;
}
