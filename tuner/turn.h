/* Tunings on one device take turns, in all processes of a user: kernels that run side by side get wrong times. */
#ifndef WLM_TUNER_TURN_H
#define WLM_TUNER_TURN_H

#include "runtime/dispatch/device.h"

typedef struct wlmi_turn {
  int file;       /* that is locked; -1 = none */
  int64_t waits;  /* ticks that it waited for others */
  double seconds; /* and how long that was */
} wlmi_turn;

/* Waits until no other tuning holds the device, with a notice in the log. Calls tick(user) ten times a second, unless
 * NULL; where that gives non-zero, WLM_ERR_CANCELLED. Without a folder for the lock file there is no waiting. */
wlm_status wlmi_turn_take(const wlmi_device_info *device, int (*tick)(void *user), void *user, wlmi_turn *turn);
void wlmi_turn_end(wlmi_turn *turn);

#endif
