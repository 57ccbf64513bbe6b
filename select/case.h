/* Derives cases from measurements: a case has the ranked candidates of one matrix for one problem and N. Only this file
 * decides which measured candidate is the fastest. The result depends on the set of measurements, not on their order.
 */
#pragma once

#include "core/problem/measurement.h"
#include "select/features.h"

/* A candidate ties with the fastest if it is within this share of its time and also within its spread. */
#define WLMI_CASE_TIE 0.02

/* Costs are picoseconds. */
#define WLMI_PICOSECONDS 1e12

/* A candidate of a case and its measurements. */
typedef struct wlmi_measured {
  wlmi_variant value;  /* zeroed outside of a snapshot, and for a variant that this version does not have */
  const char *variant; /* as the store spells it */
  const char *version; /* of the measurements that count */
  const char *compiler, *driver;
  const char *reason; /* why it failed */
  double cost;        /* picoseconds, as the next two */
  double spread;
  double prepare; /* cost of preparing once; 0 = it needs none */
  int64_t count;  /* measurements behind the cost */
  int failed;     /* its newest measurement failed; cost and spread are 0 */
  int online;     /* only online tuning measured it */
  int precise;    /* its measurements have WLMI_PRECISE_SAMPLES samples or more and are not from online tuning */
} wlmi_measured;

/* Whether its whole result was compared. Otherwise it is not chosen; screening compares a few rows only. */
int wlmi_measured_is_verified(const wlmi_measured *candidate);

/* The candidates for one problem on one matrix. First come the unprepared ones: their winner, then the others by rising
 * cost. Then come the prepared ones by rising cost, and then `failed` more, by name, which may not be chosen. count may
 * be 0. */
typedef struct wlmi_case {
  const char *problem;
  int64_t n;
  const wlm_stats *stats; /* of the matrix */
  const char *matrix;     /* one of the names that it was measured under */
  const wlmi_measured *candidates;
  int64_t count, failed;
  wlmi_point point;     /* of the matrix and N */
  const char *borrowed; /* the device class that it was measured on; NULL = the device's own */
} wlmi_case;

typedef struct wlmi_cases {
  wlmi_case *list; /* by problem, n, fingerprint */
  int64_t count;
  wlmi_measured *candidates; /* what the above point into */
} wlmi_cases;

/* `records` are of one device class and must outlive the cases, whose strings and stats point into them. Cold ones are
 * ignored. Reads only problem, n, stats, variant, version, compiler, clock, time_ps, spread_ps, prepare_ps,
 * samples, failed, reason and made_at. */
wlm_status wlmi_cases_make(const wlmi_measurement_record *records, int64_t count, wlmi_cases *cases);
void wlmi_cases_release(wlmi_cases *cases);

/* The case that the record belongs to; NULL = none. */
const wlmi_case *wlmi_cases_find(const wlmi_cases *cases, const wlmi_measurement_record *record);

/* Sets superseded[i] = 1 if no case uses the i-th record: its variant was measured on the same matrix with a newer
 * version or compiler, or more precisely than by a screening run. All records are of one device class. */
wlm_status wlmi_cases_superseded(const wlmi_measurement_record *records, int64_t count, char *superseded);
