#include "common/measurement.h"

#include <string.h>

void wlmi_device_class(const wlmi_device_record *device, wlmi_text *out) {
  wlmi_text_printf(out, "%s/%s/%s/%d", device->kind ? device->kind : "", device->arch ? device->arch : "",
                   device->name ? device->name : "", device->processors);
}

static int has_clock(const wlmi_measurement_record *record, const char *clock) {
  return record->clock && !strcmp(record->clock, clock);
}

int wlmi_measurement_is_cold(const wlmi_measurement_record *record) { return has_clock(record, WLM_CLOCK_COLD); }
int wlmi_measurement_is_online(const wlmi_measurement_record *record) { return has_clock(record, WLM_CLOCK_ONLINE); }
