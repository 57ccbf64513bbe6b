/* What was learned on a device, as plain arrays that never change after they are filled. The context fills
 * one from the databases; an exported C file can be another producer. */
#ifndef WLM_RUNTIME_DISPATCH_SNAPSHOT_H
#define WLM_RUNTIME_DISPATCH_SNAPSHOT_H

#include "common/bucket.h"
#include "runtime/dispatch/model.h"

/* A candidate of a case. Those that need no preparing stand in their order, best first; where the others stand among
 * them depends on how often a plan is executed. */
typedef struct wlm_ranked {
  const char *variant;
  double cost; /* of one call: seconds where exact; in a bucket, whose matrices differ, over the best on each matrix */
  double prepare;    /* of preparing once, in the same unit; 0 = it needs none */
  double spread;     /* of the measured cost, relative to it; 0 = nobody said */
  int online;        /* all that is known of it are times of real calls */
  const char *stale; /* "nvrtc 12.9, driver 570.1" where it was measured with other ones than the device has now; NULL
                      * where they are the same, or in a bucket */
} wlm_ranked;

/* One matrix (exact) or one bucket of matrices, for one problem and N. */
typedef struct wlm_case {
  int exact;
  uint64_t fingerprint[2]; /* where exact */
  wlm_bucket bucket;
  const char *problem; /* wlm_spec_key */
  int64_t n;
  const char *borrowed;                 /* the device class that it was measured on; NULL = this device's own */
  int64_t matrices;                     /* that it was derived from; 1 where exact */
  const char *matrix;                   /* where exact: its name, NULL = unnamed, */
  int64_t rows, nnz;                    /* its size */
  wlm_place place;                      /* and where it lies */
  int64_t first, count;                 /* in ranked */
  int64_t first_failure, failure_count; /* in failures; none unless exact */
} wlm_case;

/* A candidate of a case that must not be chosen there. */
typedef struct wlm_failure {
  const char *variant, *reason;
} wlm_failure;

/* A variant that someone decided on by hand, for one matrix (exact) or a bucket of matrices. */
typedef struct wlm_pin {
  int exact;
  uint64_t fingerprint[2]; /* where exact */
  wlm_bucket bucket;       /* otherwise */
  const char *problem;     /* wlm_spec_key */
  int64_t n;
  const char *variant;
} wlm_pin;

typedef struct wlm_snapshot {
  wlm_case *cases;
  wlm_ranked *ranked;
  wlm_failure *failures;
  wlm_pin *pins;     /* the first that fits counts, exact ones before buckets */
  wlm_model *models; /* of those that fit the one that knows the nearest case counts */
  int64_t case_count, ranked_count, failure_count, pin_count, model_count;
  int64_t case_capacity, ranked_capacity, failure_capacity, pin_capacity, model_capacity;
  char **strings;
  int64_t string_count, string_capacity;
} wlm_snapshot;

/* Filling: a case, then its candidates in order. Strings are copied; equal ones are kept once where they
 * follow each other. What the given case says of these lists is ignored. */
wlm_status wlm_snapshot_add_case(wlm_snapshot *snapshot, const wlm_case *new_case);
wlm_status wlm_snapshot_add_ranked(wlm_snapshot *snapshot, const char *variant, double cost, double prepare);
/* Of the candidate that was added last. */
wlm_status wlm_snapshot_mark_stale(wlm_snapshot *snapshot, const char *stale);
void wlm_snapshot_mark_measured(wlm_snapshot *snapshot, double spread, int online);
/* To the case that was added last. */
wlm_status wlm_snapshot_add_failure(wlm_snapshot *snapshot, const char *variant, const char *reason);
wlm_status wlm_snapshot_add_pin(wlm_snapshot *snapshot, const wlm_pin *new_pin); /* its strings are copied */
/* Takes the model over, and empties it. */
wlm_status wlm_snapshot_add_model(wlm_snapshot *snapshot, wlm_model *model, const char *borrowed);
/* Of the model that was added last. */
wlm_status wlm_snapshot_mark_stale_model(wlm_snapshot *snapshot, const char *stale);
void wlm_snapshot_release(wlm_snapshot *snapshot);

#endif
