#include "tuner/stretch.h"

static wlmi_usage usage_of(const wlmi_device *device) {
  wlmi_usage usage = {0};
  if (device->ops->usage) device->ops->usage(device, &usage);
  return usage;
}

void wlmi_stretch_begin(const wlmi_device *device, double (*clock)(void), wlmi_stretch *stretch) {
  *stretch = (wlmi_stretch){device, clock, clock(), usage_of(device)};
}

double wlmi_stretch_lost(const wlmi_stretch *stretch) {
  const double seconds = stretch->clock() - stretch->began;
  const wlmi_usage usage = usage_of(stretch->device);
  if (usage.switches == stretch->usage.switches || seconds <= 0) return 0;
  const double ran = (usage.seconds - stretch->usage.seconds) / seconds;
  return ran < 1 ? 1 - ran : 0;
}
