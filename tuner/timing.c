/* Timing.
 *
 * A single call of a small product is shorter than the clock's grain and the cost of starting it, so a sample
 * is a replay of many calls back to back (the device's timer: one CUDA graph, or a plain loop), as many as
 * make it last `min_sample_seconds`. Before the samples come warm-up replays, until two in a row agree
 * within 2 % or the bound is reached: clocks rise, caches fill, pages are touched. The samples' median is the
 * time, since a disturbance can only ever add; their interquartile range over the median is the spread,
 * which tells whether two medians can be told apart. */
#include "tuner/timing.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "common/memory.h"

enum { MAX_CALLS = 4096, MAX_WARM_UPS = 20, PREPARE_SAMPLES = 5 };
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

/* Calls that make a sample long enough, from replays of a single call: the first pays for what is loaded and
 * touched for the first time, so the quickest of three counts (a slow call is not repeated for that). */
static wlm_status calibrate(wlmi_device *device, wlm_status (*enqueue)(void *, void *), void *user, double least,
                            int64_t *calls) {
  wlmi_timer *timer;
  double best = INFINITY;
  wlm_status status = device->ops->timer_create(device, enqueue, user, 1, &timer);
  if (status != WLM_OK) return status;
  for (int i = 0; i < 3 && status == WLM_OK; i++) {
    double seconds;
    status = device->ops->timer_sample(timer, &seconds);
    if (status == WLM_OK) best = fmin(best, seconds);
    if (best > least) break;
  }
  device->ops->timer_destroy(timer);
  double wanted = best > 0 ? ceil(least / best) : MAX_CALLS;
  *calls = wanted < 1 ? 1 : wanted > MAX_CALLS ? MAX_CALLS : (int64_t)wanted;
  return status;
}

/* *quickest is that of the replays, in seconds. */
wlm_status wlmi_timing_warm_up(wlmi_device *device, wlmi_timer *timer, double *quickest) {
  double last = INFINITY, total = 0;
  *quickest = INFINITY;
  for (int i = 0; i < MAX_WARM_UPS && total < max_warm_up_seconds; i++) {
    double seconds;
    wlm_status status = device->ops->timer_sample(timer, &seconds);
    if (status != WLM_OK) return status;
    *quickest = fmin(*quickest, seconds);
    if (fabs(seconds - last) <= steady * seconds) break;
    last = seconds;
    total += seconds;
  }
  return WLM_OK;
}

wlm_status wlmi_time_calls(wlmi_device *device, wlm_status (*enqueue)(void *user, void *stream), void *user,
                           const wlmi_timing_options *options, wlmi_timing *timing) {
  wlm_status status;
  wlmi_timer *timer = NULL;
  double *seconds = NULL, quickest;
  *timing = (wlmi_timing){0};
  WLM_TRY(wlmi_alloc_array(options->samples, sizeof *seconds, "samples", (void **)&seconds));
  WLM_TRY(calibrate(device, enqueue, user, options->min_sample_seconds, &timing->calls));
  WLM_TRY(device->ops->timer_create(device, enqueue, user, timing->calls, &timer));
  WLM_TRY(wlmi_timing_warm_up(device, timer, &quickest));
  quickest /= (double)timing->calls;
  while (timing->samples < options->samples) {
    double *sample = &seconds[timing->samples++];
    WLM_TRY(device->ops->timer_sample(timer, sample));
    *sample /= (double)timing->calls;
    if (timing->samples == 1 && options->abandon_seconds > 0 && fmin(quickest, *sample) > options->abandon_seconds)
      break;
  }
  wlmi_timing_summarise(seconds, timing->samples, &timing->median, &timing->spread);
done:
  if (timer) device->ops->timer_destroy(timer);
  wlmi_free(seconds);
  return status;
}

typedef struct bound_plan {
  const wlmi_operands *operands;
  const wlm_plan *plan;
} bound_plan;

static wlm_status enqueue_plan(void *user, void *stream) {
  const bound_plan *bound = user;
  return wlmi_operands_execute(bound->operands, bound->plan, stream);
}

wlm_status wlmi_time_plan(const wlmi_operands *operands, const wlm_plan *plan, const wlmi_timing_options *options,
                          wlmi_timing *timing) {
  return wlmi_time_calls(operands->device, enqueue_plan, &(bound_plan){operands, plan}, options, timing);
}

typedef struct unprepared_plan {
  const wlmi_operands *operands;
  wlm_plan *plan;
} unprepared_plan;

static wlm_status enqueue_preparing(void *user, void *stream) {
  const unprepared_plan *bound = user;
  return wlmi_operands_prepare(bound->operands, bound->plan, stream);
}

wlm_status wlmi_time_prepare(const wlmi_operands *operands, wlm_plan *plan, double min_sample_seconds,
                             wlmi_timing *timing) {
  const wlmi_timing_options options = {.min_sample_seconds = min_sample_seconds, .samples = PREPARE_SAMPLES};
  *timing = (wlmi_timing){0};
  if (!wlm_plan_prepared_size(plan)) return WLM_OK;
  return wlmi_time_calls(operands->device, enqueue_preparing, &(unprepared_plan){operands, plan}, &options, timing);
}

double wlmi_gather_gbs(const wlmi_spec *spec, int64_t rows, int64_t edges, double seconds) {
  double dense = (double)wlmi_type_size(spec->problem.dense_type) * (double)spec->problem.n;
  double edge = (double)wlmi_index_size(spec->colind_type);
  if (spec->has_values) edge += (double)wlmi_type_size(spec->value_type) * (double)spec->problem.heads;
  double bytes = (double)edges * (dense + edge) + (double)rows * (dense + (double)wlmi_index_size(spec->rowptr_type));
  return seconds > 0 ? bytes / seconds / 1e9 : 0;
}

double wlmi_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
