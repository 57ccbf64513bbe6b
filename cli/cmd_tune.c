/* tune INPUT...: measures the candidates that the database lacks for every INPUT and N; shows progress on stderr, a
 * table of the results, and at the end the choices. Several INPUTs are checked before the first measurement. Databases
 * are read when the command begins and when it has measured everything. */
#include <math.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/left_out.h"
#include "cli/tune_outcomes.h"
#include "cli/tune_run.h"
#include "core/base/memory.h"
#include "tuner/timing.h"

/* A problem that was tuned on a matrix. */
typedef struct tuned {
  char label[256], starred[WLMI_VARIANT_NAME]; /* starred: what the times of this command alone choose; "" = nothing */
  wlmi_spec spec;
  wlm_stats stats;
} tuned;

/* The state of one command. */
typedef struct errand {
  wlmi_tune_run run;
  wlmi_report *report;
  tuned *list;
  int64_t count, capacity;
  const char **inputs; /* those that can be read, as far as that is known */
  int input_count;
  wlmi_left_out left_out;
} errand;

/* The state of tuning one matrix and N. */
typedef struct listener {
  wlmi_tune_outcomes outcomes;
  double best;
  wlmi_progress *progress;
} listener;

static int on_progress(void *user, int64_t done, int64_t total, const wlm_candidate_result *last) {
  listener *l = user;
  char note[128] = "compiling";
  if (last) {
    wlmi_tune_outcomes_keep(&l->outcomes, last);
    if (!last->failed && (l->best == 0 || last->seconds < l->best)) l->best = last->seconds;
    if (last->failed)
      snprintf(note, sizeof note, "%s failed", last->variant);
    else
      snprintf(note, sizeof note, "%s %.2f us (best %.2f)", last->variant, last->seconds * 1e6, l->best * 1e6);
  }
  wlmi_progress_show(l->progress, done, total, note);
  return wlmi_interrupted();
}

static wlm_status keep_tuned(errand *e, const char *label, const char *starred) {
  wlmi_session *session = &e->run.session;
  wlmi_matrix_view view;
  WLM_CHECK(wlmi_grow((void **)&e->list, e->count, &e->capacity, sizeof *e->list, "tuned problems"));
  tuned *t = &e->list[e->count];
  WLM_CHECK(wlmi_context_spec(session->context, session->matrix, &session->problem, &t->spec));
  WLM_CHECK(wlmi_matrix_see(session->matrix, &session->problem, &view));
  t->stats = *view.stats;
  snprintf(t->label, sizeof t->label, "%s", label);
  snprintf(t->starred, sizeof t->starred, "%s", starred);
  e->count++;
  return WLM_OK;
}

/* Reports the kernels that are chosen from now on, which the context must have read. */
static wlm_status report_choices(const errand *e) {
  wlmi_table table;
  wlmi_decision decision = {0};
  int differ = 0;
  wlmi_table_begin(&table, "input,n,choice,step");
  for (int64_t i = 0; i < e->count; i++) {
    const tuned *t = &e->list[i];
    const wlm_status status =
        wlmi_context_select(e->run.session.context, NULL, &t->stats, WLMI_USE_MEASURED, &t->spec, &decision);
    if (status != WLM_OK && status != WLM_ERR_NOT_FOUND) {
      wlmi_table_release(&table);
      return status;
    }
    wlmi_table_add(&table, "%s %jd %s %s", t->label, t->spec.problem.n, decision.variant,
                   wlmi_step_name(decision.step));
    differ |= *t->starred && strcmp(t->starred, decision.variant) != 0;
  }
  wlmi_report_line(e->report, "%s", "");
  wlmi_report_table(e->report, "choices", &table, 0);
  if (differ) wlmi_report_line(e->report, "a choice without a star above also counts earlier measurements, or pins");
  return WLM_OK;
}

/* Trains, which reads the databases; after an interruption only reads them. Reports the choices; an earlier failure and
 * its text are kept. */
