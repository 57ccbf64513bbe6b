/* Timing calls on a caller's stream while the caller goes on: two events around a call, asked for later. */
#include "common/memory.h"
#include "runtime/cuda_device.h"

struct wlm_watch {
  wlm_device *device;
  CUevent start, stop;
};

wlm_status wlm_cuda_watch_create(wlm_device *device, wlm_watch **out) {
  wlm_cuda_scope scope;
  *out = NULL;
  wlm_watch *watch = wlm_alloc_zero(1, sizeof *watch);
  if (!watch) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "watch");
  watch->device = device;
  wlm_status status = wlm_cuda_enter(device, &scope);
  if (status == WLM_OK) {
    status = WLM_CUDA(cuEventCreate, &watch->start, CU_EVENT_DEFAULT);
    if (status == WLM_OK) status = WLM_CUDA(cuEventCreate, &watch->stop, CU_EVENT_DEFAULT);
    wlm_cuda_leave(&scope);
  }
  if (status != WLM_OK)
    wlm_cuda_watch_destroy(watch);
  else
    *out = watch;
  return status;
}

static wlm_status record(const wlm_watch *watch, CUevent event, void *stream) {
  wlm_cuda_scope scope;
  wlm_status status = wlm_cuda_enter(watch->device, &scope);
  if (status != WLM_OK) return status;
  status = WLM_CUDA(cuEventRecord, event, stream);
  wlm_cuda_leave(&scope);
  return status;
}

wlm_status wlm_cuda_watch_start(wlm_watch *watch, void *stream) { return record(watch, watch->start, stream); }
wlm_status wlm_cuda_watch_stop(wlm_watch *watch, void *stream) { return record(watch, watch->stop, stream); }

static wlm_status query(const wlm_watch *watch, int *done, double *seconds) {
  float milliseconds = 0;
  const CUresult result = wlm_cuda.cuEventQuery(watch->stop);
  if (result == CUDA_ERROR_NOT_READY) return WLM_OK;
  wlm_status status = wlm_cuda_check(result, "cuEventQuery");
  if (status == WLM_OK) status = WLM_CUDA(cuEventElapsedTime, &milliseconds, watch->start, watch->stop);
  *done = status == WLM_OK;
  *seconds = 1e-3 * (double)milliseconds;
  return status;
}

/* While somebody captures a graph in the driver's strict mode, be it on another stream, asking for an event would break
 * that capture; it has nothing to do with these events, and a relaxed thread may ask. */
wlm_status wlm_cuda_watch_poll(wlm_watch *watch, int *done, double *seconds) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  wlm_cuda_scope scope;
  *done = 0;
  wlm_status status = wlm_cuda_enter(watch->device, &scope);
  if (status != WLM_OK) return status;
  WLM_TRY(WLM_CUDA(cuThreadExchangeStreamCaptureMode, &mode));
  status = query(watch, done, seconds);
  wlm_cuda.cuThreadExchangeStreamCaptureMode(&mode);
done:
  wlm_cuda_leave(&scope);
  return status;
}

void wlm_cuda_watch_destroy(wlm_watch *watch) {
  wlm_cuda_scope scope;
  if (!watch) return;
  if (wlm_cuda_enter(watch->device, &scope) == WLM_OK) {
    if (watch->start) wlm_cuda.cuEventDestroy(watch->start);
    if (watch->stop) wlm_cuda.cuEventDestroy(watch->stop);
    wlm_cuda_leave(&scope);
  }
  wlm_free(watch);
}

/* The legacy stream cannot be asked while another one is being captured; then there is a capture, so it is taken for
 * one. */
int wlm_cuda_is_captured(wlm_device *device, void *stream) {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  wlm_cuda_scope scope;
  if (wlm_cuda_enter(device, &scope) != WLM_OK) return 1;
  const CUresult result = wlm_cuda.cuStreamIsCapturing(stream, &capture);
  wlm_cuda_leave(&scope);
  return result != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_NONE;
}
