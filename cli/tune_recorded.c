/* Tunes what programs met and recorded: for each problem of this device a matrix is made after the statistics, tuned
 * like any other, and the record taken away. What the budget cuts short, or what cannot be made, stays recorded, so
 * that the same command goes on where it ended. In the end the model learns from all of it. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "common/memory.h"
#include "common/spec_key.h"
#include "db/store.h"
#include "tuner/design.h"
#include "tuner/stand_in.h"
#include "tuner/timing.h"
#include "tuner/tuner.h"

typedef struct errand {
  const wlmi_cli_options *options;
  wlmi_session session;
  wlmi_tuner *tuner;
  wlmi_recorded *list;
  int64_t count;
  int64_t tuned, failed;
  int64_t measurements;
  double deadline; /* infinite = none */
  wlmi_progress progress;
  wlmi_table table;
  char best[WLM_VARIANT_NAME]; /* of the present one */
  double best_seconds;
} errand;

static wlm_status load(errand *e) {
  return wlmi_store_load_recorded(wlmi_tuner_store(e->tuner), wlmi_context_device_class(e->session.context), &e->list,
                                  &e->count);
}

static int on_progress(void *user, int64_t done, int64_t total, const wlm_candidate_result *last) {
  errand *e = user;
  char note[64];
  if (last && !last->failed && last->samples >= 3 && (!e->best_seconds || last->seconds < e->best_seconds)) {
    e->best_seconds = last->seconds;
    snprintf(e->best, sizeof e->best, "%s", last->variant);
  }
  snprintf(note, sizeof note, "%lld of %lld candidates", (long long)done, (long long)total);
  if (e->progress.on_terminal) wlmi_progress_show(&e->progress, e->tuned + e->failed, e->count, note);
  return wlmi_interrupted();
}

/* Of what the design would make. */
static wlm_status check_size(const errand *e, const wlmi_recorded *r) {
  const int64_t on_device = wlmi_context_device(e->session.context)->info.memory_bytes;
  const int64_t on_host = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  const wlmi_design_limits limits = wlmi_design_limits_of(on_device < on_host ? on_device : on_host);
  const wlm_stats *s = &r->stats;
  const double bytes = 12 * (double)s->nnz + 8 * ((double)s->rows + (double)s->cols) * (1 + (double)r->n);
  if (s->nnz <= limits.nnz && bytes <= (double)limits.bytes) return WLM_OK;
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "a matrix of %lld non-zeros in its place is too large for this device",
                   (long long)s->nnz);
}

static wlm_status tune_one(errand *e, const wlmi_recorded *r, const char *name, wlmi_tune_summary *summary) {
  wlm_tune_options options = WLM_TUNE_OPTIONS_INIT;
  wlmi_upload upload = {0};
  wlm_problem problem;
  wlmi_spec spec;
  wlm_status status;
  WLM_TRY(wlmi_spec_from_key(r->problem, r->n, &spec));
  WLM_TRY(check_size(e, r));
  WLM_TRY(wlmi_stand_in_make(e->session.context, &r->stats, &spec, &upload));
  problem = spec.problem;
  if (*spec.custom) problem.custom = spec.custom;
  options.matrix_name = name;
  options.seed = e->options->seed;
  options.again = e->options->again;
  if (isfinite(e->deadline)) options.budget_seconds = fmax(e->deadline - wlmi_seconds(), 1e-3);
  options.progress = on_progress;
  options.user = e;
  WLM_TRY(wlmi_tuner_run(e->tuner, upload.matrix, &problem, NULL, &options,
                         options.budget_seconds > 0 ? options.budget_seconds : INFINITY, summary));
  if (summary->known + summary->measured < summary->candidates) goto done; /* the budget cut it */
  WLM_TRY(wlmi_store_forget(wlmi_tuner_store(e->tuner), r));
  e->tuned++;
done:
  e->measurements += summary->measured + summary->finalists;
  wlmi_upload_release(&upload);
  return status;
}

