/* A stream of a device for host-side timing, with the device's context current on this thread, as it is in a program
 * that uses the CUDA runtime or PyTorch. On the host device both are nothing. */
#pragma once

#include "runtime/dispatch/device.h"

typedef struct wlmi_bench_stream {
  wlmi_device *device;
  void *handle; /* the stream to pass to calls; NULL on the host */
  int pushed;   /* the context was made current and close undoes that */
} wlmi_bench_stream;

wlm_status wlmi_bench_stream_open(wlmi_device *device, wlmi_bench_stream *stream);
/* Must be called by the thread that opened it; a zeroed one is fine. */
void wlmi_bench_stream_close(wlmi_bench_stream *stream);
