/* From measurements to cases: the candidates of each matrix and of each bucket of matrices, ranked. It is the one
 * function that decides which measured candidate is the fastest. Its result depends on the set of the measurements
 * only, never on their order. */
#ifndef WLM_SELECT_CASE_H
#define WLM_SELECT_CASE_H

#include "common/bucket.h"
#include "common/measurement.h"
#include "select/features.h"

/* In a bucket, a candidate that was not measured on a matrix counts as this many times the best there. */
#define WLM_CASE_MISSING 2.0
/* Candidates this near to the fastest, and within its spread, tie; a noisier measurement widens nothing. */
#define WLM_CASE_TIE 0.02

/* Costs on a matrix are picoseconds. */
#define WLM_PICOSECONDS 1e12

/* A candidate of a case, with what was measured of it. */
typedef struct wlmi_measured {
  wlmi_variant value;      /* zeroes outside of a snapshot, and for a variant that this version does not have */
  const char *variant;     /* as the store spells it */
  const char *source_hash; /* of the measurements that count; NULL in a bucket, like the next three */
  const char *compiler, *driver;
  const char *reason; /* why it failed */
  double cost;        /* on a matrix picoseconds; in a bucket the geometric mean of time / best time */
  double spread;      /* in the unit of cost */
  double prepare;     /* what preparing costs, once, in the unit of cost; 0 = it needs none */
  int64_t count;      /* on a matrix measurements behind the cost; in a bucket matrices it was measured on */
  int failed;         /* its newest measurement failed, in a bucket on any matrix; cost and spread are 0 */
  int online;         /* all that count are times of real calls; 0 in a bucket */
  int precise; /* the cost is of WLM_PRECISE_SAMPLES samples or more, and not from online; in a bucket on any matrix */
} wlmi_measured;

/* The candidates for one problem on one matrix, or in one bucket. First those that need no preparing: their winner,
 * then the others by rising cost. Then those that are prepared, by rising cost too. Then `failed` more that may not be
 * chosen, by name. count may be 0. */
typedef struct wlmi_case {
  const char *problem;
  int64_t n;
  wlmi_bucket bucket;
  const wlm_stats *stats; /* of the matrix; NULL for a bucket */
  const char *matrix;     /* one of the names that it was measured under; NULL for a bucket */
  const wlmi_measured *candidates;
  int64_t count, failed;
  int64_t matrices;     /* in the bucket that have a candidate at all; 1 for a matrix */
  wlmi_place place;     /* of the matrix */
  const char *borrowed; /* the device class that it was measured on; NULL = the device's own */
} wlmi_case;

typedef struct wlmi_cases {
  wlmi_case *matrices; /* by problem, n, fingerprint */
  int64_t matrix_count;
  wlmi_case *buckets; /* by problem, n, bucket */
  int64_t bucket_count;
  wlmi_measured *matrix_candidates, *bucket_candidates; /* what the above point into */
} wlmi_cases;

/* `records` are of one device class and must outlive the cases, whose strings and stats point into them. Cold ones
 * are passed over. Only problem, n, stats, variant, source_hash, compiler, clock, time_ps, spread_ps, prepare_ps,
 * samples, failed, reason and made_at are looked at. */
wlm_status wlmi_cases_make(const wlmi_measurement_record *records, int64_t count, wlmi_cases *cases);
void wlmi_cases_release(wlmi_cases *cases);

/* superseded[i] = 1 where the i-th record, all of one device class, has no part in any case: its variant was measured
 * on the same matrix with a newer source or compiler, or better than by a screening run. */
wlm_status wlmi_cases_superseded(const wlmi_measurement_record *records, int64_t count, char *superseded);

#endif
