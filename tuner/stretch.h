/* A stretch of time, and how much of it other programs took from this one. */
#pragma once

#include "runtime/dispatch/device.h"

typedef struct wlmi_stretch {
  const wlmi_device *device;
  double (*clock)(void);
  double began; /* seconds */
  wlmi_usage usage;
} wlmi_stretch;

void wlmi_stretch_begin(const wlmi_device *device, double (*clock)(void), wlmi_stretch *stretch);
/* The share of the time since then in which the calling thread did not run, if threads were interrupted for others. 0
 * on a device whose times do not depend on that. */
double wlmi_stretch_lost(const wlmi_stretch *stretch);
