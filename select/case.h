/* Derives cases from measurements: a case has the ranked candidates of one matrix, or of one bucket of matrices, for
 * one problem and N. Only this file decides which measured candidate is the fastest. The result depends on the set of
 * measurements, not on their order. */
#pragma once

#include "core/problem/bucket.h"
#include "core/problem/measurement.h"
#include "select/features.h"

/* In a bucket, a candidate that was not measured on a matrix counts as this many times the best there. */
#define WLM_CASE_MISSING 2.0
/* A candidate ties with the fastest if it is within this share of its time and also within its spread. */
#define WLM_CASE_TIE 0.02

/* Costs on a matrix are picoseconds. */
#define WLM_PICOSECONDS 1e12

/* A candidate of a case and its measurements. */
typedef struct wlmi_measured {
  wlmi_variant value;      /* zeroed outside of a snapshot, and for a variant that this version does not have */
  const char *variant;     /* as the store spells it */
  const char *source_hash; /* of the measurements that count; NULL in a bucket, as are the next three */
  const char *compiler, *driver;
  const char *reason; /* why it failed */
  double cost;        /* for a matrix: picoseconds; for a bucket: the geometric mean of time / best time */
  double spread;      /* in the unit of cost */
  double prepare;     /* cost of preparing once, in the unit of cost; 0 = it needs none */
  int64_t count;      /* for a matrix: measurements behind the cost; for a bucket: matrices that it was measured on */
  int failed;         /* its newest measurement failed (for a bucket: on any matrix); cost and spread are 0 */
  int online;         /* only online tuning measured it; 0 in a bucket */
  int precise;        /* its measurements have WLM_PRECISE_SAMPLES samples or more and are not from online tuning; for a
                       * bucket: on any matrix */
} wlmi_measured;

/* The candidates for one problem on one matrix, or in one bucket. First come the unprepared ones: their winner, then
 * the others by rising cost. Then come the prepared ones by rising cost, and then `failed` more, by name, which may not
 * be chosen. count may be 0. */
typedef struct wlmi_case {
  const char *problem;
  int64_t n;
  wlmi_bucket bucket;
  const wlm_stats *stats; /* of the matrix; NULL for a bucket */
  const char *matrix;     /* one of the names that it was measured under; NULL for a bucket */
  const wlmi_measured *candidates;
  int64_t count, failed;
  int64_t matrices;     /* matrices of the bucket that have a candidate; 1 for a matrix */
  wlmi_point point;     /* of the matrix */
  const char *borrowed; /* the device class that it was measured on; NULL = the device's own */
} wlmi_case;

typedef struct wlmi_cases {
  wlmi_case *matrices; /* by problem, n, fingerprint */
  int64_t matrix_count;
  wlmi_case *buckets; /* by problem, n, bucket */
  int64_t bucket_count;
  wlmi_measured *matrix_candidates, *bucket_candidates; /* what the above point into */
} wlmi_cases;

/* `records` are of one device class and must outlive the cases, whose strings and stats point into them. Cold ones are
 * ignored. Reads only problem, n, stats, variant, source_hash, compiler, clock, time_ps, spread_ps, prepare_ps,
 * samples, failed, reason and made_at. */
wlm_status wlmi_cases_make(const wlmi_measurement_record *records, int64_t count, wlmi_cases *cases);
void wlmi_cases_release(wlmi_cases *cases);

/* Sets superseded[i] = 1 if no case uses the i-th record: its variant was measured on the same matrix with a newer
 * source or compiler, or more precisely than by a screening run. All records are of one device class. */
wlm_status wlmi_cases_superseded(const wlmi_measurement_record *records, int64_t count, char *superseded);