static wlm_status learn(const errand *e, wlm_status status) {
  wlm_context *context = e->run.session.context;
  char *detail = wlmi_strdup(wlm_error_detail());
  wlm_status reported = !e->count ? WLM_OK : status == WLM_OK ? wlm_train(context) : wlm_context_refresh(context);
  if (reported == WLM_OK && e->count) reported = report_choices(e);
  if (status != WLM_OK) wlmi_fail(status, "%s", detail ? detail : "");
  wlmi_free(detail);
  return status == WLM_OK ? reported : status;
}

/* Tunes one matrix and N. */
static wlm_status tune_width(errand *e, const char *label, double budget) {
  char title[64], starred[WLMI_VARIANT_NAME] = "";
  wlmi_session *session = &e->run.session;
  listener l = {.progress = &e->run.progress};
  wlmi_tune_summary summary = {0};
  snprintf(title, sizeof title, "tune %.32s n=%lld", label, (long long)session->problem.n);
  wlmi_report_object(e->report, NULL);
  wlmi_report_integer(e->report, "n", session->problem.n);
  wlmi_report_flush(e->report);
  wlmi_progress_next(&e->run.progress, title);
  wlm_tune_options options = wlmi_tune_options(&e->run, label, budget);
  options.progress = on_progress;
  options.user = &l;
  wlm_status status = wlmi_tune_one(&e->run, session->matrix, &session->problem, &session->args, &options,
                                    budget > 0 ? budget : INFINITY, &summary);
  wlmi_progress_clear();
  if (l.outcomes.failed)
    status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the table of candidates; the measurements are stored");
  if (status == WLM_OK || status == WLM_ERR_CANCELLED || l.outcomes.count) {
    wlmi_tune_outcomes_report(&l.outcomes, e->report, starred);
    wlmi_tune_summary_report(&summary, e->report);
  }
  if (status == WLM_OK || status == WLM_ERR_CANCELLED) {
    const wlm_status kept = keep_tuned(e, label, starred);
    if (status == WLM_OK) status = kept;
  }
  wlmi_report_close(e->report);
  wlmi_tune_outcomes_release(&l.outcomes);
  return status;
}

/* Computes the worth of each N. Those that the database has completely are reported at the end. */
static wlm_status find_tasks(errand *e, const char *label, wlmi_task *list) {
  const wlmi_cli_options *options = e->run.options;
  wlmi_session *session = &e->run.session;
  const wlmi_limits *limits = &wlmi_context_device(session->context)->info.limits;
  wlmi_matrix_view view;
  wlmi_spec spec;
  WLM_CHECK(wlmi_matrix_see(session->matrix, &session->problem, &view));
  for (int i = 0; i < options->n_count; i++) {
    int64_t candidates, left;
    session->problem.n = options->n[i];
    WLM_CHECK(wlmi_context_spec(session->context, session->matrix, &session->problem, &spec));
    WLM_CHECK(wlmi_tuner_left(e->run.tuner, label, &spec, &left, &candidates));
    wlmi_task_make(limits, view.stats, 0, options->n[i], candidates, options->again ? candidates : left, &list[i]);
  }
  return wlmi_tune_learn_points(&e->run, &spec, list, options->n_count);
}

/* Tunes all widths: without a budget in the given order; with a budget in the order of their worth, each with its share
 * of the time until the deadline, but enough for one candidate. */
