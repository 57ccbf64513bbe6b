/* What the forms of `warploom tune` share: a context and a tuner, the best time so far, and training at the end. */
#pragma once

#include "cli/progress.h"
#include "cli/session.h"
#include "tuner/design.h"
#include "tuner/tuner.h"
#include "tuner/tuning_case.h"

typedef struct wlmi_tune_run {
  const wlmi_cli_options *options;
  wlmi_session session;
  wlmi_tuner *tuner;
  wlmi_progress progress;
  double deadline;      /* of wlmi_seconds; infinite = none */
  int64_t measurements; /* measurements made so far */
  /* For the current matrix and N: the fastest unprepared kernel that was timed more than once. */
  char best[WLM_VARIANT_NAME]; /* "" = none yet */
  double best_seconds;
} wlmi_tune_run;

/* Opens the context and the tuner, and begins the report with device and database. budget_seconds: 0 = no limit. */
wlm_status wlmi_tune_open(const wlmi_cli_options *options, double budget_seconds, wlmi_tune_run *run,
                          wlmi_report *report);
void wlmi_tune_close(wlmi_tune_run *run); /* also of one that failed to open */

/* How one matrix is tuned. */
typedef struct wlmi_tune_share {
  const char *name;      /* of the matrix in the database */
  double budget_seconds; /* 0 = no limit */
  double seconds;        /* share_seconds of wlmi_tuner_run */
  int (*progress)(void *user, int64_t done, int64_t total, const wlm_candidate_result *last);
  void *user;
} wlmi_tune_share;

/* Tunes one matrix at one N. The detail of WLM_ERR_CANCELLED says how many measurements are kept. */
wlm_status wlmi_tune_one(wlmi_tune_run *run, const wlm_matrix *matrix, const wlm_problem *problem,
                         const wlm_execute_args *args, const wlmi_tune_share *share, wlmi_tune_summary *summary);
/* For progress functions: keeps the best kernel. */
void wlmi_tune_keep_best(wlmi_tune_run *run, const wlm_candidate_result *last);

/* Seconds until the deadline, but at least enough for one candidate; 0 if there is no deadline. */
double wlmi_tune_seconds_left(const wlmi_tune_run *run);
/* The limits of matrices that fit the device and this machine. */
wlmi_design_limits wlmi_tune_limits(const wlmi_tune_run *run);
/* Updates the distances of cases after what was tuned for the spec before. */
wlm_status wlmi_tune_learn_points(const wlmi_tune_run *run, const wlmi_spec *spec, wlmi_tuning_case *list,
                                  int64_t count);
/* Trains the models, which also refreshes the context, if anything was measured. */
wlm_status wlmi_tune_learn(wlmi_tune_run *run);
