/* A single call of a small product is shorter than the timer's resolution and than the cost of starting it, so a sample
 * is a replay of many calls back to back (the device's timer: one CUDA graph, or a plain loop). Warm-up replays come
 * first, until two in a row agree within 2 % or a bound is reached: frequencies rise, caches fill, pages are touched.
 * The time is the median of the samples. The spread is their interquartile range divided by the median; it shows
 * whether two medians differ significantly. */
#include "tuner/timing.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "runtime/devices.h"

enum { MAX_WARM_UPS = 20 };
static const double max_warm_up_seconds = 0.5, steady = 0.02;

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double quantile(const double *sorted, int count, double q) {
  double place = q * (count - 1);
  int low = (int)place, high = low + (low + 1 < count);
  return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

void wlmi_timing_summarise(double *seconds, int count, double *median, double *spread) {
  qsort(seconds, (size_t)count, sizeof *seconds, compare);
  *median = quantile(seconds, count, 0.5);
  *spread = *median > 0 ? (quantile(seconds, count, 0.75) - quantile(seconds, count, 0.25)) / *median : 0;
}

wlm_status wlmi_timing_warm_up(wlmi_device *device, wlmi_timer *timer) {
  double last = INFINITY, total = 0;
  for (int i = 0; i < MAX_WARM_UPS && total < max_warm_up_seconds; i++) {
    double seconds;
    WLM_CHECK(device->ops->timer_sample(timer, NULL, 0, &seconds));
    if (fabs(seconds - last) <= steady * seconds) break;
    last = seconds;
    total += seconds;
  }
  return WLM_OK;
}

double wlmi_gather_gbs(const wlmi_spec *spec, int64_t rows, int64_t edges, double seconds) {
  double dense = (double)wlmi_type_size(spec->problem.dense_type) * (double)spec->problem.n;
  double edge = (double)wlmi_index_size(spec->colind_type);
  if (spec->has_values) edge += (double)wlmi_type_size(spec->value_type) * (double)spec->problem.heads;
  double bytes = (double)edges * (dense + edge) + (double)rows * (dense + (double)wlmi_index_size(spec->rowptr_type));
  return seconds > 0 ? bytes / seconds / 1e9 : 0;
}

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
  if (seconds <= 0) return 0;
  /* The device reads the clock later. */
  const double crowded = fmin(1, (usage.crowded - stretch->usage.crowded) / seconds);
  const double ran = (usage.seconds - stretch->usage.seconds) / seconds;
  return usage.switches == stretch->usage.switches || 1 - ran < crowded ? crowded : 1 - ran;
}

/* ---- from seconds to records ---- */

void wlmi_measured_begin(const wlm_context *context, const char *matrix_name, const wlm_stats *stats,
                         const char *problem, int64_t n, const char *variant, wlmi_measurement_record *record) {
  const wlmi_device_info *info = &wlmi_context_device(context)->info;
  const wlmi_families *families = wlmi_generator_families(wlmi_context_generator(context));
  *record = (wlmi_measurement_record){
      .matrix_name = (char *)matrix_name,
      .stats = *stats,
      .variant = (char *)variant,
      .version = (char *)wlmi_family_version(families, variant),
      .problem = (char *)problem,
      .n = n,
      .compiler = (char *)info->compiler,
      .driver = (char *)info->driver,
      .made_at = wlmi_time_of_day(),
  };
  record->device = wlmi_device_record_of(wlmi_context_device(context));
}

void wlmi_measured_time(wlmi_measurement_record *record, double seconds, double spread, int samples, int64_t calls) {
  record->time_ps = wlmi_picoseconds(seconds);
  record->spread_ps = (int64_t)(seconds * spread * 1e12 + 0.5);
  record->samples = samples;
  record->calls_per_sample = calls;
}

int64_t wlmi_picoseconds(double seconds) { return seconds > 1e-12 ? (int64_t)(seconds * 1e12 + 0.5) : 1; }