static wlm_status tune_widths(errand *e, const char *label, double deadline) {
  const wlmi_cli_options *options = e->run.options;
  wlmi_task list[WLMI_CLI_MAX_WIDTHS];
  int tuned[WLMI_CLI_MAX_WIDTHS] = {0};
  const double whole = e->run.deadline; /* the deadline moves while another tuning is waited for */
  wlm_status status = WLM_OK;
  WLM_CHECK(find_tasks(e, label, list));
  for (int count = 0; count < options->n_count && status == WLM_OK; count++) {
    const double left = deadline + (isfinite(whole) ? e->run.deadline - whole : 0) - wlmi_seconds();
    int64_t i = isfinite(deadline) ? wlmi_tasks_next(list, options->n_count, 0, INFINITY) : -1;
    for (int k = 0; i < 0; k++)
      if (!tuned[k]) i = k;
    const double share = wlmi_tasks_share(list, options->n_count, i, left);
    e->run.session.problem.n = options->n[i];
    status = tune_width(e, label, isfinite(deadline) ? fmax(share, 1e-3) : 0);
    if (!wlmi_report_flush(e->report) && status == WLM_OK)
      status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the result's text");
    wlmi_tasks_learn(list, options->n_count, &list[i].point);
    list[i].state = WLMI_TASK_DONE;
    tuned[i] = 1;
  }
  return status;
}

/* Tunes the matrix that the session has. deadline: infinite = none. */
static wlm_status tune_input(errand *e, const char *input, double deadline) {
  wlm_status status;
  char label[256];
  wlmi_report_object(e->report, NULL);
  wlmi_report_string(e->report, "input", input);
  WLM_TRY(wlmi_matrix_fingerprint(e->run.session.matrix));
  wlmi_report_stats(e->report, wlm_matrix_stats(e->run.session.matrix));
  wlmi_report_array(e->report, "tuned");
  wlmi_input_label(input, label, sizeof label);
  status = tune_widths(e, label, deadline);
  wlmi_report_close(e->report);
done:
  wlmi_report_close(e->report);
  return status;
}

static wlm_status leave_out(errand *e, const char *input, wlm_status status) {
  return wlmi_left_out_add(&e->left_out, e->run.options, input, status, e->report);
}

/* Finds the inputs that can be read, so that hours of measuring do not come before an error. A single one is read when
 * it is tuned. */
static wlm_status check_inputs(errand *e) {
  const wlmi_cli_options *options = e->run.options;
  const int count = options->argument_count;
  WLM_CHECK(wlmi_alloc_array(count, sizeof *e->inputs, "inputs", (void **)&e->inputs));
  for (int i = 0; i < count; i++) {
    const char *input = options->arguments[i];
    const wlm_status status = count > 1 ? wlmi_session_check(&e->run.session, input) : WLM_OK;
    if (wlmi_interrupted()) return wlmi_fail(WLM_ERR_CANCELLED, "interrupted: nothing was measured");
    if (status == WLM_OK)
      e->inputs[e->input_count++] = input;
    else
      WLM_CHECK(leave_out(e, input, status));
  }
  return WLM_OK;
}

static wlm_status tune_inputs(errand *e) {
  wlm_status status = WLM_OK;
  e->run.session.multiplies = 1;
  WLM_CHECK(check_inputs(e));
  wlmi_progress_begin(&e->run.progress, (int64_t)e->input_count * e->run.options->n_count,
                      e->run.options->budget_seconds);
  for (int i = 0; i < e->input_count && status == WLM_OK; i++) {
    const double now = wlmi_seconds();
    const wlm_status loaded = wlmi_session_load(&e->run.session, e->inputs[i]);
    status = loaded == WLM_OK ? tune_input(e, e->inputs[i], now + (e->run.deadline - now) / (e->input_count - i))
                              : leave_out(e, e->inputs[i], loaded);
  }
  return status;
}

wlm_status wlmi_cmd_tune(const wlmi_cli_options *options, wlmi_report *report) {
  errand e = {.report = report};
  wlm_status status;
  WLM_TRY(wlmi_tune_open(options, options->budget_seconds, &e.run, report));
  wlmi_report_array(report, "inputs");
  status = tune_inputs(&e);
  wlmi_report_close(report);
  status = learn(&e, status);
done:
  wlmi_free(e.list);
  wlmi_free(e.inputs);
  wlmi_tune_close(&e.run);
  return wlmi_left_out_end(&e.left_out, options, status, report);
}
