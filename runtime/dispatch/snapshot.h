/* What was learned on a device, as plain arrays that never change after they are filled. The context fills
 * one from the databases; an exported C file can be another producer. */
#ifndef WLM_RUNTIME_DISPATCH_SNAPSHOT_H
#define WLM_RUNTIME_DISPATCH_SNAPSHOT_H

#include "common/bucket.h"
#include "runtime/dispatch/model.h"

/* A candidate of a case. Those that need no preparing stand in their order, best first; where the others stand among
 * them depends on how often a plan is executed. */
typedef struct wlmi_ranked {
  const char *variant;
  double cost; /* of one call: seconds where exact; in a bucket, whose matrices differ, over the best on each matrix */
  double prepare;    /* of preparing once, in the same unit; 0 = it needs none */
  double spread;     /* of the measured cost, relative to it; 0 = nobody said */
  int online;        /* all that is known of it are times of real calls */
  const char *stale; /* "nvrtc 12.9, driver 570.1" where it was measured with other ones than the device has now; NULL
                      * where they are the same, or in a bucket */
} wlmi_ranked;

/* One matrix (exact) or one bucket of matrices, for one problem and N. */
typedef struct wlmi_case {
  int exact;
  uint64_t fingerprint[2]; /* where exact */
  wlmi_bucket bucket;
  const char *problem; /* wlmi_spec_key */
  int64_t n;
  const char *borrowed;                 /* the device class that it was measured on; NULL = this device's own */
  int64_t matrices;                     /* that it was derived from; 1 where exact */
  const char *matrix;                   /* where exact: its name, NULL = unnamed, */
  int64_t rows, nnz;                    /* its size */
  wlmi_place place;                     /* and where it lies */
  int64_t first, count;                 /* in ranked */
  int64_t first_failure, failure_count; /* in failures; none unless exact */
} wlmi_case;

/* A candidate of a case that must not be chosen there. */
typedef struct wlmi_failure {
  const char *variant, *reason;
} wlmi_failure;

/* A variant that someone decided on by hand, for one matrix (exact) or a bucket of matrices. */
typedef struct wlmi_pin {
  int exact;
  uint64_t fingerprint[2]; /* where exact */
  wlmi_bucket bucket;      /* otherwise */
  const char *problem;     /* wlmi_spec_key */
  int64_t n;
  const char *variant;
} wlmi_pin;

typedef struct wlmi_snapshot {
  wlmi_case *cases;
  wlmi_ranked *ranked;
  wlmi_failure *failures;
  wlmi_pin *pins;     /* the first that fits counts, exact ones before buckets */
  wlmi_model *models; /* of those that fit the one that knows the nearest case counts */
  int64_t case_count, ranked_count, failure_count, pin_count, model_count;
  int64_t case_capacity, ranked_capacity, failure_capacity, pin_capacity, model_capacity;
  char **strings;
  int64_t string_count, string_capacity;
} wlmi_snapshot;

/* Filling: a case, then its candidates in order. Strings are copied; equal ones are kept once where they
 * follow each other. What the given case says of these lists is ignored. */
wlm_status wlmi_snapshot_add_case(wlmi_snapshot *snapshot, const wlmi_case *new_case);
wlm_status wlmi_snapshot_add_ranked(wlmi_snapshot *snapshot, const char *variant, double cost, double prepare);
/* Of the candidate that was added last. */
wlm_status wlmi_snapshot_mark_stale(wlmi_snapshot *snapshot, const char *stale);
void wlmi_snapshot_mark_measured(wlmi_snapshot *snapshot, double spread, int online);
/* To the case that was added last. */
wlm_status wlmi_snapshot_add_failure(wlmi_snapshot *snapshot, const char *variant, const char *reason);
wlm_status wlmi_snapshot_add_pin(wlmi_snapshot *snapshot, const wlmi_pin *new_pin); /* its strings are copied */
/* Takes the model over, and empties it. */
wlm_status wlmi_snapshot_add_model(wlmi_snapshot *snapshot, wlmi_model *model, const char *borrowed);
/* Of the model that was added last. */
wlm_status wlmi_snapshot_mark_stale_model(wlmi_snapshot *snapshot, const char *stale);
void wlmi_snapshot_release(wlmi_snapshot *snapshot);

#endif
