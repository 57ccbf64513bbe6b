/* What the forms of `warploom tune` share: a context and a tuner, the best time so far, and training at the end. */
#pragma once

#include "cli/progress.h"
#include "cli/session.h"
#include "tuner/design.h"
#include "tuner/task.h"
#include "tuner/tuner.h"

typedef struct wlmi_tune_run {
  const wlmi_cli_options *options;
  wlmi_session session;
  wlmi_tuner *tuner;
  wlmi_progress progress;
  int64_t done, total;  /* what the progress counts */
  double deadline;      /* of wlmi_seconds; infinite = none */
  int64_t measurements; /* measurements made so far */
  /* For the current matrix and N: the fastest unprepared kernel that was timed more than once. */
  char best[WLMI_VARIANT_NAME]; /* "" = none yet */
  double best_seconds;
} wlmi_tune_run;

/* Opens the context and the tuner, and begins the report with device and database. budget_seconds: 0 = no limit. */
wlm_status wlmi_tune_open(const wlmi_cli_options *options, double budget_seconds, wlmi_tune_run *run,
                          wlmi_report *report);
void wlmi_tune_close(wlmi_tune_run *run); /* also of one that failed to open */

/* The options for a matrix of that name in the database. Its progress keeps the best kernel, and on a terminal it shows
 * how many candidates are done. budget_seconds: 0 = no limit. */
wlm_tune_options wlmi_tune_options(wlmi_tune_run *run, const char *matrix_name, double budget_seconds);
/* Tunes one matrix at one N; share_seconds as of wlmi_tuner_run. The detail of WLM_ERR_CANCELLED says how many
 * measurements are kept. */
wlm_status wlmi_tune_one(wlmi_tune_run *run, const wlm_matrix *matrix, const wlm_problem *problem,
                         const wlm_execute_args *args, const wlm_tune_options *options, double share_seconds,
                         wlmi_tune_summary *summary);
/* Shows what is done, with a note. */
void wlmi_tune_show(wlmi_tune_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Seconds until the deadline, but at least enough for one candidate; 0 if there is no deadline. */
double wlmi_tune_seconds_left(const wlmi_tune_run *run);
/* The limits of matrices that fit the device and this machine. */
wlmi_design_limits wlmi_tune_limits(const wlmi_tune_run *run);
/* Updates the distances of cases after what was tuned for the spec before. */
wlm_status wlmi_tune_learn_points(const wlmi_tune_run *run, const wlmi_spec *spec, wlmi_task *list, int64_t count);
/* Trains the models, which also refreshes the context, if anything was measured. */
wlm_status wlmi_tune_learn(wlmi_tune_run *run);
