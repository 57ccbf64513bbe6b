/* What samples of a call become: a time and its spread. tuner/entrant.h takes the samples. */
#ifndef WLM_TUNER_TIMING_H
#define WLM_TUNER_TIMING_H

#include "tuner/operands.h"

typedef struct wlmi_timing {
  double median; /* seconds of one call */
  double spread; /* (third quartile - first) / median */
  int samples;
} wlmi_timing;

/* Replays until two samples in a row agree within 2 %, or a bound is reached: clocks rise, caches fill. */
wlm_status wlmi_timing_warm_up(wlmi_device *device, wlmi_timer *timer);

/* Median and quartiles by linear interpolation; sorts `seconds`, which are not fewer than one. */
void wlmi_timing_summarise(double *seconds, int count, double *median, double *spread);

/* The bytes a call must at least move if nothing of B is found in cache, over its time, in 1e9 a second:
 * B gathered once an edge, C written, columns and values and rowptr read. */
double wlmi_gather_gbs(const wlmi_spec *spec, int64_t rows, int64_t edges, double seconds);

double wlmi_seconds(void); /* of a clock that only goes forward */

#endif
