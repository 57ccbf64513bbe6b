#include "tuner/measured.h"

#include <time.h>

void wlmi_measured_begin(const wlm_context *context, const char *matrix_name, const wlm_stats *stats,
                         const char *problem, int64_t n, wlmi_measurement_record *record) {
  const wlmi_device_info *info = &wlmi_context_device(context)->info;
  *record = (wlmi_measurement_record){
      .matrix_name = (char *)matrix_name,
      .stats = *stats,
      .problem = (char *)problem,
      .n = n,
      .compiler = (char *)info->compiler,
      .driver = (char *)info->driver,
      .made_at = (int64_t)time(NULL),
  };
  wlmi_context_device_record(context, &record->device);
}

void wlmi_measured_time(wlmi_measurement_record *record, double seconds, double spread, int samples, int64_t calls) {
  record->time_ps = wlmi_picoseconds(seconds);
  record->spread_ps = (int64_t)(seconds * spread * 1e12 + 0.5);
  record->samples = samples;
  record->calls_per_sample = calls;
}

int64_t wlmi_picoseconds(double seconds) { return seconds > 1e-12 ? (int64_t)(seconds * 1e12 + 0.5) : 1; }
