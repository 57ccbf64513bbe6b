#include "select/measurement.h"

#include <string.h>

static int has_clock(const wlmi_measurement_record *record, const char *clock) {
  return record->clock && !strcmp(record->clock, clock);
}

int wlmi_measurement_is_cold(const wlmi_measurement_record *record) { return has_clock(record, WLM_CLOCK_COLD); }
int wlmi_measurement_is_online(const wlmi_measurement_record *record) { return has_clock(record, WLM_CLOCK_ONLINE); }
