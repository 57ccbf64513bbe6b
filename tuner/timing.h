/* Computes a time and its spread from samples, and the record of it, and how much of a stretch of time other programs
 * took from this one.
 * tuner/method.h takes the samples. */
#pragma once

#include "core/base/clock.h"
#include "tuner/operands.h"

typedef struct wlmi_timing {
  double median; /* seconds of one call */
  double spread; /* (third quartile - first) / median */
  int samples;
} wlmi_timing;

/* Replays until two samples in a row agree within 2 %, or a bound is reached: meanwhile frequencies rise and caches
 * fill. */
wlm_status wlmi_timing_warm_up(wlmi_device *device, wlmi_timer *timer);

/* Computes median and quartiles by linear interpolation; sorts `seconds`, at least one. */
void wlmi_timing_summarise(double *seconds, int count, double *median, double *spread);

/* Effective bandwidth in 1e9 bytes a second, as if no cache held any of B: a row of B for each edge, plus C, colind,
 * values and rowptr. */
double wlmi_gather_gbs(const wlmi_spec *spec, int64_t rows, int64_t edges, double seconds);

/* A stretch of time. */
typedef struct wlmi_stretch {
  const wlmi_device *device;
  double (*clock)(void);
  double began; /* seconds */
  wlmi_usage usage;
} wlmi_stretch;

void wlmi_stretch_begin(const wlmi_device *device, double (*clock)(void), wlmi_stretch *stretch);
/* The share of the time since then in which the calling thread did not run, if threads were interrupted for others, or
 * in which it used fewer threads because of them: the larger one. 0 on a device whose times do not depend on that. */
double wlmi_stretch_lost(const wlmi_stretch *stretch);

/* ---- from seconds to records ---- */

/* A record with what all measurements of a variant for a problem on a matrix have in common, dated now. Its strings
 * belong to the caller and the context. */
void wlmi_measured_begin(const wlm_context *context, const char *matrix_name, const wlm_stats *stats,
                         const char *problem, int64_t n, const char *variant, wlmi_measurement_record *record);
/* spread: (third quartile - first) / median. */
void wlmi_measured_time(wlmi_measurement_record *record, double seconds, double spread, int samples, int64_t calls);

int64_t wlmi_picoseconds(double seconds); /* 1 at least */
