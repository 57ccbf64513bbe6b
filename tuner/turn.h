/* Makes tunings on one device, in all processes of a user, take turns, because kernels that run at the same time get
 * wrong times. */
#pragma once

#include "runtime/dispatch/device.h"

typedef struct wlmi_turn {
  int file;       /* descriptor of the locked file; -1 = none */
  int64_t waits;  /* number of ticks while it waited for others */
  double seconds; /* seconds of waiting */
} wlmi_turn;

/* Waits until no other tuning uses the device, and logs that it waits. Calls tick(user), unless NULL, ten times a
 * second; if tick returns non-zero: WLM_ERR_CANCELLED. Without a folder for the lock file there is no waiting. */
wlm_status wlmi_turn_take(const wlmi_device_info *device, int (*tick)(void *user), void *user, wlmi_turn *turn);
void wlmi_turn_end(wlmi_turn *turn);
