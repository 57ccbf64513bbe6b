/* Arrays of a device in host memory, for work that the host does where the device has no kernels for it. */
#pragma once

#include "runtime/dispatch/device.h"

typedef struct wlmi_mirror {
  const char *what; /* for messages */
  int64_t count;
  size_t size;      /* of an element */
  const void *from; /* on the device: what is copied to the host; NULL = nothing */
  void *to;         /* on the device: what gets the host's array; NULL = nothing */
  void *host;       /* NULL where there is nothing to copy */
} wlmi_mirror;

/* Fills `host` of each, in the stream's order. Close the mirrors also after an error. */
wlm_status wlmi_mirror_open(wlmi_device *device, void *stream, wlmi_mirror *mirrors, int count);
/* Copies to the device if `status` is WLM_OK, once the stream's earlier work has ended, and releases the copies.
 * Returns `status`, or the error of a copy. */
wlm_status wlmi_mirror_close(wlmi_device *device, void *stream, wlmi_mirror *mirrors, int count, wlm_status status);
