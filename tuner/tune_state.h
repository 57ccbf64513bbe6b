/* The state of one running tuning, for the files that implement it: tune.c begins and ends it and runs the finals,
 * tune_order.c orders the candidates, tune_field.c compiles, sets up and checks them for the search, tune_record.c
 * stores and reports results. */
#pragma once

#include "tuner/compile_ahead.h"
#include "tuner/search.h"
#include "tuner/timing.h"
#include "tuner/tuner.h"
#include "tuner/turn.h"

typedef struct wlmi_tuning {
  wlmi_tuner *tuner;
  wlm_context *context;
  const wlm_matrix *matrix;
  const wlm_stats *stats; /* of op(A) */
  const wlm_problem *problem;
  const wlm_execute_args *args;
  const wlm_tune_options *options;
  wlmi_device *device;
  wlmi_operands operands;
  wlmi_verifier *verifier;
  wlmi_timed *candidates; /* the ones to measure come first */
  int64_t count, fresh;   /* fresh: the number to measure, */
  int64_t doubtful;       /* of which this many, the last ones, are expected to be slow */
  wlmi_compile_job *jobs; /* of the fresh ones */
  wlmi_compiling *compiling;
  int64_t compiled;                  /* on the host: number of finished jobs */
  int last_spills, spared;           /* whether the last one set up spills; whether a working one does not */
  wlmi_measurement_record *unstored; /* a cold one comes after its hot one */
  int64_t unstored_count, unstored_capacity;
  double stored_at;   /* seconds; when records were stored last */
  int64_t reported;   /* results that were reported to the caller */
  int cancelled;      /* progress asked to stop */
  wlm_status failure; /* of the first candidate that failed; WLM_OK = none did, */
  char *reason;       /* and why */
  double most_spread; /* of a finalist */
  wlmi_turn turn;
  double started, share; /* share: seconds after `started` within which the doubtful must fit */
  wlmi_tune_summary summary;
} wlmi_tuning;

/* ---- tune_field.c ---- */

int wlmi_tuning_out_of_budget(const wlmi_tuning *t);
/* The search field, except the device and the function that gets screened candidates. */
wlmi_search_field wlmi_tuning_field(wlmi_tuning *t);

/* ---- tune_order.c ---- */

/* Sorts the fresh candidates, marks the doubtful ones and sets the predicted time of each. */
wlm_status wlmi_tuning_order(wlmi_tuning *t);

/* ---- tune_record.c ---- */

/* Calls the caller's progress function; last = NULL: nothing new. WLM_ERR_CANCELLED if the caller wants to stop. */
wlm_status wlmi_tuning_report(wlmi_tuning *t, const wlm_candidate_result *last);
/* Keeps the result of a candidate to be stored; it is reported once it is on the disk. prepare_seconds and cold may be
 * 0. */
wlm_status wlmi_tuning_put(wlmi_tuning *t, const wlmi_method *method, double prepare_seconds, const wlmi_timing *cold);
/* Reports a temporary failure without storing it; the next tuning tries the candidate again. */
wlm_status wlmi_tuning_put_off(wlmi_tuning *t, const wlmi_method *method);
/* Stores the results that were kept, then reports them. Results are stored in groups, because each write waits for the
 * disk: after screening runs a group is written every fifth of a second. */
wlm_status wlmi_tuning_store(wlmi_tuning *t);
wlm_status wlmi_tuning_store_in_time(wlmi_tuning *t);