static void tell_one(errand *e, const wlmi_recorded *r, const char *name, const wlmi_tune_summary *summary,
                     const char *failure) {
  char note[256];
  if (failure)
    snprintf(note, sizeof note, "%s n=%lld: %s", name, (long long)r->n, failure);
  else
    snprintf(note, sizeof note, "%s n=%lld: %s %.2f us", name, (long long)r->n, e->best, 1e6 * e->best_seconds);
  wlmi_progress_show(&e->progress, e->tuned + e->failed, e->count, note);
  wlmi_table_text(&e->table, name);
  wlmi_table_text(&e->table, r->problem);
  wlmi_table_integer(&e->table, r->n);
  wlmi_table_text(&e->table, e->best);
  wlmi_table_real(&e->table, e->best_seconds ? "%.2f" : "", e->best_seconds ? 1e6 * e->best_seconds : NAN);
  wlmi_table_integer(&e->table, summary->measured);
  wlmi_table_integer(&e->table, summary->known);
  wlmi_table_real(&e->table, "%.2f", summary->total);
  wlmi_table_text(&e->table, failure);
}

/* One that fails is told and stays; the others are tuned all the same. */
static wlm_status tune_all(errand *e) {
  for (int64_t i = 0; i < e->count && (!i || wlmi_seconds() < e->deadline); i++) {
    char name[WLM_STAND_IN_NAME];
    wlmi_tune_summary summary = {0};
    *e->best = 0;
    e->best_seconds = 0;
    wlmi_stand_in_name(&e->list[i].stats, name);
    const wlm_status status = tune_one(e, &e->list[i], name, &summary);
    if (status == WLM_ERR_CANCELLED)
      return wlmi_fail(status, "interrupted: %lld measurements were made and are kept", (long long)e->measurements);
    e->failed += status != WLM_OK;
    tell_one(e, &e->list[i], name, &summary, status == WLM_OK ? NULL : wlm_error_detail());
  }
  return WLM_OK;
}

static wlm_status learn(errand *e) {
  wlm_status status = WLM_OK;
  if (!e->measurements) return status;
  WLM_TRY(wlm_context_refresh(e->session.context));
  status = wlm_train(e->session.context);
done:
  return status;
}

static void tell(wlmi_report *report, errand *e) {
  wlmi_report_integer(report, "recorded", e->count);
  wlmi_report_integer(report, "tuned", e->tuned);
  wlmi_report_integer(report, "left", e->count - e->tuned);
  wlmi_report_integer(report, "measurements", e->measurements);
  if (e->count || report->json) wlmi_report_table(report, "results", &e->table);
}

wlm_status wlmi_cmd_tune_recorded(const wlmi_cli_options *options, wlmi_report *report) {
  static const wlmi_table_column columns[] = {{"matrix", "matrix"},   {"problem", "problem"}, {"n", "n"},
                                              {"variant", "variant"}, {"us", "us"},           {"measured", "measured"},
                                              {"known", "known"},     {"seconds", "s"},       {"failed", "failed"}};
  errand e = {.options = options, .deadline = INFINITY};
  wlm_status status;
  wlmi_table_begin(&e.table, columns, sizeof columns / sizeof *columns);
  if (options->budget_seconds > 0) e.deadline = wlmi_seconds() + options->budget_seconds;
  wlmi_catch_interrupts();
  WLM_TRY(wlmi_session_open(options, &e.session));
  WLM_TRY(wlmi_tuner_create(e.session.context, options->again, &e.tuner));
  WLM_TRY(load(&e));
  wlmi_report_object(report, NULL);
  wlmi_report_device(report, e.session.context);
  wlmi_report_string(report, "database", wlmi_context_database_path(e.session.context));
  wlmi_report_flush(report);
  wlmi_progress_begin(&e.progress, 1, options->budget_seconds);
  wlmi_progress_next(&e.progress, "tune");
  status = tune_all(&e);
  wlmi_progress_end(&e.progress);
  if (status == WLM_OK) status = learn(&e);
  tell(report, &e);
  wlmi_report_close(report);
  if (status == WLM_OK && e.failed)
    status = wlmi_fail(WLM_ERR_UNSUPPORTED, "%lld of %lld could not be tuned and stay recorded", (long long)e.failed,
                       (long long)e.count);
done:
  wlmi_tuner_destroy(e.tuner);
  wlmi_session_close(&e.session);
  wlmi_table_release(&e.table);
  wlmi_recorded_free(e.list, e.count);
  return status;
}
