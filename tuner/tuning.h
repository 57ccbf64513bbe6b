/* One tuning under way, for the files that make it up: tune.c begins and ends it and plays the finals, tune_order.c
 * says which candidate is first, tune_field.c compiles, sets up and checks them for the search, tune_record.c stores
 * what came out and tells of it. */
#ifndef WLM_TUNER_TUNING_H
#define WLM_TUNER_TUNING_H

#include "tuner/compile_ahead.h"
#include "tuner/ledger.h"
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
  wlmi_tuner_candidate *candidates; /* those to be measured first */
  int64_t count, fresh;             /* fresh: to be measured, */
  int64_t doubtful;                 /* of which so many, the last, are expected to be slow */
  wlmi_screened *screened;
  wlmi_compile_job *jobs; /* of the fresh */
  wlmi_compiling *compiling;
  int64_t compiled;        /* on the host: jobs that are done */
  int last_spills, spared; /* whether the last that was set up keeps much in memory; whether one that works does not */
  wlmi_ledger ledger;
  int64_t told;       /* results that the caller knows */
  int cancelled;      /* progress said so, which it need not repeat */
  wlm_status failure; /* of the first candidate that failed; WLM_OK = none did, */
  char *reason;       /* and why */
  double most_spread; /* of a finalist */
  wlmi_turn turn;
  double started, share; /* share: seconds from then on that the doubtful must fit */
  wlmi_tune_summary summary;
} wlmi_tuning;

int wlmi_tuning_out_of_budget(const wlmi_tuning *t);

/* ---- tune_field.c ---- */

/* All of the field but the device and what to do with one that was looked at. */
wlmi_search_field wlmi_tuning_field(wlmi_tuning *t);

/* ---- tune_order.c ---- */

/* Sorts the fresh candidates, finds the doubtful among them and notes what is expected of each. */
wlm_status wlmi_tuning_order(wlmi_tuning *t);

/* ---- tune_record.c ---- */

/* last = NULL: nothing new. WLM_ERR_CANCELLED where the caller wants to stop. */
wlm_status wlmi_tuning_report(wlmi_tuning *t, const wlm_candidate_result *last);
/* Stores what came of candidate i; the caller is told once it is on the disk. prepare_seconds and cold may be 0. */
wlm_status wlmi_tuning_put(wlmi_tuning *t, int64_t i, const wlmi_entrant *entrant, double prepare_seconds,
                           const wlmi_timing *cold);
/* Reports a failure that may pass, and stores nothing: the next tuning tries the candidate again. */
wlm_status wlmi_tuning_put_off(wlmi_tuning *t, int64_t i, const wlmi_entrant *entrant);
/* A ledger's. */
wlm_status wlmi_tuning_tell(void *user, const wlmi_measurement_record *record, double cold_seconds);

#endif
