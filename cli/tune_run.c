#include "cli/tune_run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "runtime/context.h"
#include "runtime/forecast.h"
#include "tuner/timing.h"

wlm_status wlmi_tune_open(const wlmi_cli_options *options, double budget_seconds, wlmi_tune_run *run,
                          wlmi_report *report) {
  *run = (wlmi_tune_run){.options = options, .deadline = INFINITY};
  if (budget_seconds > 0) run->deadline = wlmi_seconds() + budget_seconds;
  wlmi_catch_interrupts();
  WLM_CHECK(wlmi_session_open(options, &run->session));
  WLM_CHECK(wlmi_tuner_create(run->session.context, options->again, &run->tuner));
  wlmi_report_object(report, NULL);
  wlmi_report_device(report, run->session.context);
  wlmi_report_string(report, "database", wlmi_context_database_path(run->session.context));
  return WLM_OK;
}

void wlmi_tune_close(wlmi_tune_run *run) {
  wlmi_tuner_destroy(run->tuner);
  wlmi_session_close(&run->session);
}

/* Keeps the best kernel. */
static int on_progress(void *user, int64_t done, int64_t total, const wlm_candidate_result *last) {
  wlmi_tune_run *run = user;
  const int is_precise = last && !last->failed && last->samples >= 3 && last->prepare_seconds <= 0;
  if (is_precise && (!run->best_seconds || last->seconds < run->best_seconds)) {
    run->best_seconds = last->seconds;
    snprintf(run->best, sizeof run->best, "%s", last->variant);
  }
  if (run->progress.on_terminal) wlmi_tune_show(run, "%lld of %lld candidates", (long long)done, (long long)total);
  return wlmi_interrupted();
}

void wlmi_tune_show(wlmi_tune_run *run, const char *format, ...) {
  char note[256];
  va_list values;
  va_start(values, format);
  vsnprintf(note, sizeof note, format, values);
  va_end(values);
  wlmi_progress_show(&run->progress, run->done, run->total, note);
}

wlm_tune_options wlmi_tune_options(wlmi_tune_run *run, const char *matrix_name, double budget_seconds) {
  wlm_tune_options options = WLM_TUNE_OPTIONS_INIT;
  options.matrix_name = matrix_name;
  options.budget_seconds = budget_seconds;
  options.seed = run->options->seed;
  options.again = run->options->again;
  options.progress = on_progress;
  options.user = run;
  return options;
}

wlm_status wlmi_tune_one(wlmi_tune_run *run, const wlm_matrix *matrix, const wlm_problem *problem,
                         const wlm_execute_args *args, const wlm_tune_options *options, double share_seconds,
                         wlmi_tune_summary *summary) {
  *run->best = 0;
  run->best_seconds = 0;
  const wlm_status status = wlmi_tuner_run(run->tuner, matrix, problem, args, options, share_seconds, summary);
  run->measurements += summary->measured + summary->finalists;
  run->deadline += summary->waited; /* waiting does not count against the budget */
  if (status != WLM_ERR_CANCELLED) return status;
  return wlmi_fail(status, "interrupted: %lld measurements were made and are kept", (long long)run->measurements);
}

double wlmi_tune_seconds_left(const wlmi_tune_run *run) {
  return isfinite(run->deadline) ? fmax(run->deadline - wlmi_seconds(), 1e-3) : 0;
}

wlmi_design_limits wlmi_tune_limits(const wlmi_tune_run *run) {
  const int64_t on_device = wlmi_context_device(run->session.context)->info.memory_bytes;
  const int64_t on_host = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return wlmi_design_limits_of(on_device < on_host ? on_device : on_host);
}

wlm_status wlmi_tune_learn_points(const wlmi_tune_run *run, const wlmi_spec *spec, wlmi_task *list, int64_t count) {
  wlmi_point *points;
  int64_t point_count;
  WLM_CHECK(wlmi_context_tuned_points(run->session.context, spec, &points, &point_count));
  for (int64_t i = 0; i < point_count; i++) wlmi_tasks_learn(list, count, &points[i]);
  wlmi_free(points);
  return WLM_OK;
}

wlm_status wlmi_tune_learn(wlmi_tune_run *run) { return run->measurements ? wlm_train(run->session.context) : WLM_OK; }
