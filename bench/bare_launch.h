/* Records the launches of a call, so that they can be repeated without the library: one driver call for each kernel,
 * with prepared arguments. */
#pragma once

#include "runtime/dispatch/device.h"

typedef struct wlmi_bare_launch {
  wlmi_launch launch;
  struct wlm_args args;
} wlmi_bare_launch;

typedef struct wlmi_bare_launches {
  wlmi_bare_launch *list;
  int64_t count, capacity;
} wlmi_bare_launches;

/* Runs call(user) and appends each of its launches. Not while another thread uses the device. Memory that the launches
 * use, such as a workspace, must stay allocated until they are repeated. */
wlm_status wlmi_bare_record(wlmi_device *device, wlm_status (*call)(void *user), void *user,
                            wlmi_bare_launches *launches);
/* Of a CUDA device its context must be current. */
wlm_status wlmi_bare_repeat(wlmi_device *device, wlmi_bare_launches *launches, int64_t first, int64_t end,
                            void *stream);
void wlmi_bare_release(wlmi_bare_launches *launches); /* also of a zeroed one */
