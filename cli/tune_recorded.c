/* Tunes recorded problems: for each one of this device it makes a synthetic matrix with the recorded stats, tunes it,
 * and removes the record. Problems that the budget does not finish, or whose matrix cannot be made, stay recorded, so
 * the same command continues later. At the end the models are trained. */
#include <math.h>

#include "cli/commands.h"
#include "cli/tune_run.h"
#include "core/problem/operation.h"
#include "core/problem/spec_key.h"
#include "core/synth/input.h"
#include "db/store.h"
#include "tuner/timing.h"
#include "tuner/upload.h"

typedef struct errand {
  wlmi_tune_run run;
  wlmi_recorded *list;
  int64_t count;
  int64_t tuned, failed;
  wlmi_table table;
} errand;

/* Refuses matrices larger than those of the design. */
static wlm_status check_size(const errand *e, const wlmi_recorded *r, const wlmi_spec *spec) {
  const wlmi_design_limits limits = wlmi_tune_limits(&e->run);
  const wlm_stats *s = &r->stats;
  double bytes = 12 * (double)s->nnz + 8 * ((double)s->rows + (double)s->cols) * (1 + (double)r->n), operands, results;
  WLM_CHECK(wlmi_message_bytes(spec, s, &operands, &results));
  bytes += operands + results;
  if (s->nnz <= limits.nnz && bytes <= (double)limits.bytes) return WLM_OK;
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "a matrix of %lld non-zeros in its place is too large for this device",
                   (long long)s->nnz);
}

static wlm_status tune_one(errand *e, const wlmi_recorded *r, const char *name, wlmi_tune_summary *summary) {
  wlmi_upload upload = {0};
  wlm_problem problem;
  wlmi_spec spec;
  wlm_status status;
  WLM_TRY(wlmi_spec_from_key(r->problem, r->n, &spec));
  WLM_TRY(check_size(e, r, &spec));
  WLM_TRY(wlmi_stand_in_make(e->run.session.context, &r->stats, &spec, &upload));
  problem = spec.problem;
  if (*spec.custom) problem.custom = spec.custom;
  const double left = wlmi_tune_seconds_left(&e->run);
  const wlm_tune_options options = wlmi_tune_options(&e->run, name, left);
  WLM_TRY(wlmi_tune_one(&e->run, upload.matrix, &problem, NULL, &options, left > 0 ? left : INFINITY, summary));
  if (summary->known + summary->measured < summary->candidates) goto done; /* the budget ended it early */
  WLM_TRY(wlmi_store_forget(wlmi_tuner_store(e->run.tuner), r));
  e->tuned++;
done:
  wlmi_upload_release(&upload);
  return status;
}

static void tell_one(errand *e, const wlmi_recorded *r, const char *name, const wlmi_tune_summary *summary,
                     const char *failure) {
  e->run.done = e->tuned + e->failed;
  if (failure)
    wlmi_tune_show(&e->run, "%s n=%lld: %s", name, (long long)r->n, failure);
  else
    wlmi_tune_show(&e->run, "%s n=%lld: %s %.2f us", name, (long long)r->n, e->run.best, 1e6 * e->run.best_seconds);
  wlmi_table_add(&e->table, "%s %s %jd %s %.2f %jd %jd %.2f %s", name, r->problem, r->n, e->run.best,
                 e->run.best_seconds ? 1e6 * e->run.best_seconds : NAN, summary->measured, summary->known,
                 summary->total, failure);
}

/* A problem that fails is reported and stays recorded; the others are tuned. */
static wlm_status tune_all(errand *e) {
  for (int64_t i = 0; i < e->count && (!i || wlmi_seconds() < e->run.deadline); i++) {
    char name[WLMI_STAND_IN_NAME];
    wlmi_tune_summary summary = {0};
    *e->run.best = 0; /* in case it fails before it is tuned */
    e->run.best_seconds = 0;
    wlmi_stand_in_name(&e->list[i].stats, name);
    const wlm_status status = tune_one(e, &e->list[i], name, &summary);
    if (status == WLM_ERR_CANCELLED) return status;
    e->failed += status != WLM_OK;
    tell_one(e, &e->list[i], name, &summary, status == WLM_OK ? NULL : wlm_error_detail());
  }
  return WLM_OK;
}

static void put_result(wlmi_report *report, errand *e) {
  wlmi_report_members(report, "recorded=%jd tuned=%jd left=%jd measurements=%jd", e->count, e->tuned,
                      e->count - e->tuned, e->run.measurements);
  wlmi_report_table(report, "results", &e->table, !e->count);
}

wlm_status wlmi_cmd_tune_recorded(const wlmi_cli_options *options, wlmi_report *report) {
  errand e = {.count = 0};
  wlm_status status;
  wlmi_table_begin(&e.table, "matrix,problem,n,variant,us,measured,known,seconds=s,failed");
  WLM_TRY(wlmi_tune_open(options, options->budget_seconds, &e.run, report));
  WLM_TRY(wlmi_store_load_recorded(wlmi_tuner_store(e.run.tuner), wlmi_context_device_class(e.run.session.context),
                                   &e.list, &e.count));
  e.run.total = e.count;
  wlmi_report_flush(report);
  wlmi_progress_begin(&e.run.progress, 1, options->budget_seconds);
  wlmi_progress_next(&e.run.progress, "tune");
  status = tune_all(&e);
  wlmi_progress_clear();
  if (status == WLM_OK) status = wlmi_tune_learn(&e.run);
  put_result(report, &e);
  if (status == WLM_OK && e.failed)
    status = wlmi_fail(WLM_ERR_UNSUPPORTED, "%lld of %lld could not be tuned and stay recorded", (long long)e.failed,
                       (long long)e.count);
done:
  wlmi_tune_close(&e.run);
  wlmi_table_release(&e.table);
  wlmi_recorded_free(e.list, e.count);
  return status;
}
