/* Times calls: captures `calls` of them into one CUDA graph, so that the host's part of a launch is not counted, and
 * times a replay by events around it. A sample replays the graph twice and times the second replay. The first one
 * leaves the caches and the GPU's frequency as in a loop of calls, and keeps the GPU busy while the second is
 * submitted. */
#include "core/base/memory.h"
#include "runtime/cuda/device.h"

struct wlmi_timer {
  wlmi_device *device;
  CUstream stream;
  CUgraphExec graph;
  CUevent start, stop;
};

/* In this thread a call that allocates or waits fails here, as it would in a capture by a user. */
static wlm_status capture(CUstream stream, wlm_status (*enqueue)(void *, void *), void *user, int64_t calls,
                          CUgraph *graph) {
  wlm_status status = WLM_CUDA(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < calls && status == WLM_OK; i++) status = enqueue(user, stream);
  CUresult result = wlmi_cuda.cuStreamEndCapture(stream, graph); /* also after a failure, to leave the mode */
  return status == WLM_OK ? wlmi_cuda_check(result, "cuStreamEndCapture") : status;
}

wlm_status wlmi_cuda_timer_create(wlmi_device *device, wlm_status (*enqueue)(void *user, void *stream), void *user,
                                  int64_t calls, wlmi_timer **out) {
  CUgraph graph = NULL;
  wlm_status status;
  *out = NULL;
  WLM_CUDA_SCOPE(device);
  wlmi_timer *timer = wlmi_alloc_zero(1, sizeof *timer);
  if (!timer) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "timer");
  timer->device = device;
  WLM_TRY(WLM_CUDA(cuStreamCreate, &timer->stream, CU_STREAM_NON_BLOCKING));
  WLM_TRY(WLM_CUDA(cuEventCreate, &timer->start, CU_EVENT_DEFAULT));
  WLM_TRY(WLM_CUDA(cuEventCreate, &timer->stop, CU_EVENT_DEFAULT));
  /* One call outside of the capture: an error shows here, and lazily loaded code is loaded now. */
  WLM_TRY(enqueue(user, timer->stream));
  WLM_TRY(WLM_CUDA(cuStreamSynchronize, timer->stream));
  WLM_TRY(capture(timer->stream, enqueue, user, calls, &graph));
  WLM_TRY(WLM_CUDA(cuGraphInstantiateWithFlags, &timer->graph, graph, 0));
  WLM_TRY(WLM_CUDA(cuGraphUpload, timer->graph, timer->stream));
  WLM_TRY(WLM_CUDA(cuGraphLaunch, timer->graph, timer->stream));
  WLM_TRY(WLM_CUDA(cuStreamSynchronize, timer->stream));
done:
  if (graph) wlmi_cuda.cuGraphDestroy(graph);
  if (status != WLM_OK)
    wlmi_cuda_timer_destroy(timer);
  else
    *out = timer;
  return status;
}

/* Writing the flush buffer also keeps the GPU busy while the replay is submitted. */
wlm_status wlmi_cuda_timer_sample(wlmi_timer *timer, void *flush, size_t size, double *seconds) {
  float milliseconds = 0;
  WLM_CUDA_SCOPE(timer->device);
  WLM_CHECK(flush ? WLM_CUDA(cuMemsetD8Async, (CUdeviceptr)(uintptr_t)flush, 0, size, timer->stream)
                  : WLM_CUDA(cuGraphLaunch, timer->graph, timer->stream));
  WLM_CHECK(WLM_CUDA(cuEventRecord, timer->start, timer->stream));
  WLM_CHECK(WLM_CUDA(cuGraphLaunch, timer->graph, timer->stream));
  WLM_CHECK(WLM_CUDA(cuEventRecord, timer->stop, timer->stream));
  WLM_CHECK(WLM_CUDA(cuEventSynchronize, timer->stop));
  WLM_CHECK(WLM_CUDA(cuEventElapsedTime, &milliseconds, timer->start, timer->stop));
  *seconds = 1e-3 * (double)milliseconds;
  return WLM_OK;
}

void wlmi_cuda_timer_destroy(wlmi_timer *timer) {
  wlmi_cuda_scope scope;
  if (!timer) return;
  if (wlmi_cuda_enter(timer->device, &scope) == WLM_OK) {
    if (timer->stream) wlmi_cuda.cuStreamSynchronize(timer->stream);
    if (timer->graph) wlmi_cuda.cuGraphExecDestroy(timer->graph);
    if (timer->start) wlmi_cuda.cuEventDestroy(timer->start);
    if (timer->stop) wlmi_cuda.cuEventDestroy(timer->stop);
    if (timer->stream) wlmi_cuda.cuStreamDestroy(timer->stream);
    wlmi_cuda_leave(&scope);
  }
  wlmi_free(timer);
}
