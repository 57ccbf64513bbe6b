/* How long a call takes: the one place where time is measured. */
#ifndef WLM_TUNER_TIMING_H
#define WLM_TUNER_TIMING_H

#include "tuner/operands.h"

typedef struct wlmi_timing_options {
  double min_sample_seconds; /* a sample repeats the call until it lasts this long */
  int samples;               /* >= 1 */
  double abandon_seconds;    /* stop after the first sample if a call never took less; 0 = never */
} wlmi_timing_options;

typedef struct wlmi_timing {
  double median; /* seconds of one call */
  double spread; /* (third quartile - first) / median */
  int samples;   /* 1 where it was abandoned */
  int64_t calls; /* in a sample */
} wlmi_timing;

/* Times enqueue(user, stream), which must not block, on the device. */
wlm_status wlmi_time_calls(wlmi_device *device, wlm_status (*enqueue)(void *user, void *stream), void *user,
                           const wlmi_timing_options *options, wlmi_timing *timing);

/* Replays until two samples in a row agree within 2 %, or a bound is reached: clocks rise, caches fill. */
wlm_status wlmi_timing_warm_up(wlmi_device *device, wlmi_timer *timer, double *quickest);

/* Times the plan that is bound to the operands. */
wlm_status wlmi_time_plan(const wlmi_operands *operands, const wlm_plan *plan, const wlmi_timing_options *options,
                          wlmi_timing *timing);

/* Times the preparing of the plan that is bound to the operands, and leaves it prepared; all 0 for one that needs
 * none. A few samples do: it is paid once. */
wlm_status wlmi_time_prepare(const wlmi_operands *operands, wlm_plan *plan, double min_sample_seconds,
                             wlmi_timing *timing);

/* Median and quartiles by linear interpolation; sorts `seconds`, which are not fewer than one. */
void wlmi_timing_summarise(double *seconds, int count, double *median, double *spread);

/* The bytes a call must at least move if nothing of B is found in cache, over its time, in 1e9 a second:
 * B gathered once an edge, C written, columns and values and rowptr read. */
double wlmi_gather_gbs(const wlmi_spec *spec, int64_t rows, int64_t edges, double seconds);

double wlmi_seconds(void); /* of a clock that only goes forward */

#endif
