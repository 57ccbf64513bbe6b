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

typedef struct wlm_tuning {
  wlm_tuner *tuner;
  wlm_context *context;
  const wlm_matrix *matrix;
  const wlm_stats *stats; /* of op(A) */
  const wlm_problem *problem;
  const wlm_tune_options *options;
  wlm_device *device;
  wlm_operands operands;
  wlm_verifier *verifier;
  wlm_tuner_candidate *candidates; /* those to be measured first */
  int64_t count, fresh;            /* fresh: to be measured, */
  int64_t doubtful;                /* of which so many, the last, are expected to be slow */
  wlm_screened *screened;
  wlm_compile_job *jobs; /* of the fresh */
  wlm_compiling *compiling;
  int64_t compiled;        /* on the host: jobs that are done */
  int last_spills, spared; /* whether the last that was set up keeps much in memory; whether one that works does not */
  wlm_ledger ledger;
  int64_t told;          /* results that the caller knows */
  int cancelled;         /* progress said so, which it need not repeat */
  double started, share; /* share: seconds from then on that the doubtful must fit */
  wlm_tune_summary summary;
} wlm_tuning;

int wlm_tuning_out_of_budget(const wlm_tuning *t);

/* ---- tune_field.c ---- */

/* All of the field but the device and what to do with one that was looked at. */
wlm_search_field wlm_tuning_field(wlm_tuning *t);

/* ---- tune_order.c ---- */

/* Sorts the fresh candidates and finds the doubtful among them. */
wlm_status wlm_tuning_order(wlm_tuning *t);

/* ---- tune_record.c ---- */

/* last = NULL: nothing new. WLM_ERR_CANCELLED where the caller wants to stop. */
wlm_status wlm_tuning_report(wlm_tuning *t, const wlm_candidate_result *last);
/* Stores what came of candidate i; the caller is told once it is on the disk. prepare_seconds and cold may be 0. */
wlm_status wlm_tuning_put(wlm_tuning *t, int64_t i, const wlm_entrant *entrant, double prepare_seconds,
                          const wlm_timing *cold);
/* A ledger's. */
wlm_status wlm_tuning_tell(void *user, const wlm_measurement_record *record, double cold_seconds);

#endif
