/* compare: times the library and the baselines together (bench/comparison.c). Ours is the kernel that a plan of this
 * user would get; nothing is searched or stored. No baseline computes messages, so a message is timed beside their
 * product of the same N. */
#include <math.h>
#include <string.h>

#include "bench/baseline_cusparse.h"
#include "bench/comparison.h"
#include "bench/cusparse_library.h"
#include "bench/host_baselines.h"
#include "bench/results_file.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "runtime/context.h"
#include "runtime/dispatch/plan.h"
#include "runtime/forecast.h"
#include "tuner/timing.h"

static const double unsteady = 0.25; /* spread */

enum { OURS = 2, MOST = OURS + WLMI_CUSPARSE_WAYS, SAMPLES = 21, PREPARE_SAMPLES = 7 };

typedef struct comparison {
  wlmi_comparison comparison, theirs; /* `theirs`: the baselines' product, of a pattern by a matrix of ones, and of a
                                       * message by that of A; otherwise only `comparison` is used */
  wlmi_upload ones;
  wlmi_method methods[MOST]; /* ours come first: the unprepared kernel, then the prepared one if it is another kernel
                              */
  double once[MOST];         /* seconds of preparing or preprocessing; 0 = none */
  int ours, count;
} comparison;

/* ---- who takes part ----------------------------------------------------------------------------- */

/* The name of the kernel that a plan for very many calls would have. */
static wlm_status name_for_many_calls(const wlmi_comparison *comparison, char name[WLMI_VARIANT_NAME]) {
  wlm_problem problem = comparison->operands.spec.problem;
  wlm_plan *plan;
  problem.policy.expected_calls = INT64_MAX;
  WLM_CHECK(wlm_plan_create(comparison->context, comparison->operands.matrix, &problem, &plan));
  snprintf(name, WLMI_VARIANT_NAME, "%s", wlm_plan_variant(plan));
  wlm_plan_destroy(plan);
  return WLM_OK;
}

static wlm_status enter_ours(comparison *c) {
  char name[WLMI_VARIANT_NAME];
  wlmi_comparison_enter(&c->comparison, NULL, &c->methods[c->ours++]);
  if (c->methods[0].failure) return wlmi_fail(c->methods[0].status, "%s", c->methods[0].failure);
  WLM_CHECK(name_for_many_calls(&c->comparison, name));
  if (strcmp(name, c->methods[0].name)) wlmi_comparison_enter(&c->comparison, name, &c->methods[c->ours++]);
  c->count = c->ours;
  return WLM_OK;
}

static int is_message(const comparison *c) { return c->comparison.operands.spec.problem.operation == WLM_MESSAGE; }

static wlm_status make_theirs(const wlmi_session *session, const wlmi_bench_case *bench, comparison *c) {
  wlm_problem product = WLM_PROBLEM_INIT;
  product.n = session->problem.n;
  product.dense_type = session->problem.dense_type;
  if (!session->csr.values) /* cuSPARSE and the loop need values */
    WLM_CHECK(wlmi_comparison_ones(session->context, &session->upload, &session->csr, product.dense_type, &c->ones));
  return wlmi_comparison_create(bench, &c->comparison, c->ones.matrix ? c->ones.matrix : session->matrix, &product,
                                &c->theirs);
}

static void enter_baselines(comparison *c) {
  wlmi_comparison *comparison = c->theirs.context ? &c->theirs : &c->comparison;
  const wlmi_operands *operands = &comparison->operands;
  wlmi_method *baselines = &c->methods[c->ours];
  if (operands->device->info.limits.target == WLMI_TARGET_HOST) {
    wlmi_host_baselines_enter(operands, 1, baselines);
    c->count++;
  } else {
    for (int way = 0; way < wlmi_cusparse_ways(operands->spec.problem.n); way++, c->count++)
      wlmi_method_cusparse(operands, way, &baselines[way], &c->once[c->count]);
  }
  wlmi_comparison_check(comparison, baselines, c->count - c->ours);
}

/* ---- the verdict -------------------------------------------------------------------------------- */

/* Seconds of the fastest of the methods from..to, with or without the prepared ones. */
static double quickest(const comparison *c, int from, int to, int prepared) {
  double best = INFINITY;
  for (int i = from; i < to; i++)
    if (!c->methods[i].failure && (prepared || !(c->once[i] > 0))) best = fmin(best, c->methods[i].seconds);
  return best;
}

static double speed_up(const comparison *c, int prepared) {
  return quickest(c, c->ours, c->count, prepared) / quickest(c, 0, c->ours, prepared);
}

static void put_ratio(wlmi_text *out, double ratio, const char *than) {
  if (fabs(ratio - 1) < 0.005)
    wlmi_text_printf(out, "as fast%s%s", *than ? " as " : "", than);
  else
    wlmi_text_printf(out, "%.*fx %s%s%s", fmax(ratio, 1 / ratio) < 9.95 ? 2 : 0, fmax(ratio, 1 / ratio),
                     ratio > 1 ? "faster" : "slower", *than ? " than " : "", than);
}

/* What the times are compared with. */
static const char *name_of_baseline(const comparison *c) {
  if (c->comparison.operands.device->info.limits.target == WLMI_TARGET_CUDA)
    return is_message(c) ? "cuSPARSE's product" : "cuSPARSE";
  return is_message(c) ? "the product of a plain OpenMP loop" : "a plain OpenMP loop";
}

/* "2.10x faster than cuSPARSE, 1.40x faster with its preprocessing kept": the first compares unprepared kernels only,
 * the second the fastest of both sides, without the time of preparation. */
static void put_verdict(const comparison *c, wlmi_text *out) {
  const int on_gpu = c->comparison.operands.device->info.limits.target == WLMI_TARGET_CUDA;
  put_ratio(out, speed_up(c, 0), name_of_baseline(c));
  if (!on_gpu) return;
  wlmi_text_puts(out, ", ");
  put_ratio(out, speed_up(c, 1), "");
  wlmi_text_puts(out, " with its preprocessing kept");
}

/* ---- what is printed ------------------------------------------------------------------------------ */

static void put_row(const comparison *c, int i, wlmi_table *table) {
  const wlmi_method *method = &c->methods[i];
  const int ours = i < c->ours;
  wlmi_text label = {0};
  if (ours)
    wlmi_text_puts(&label, c->once[i] > 0 ? "warploom, prepared" : "warploom");
  else if (c->comparison.operands.device->info.limits.target == WLMI_TARGET_HOST)
    wlmi_text_puts(&label, "OpenMP loop");
  else
    wlmi_text_printf(&label, "cuSPARSE%s", strstr(method->name, "_nopre") ? "" : ", preprocessed");
  const double us = wlmi_method_us(method), once = c->once[i] > 0 ? 1e6 * c->once[i] : NAN;
  wlmi_table_add(table, "%s %s %.2f %.3f %.1f %.2f %.1e %s", label.data, method->name, us,
                 method->failure ? (double)NAN : method->spread, once, us / wlmi_method_us(c->methods),
                 method->failure ? (double)NAN : method->max_rel_err, method->failure);
  wlmi_text_release(&label);
}

/* Whether it was tuned at all, or for other N alone. */
static wlm_status put_tuning_hint(const wlmi_session *session, const comparison *c, wlmi_report *report) {
  wlmi_text widths = {0};
  wlmi_matrix_view view;
  WLM_CHECK(wlmi_matrix_fingerprint(session->matrix));
  WLM_CHECK(wlmi_matrix_see(session->matrix, &session->problem, &view));
  wlmi_context_tuned_widths(session->context, view.stats, &c->comparison.operands.spec, &widths);
  if (widths.size)
    wlmi_report_line(report,
                     "hint         this matrix is tuned for N = %s, not for this N; warploom tune may find a faster "
                     "kernel",
                     widths.data);
  else
    wlmi_report_line(report, "hint         this matrix is not tuned; warploom tune may find a faster kernel");
  wlmi_text_release(&widths);
  return WLM_OK;
}

static wlm_status put_comparison(const wlmi_session *session, const comparison *c, wlmi_report *report) {
  const wlmi_decision *decision = &c->methods[0].plan->reason.decision;
  wlmi_table table;
  wlmi_text verdict = {0};
  wlm_status status = WLM_OK;
  wlmi_report_string(report, "step", wlmi_step_name(decision->step));
  wlmi_table_begin(&table, "method,kernel,us,spread,once_us=once us,relative,error,failure");
  for (int i = 0; i < c->count; i++) put_row(c, i, &table);
  wlmi_report_table(report, "methods", &table, 0);
  put_verdict(c, &verdict);
  if (report->json) {
    wlmi_report_real(report, is_message(c) ? "speed_up_over_product" : "speed_up", "%.3f", speed_up(c, 0));
    wlmi_report_real(report, is_message(c) ? "speed_up_over_product_prepared" : "speed_up_prepared", "%.3f",
                     speed_up(c, 1));
  }
  wlmi_report_string(report, "verdict", verdict.data);
  if (is_message(c))
    wlmi_report_line(report, "hint         %s computes no messages; its time is that of the sum of a * b of this N",
                     c->comparison.operands.device->info.limits.target == WLMI_TARGET_CUDA ? "cuSPARSE" : "the loop");
  if (decision->step != WLMI_STEP_FINGERPRINT && decision->step != WLMI_STEP_PIN)
    status = put_tuning_hint(session, c, report);
  if (fmax(c->methods[0].spread, c->methods[c->ours].spread) > unsteady)
    wlmi_report_line(report, "hint         the times vary much; stop other programs and repeat");
  wlmi_text_release(&verdict);
  return status;
}

/* ---- the command ---------------------------------------------------------------------------------- */

static wlm_status compare_width(const wlmi_session *session, const wlmi_cli_options *options, wlmi_report *report) {
  const wlmi_bench_case bench = {.context = session->context,
                                 .samples = options->samples ? (int)options->samples : SAMPLES,
                                 .seed = options->seed};
  comparison c = {.ours = 0};
  int64_t calls;
  wlm_status status;
  WLM_TRY(wlmi_comparison_create(&bench, NULL, session->matrix, &session->problem, &c.comparison));
  WLM_TRY(enter_ours(&c));
  if (!session->csr.values || is_message(&c)) WLM_TRY(make_theirs(session, &bench, &c));
  enter_baselines(&c);
  for (int i = 0; i < c.ours; i++) WLM_TRY(wlmi_method_time_prepare(&c.methods[i], PREPARE_SAMPLES, &c.once[i]));
  WLM_TRY(wlmi_comparison_time(c.comparison.operands.device, c.methods, c.count, bench.samples, &calls));
  if (c.methods[0].failure) WLM_TRY(wlmi_fail(WLM_ERR_DEVICE, "%s", c.methods[0].failure));
  if (isinf(quickest(&c, c.ours, c.count, 1)))
    WLM_TRY(wlmi_fail(c.methods[c.ours].status, "nothing to compare with: %s", c.methods[c.ours].failure));
  wlmi_report_object(report, NULL);
  wlmi_report_integer(report, "n", session->problem.n);
  WLM_TRY(put_comparison(session, &c, report));
  wlmi_report_close(report);
done:
  for (int i = 0; i < MOST; i++) wlmi_method_release(&c.methods[i]);
  wlmi_comparison_release(&c.theirs);
  wlmi_comparison_release(&c.comparison);
  wlmi_upload_release(&c.ones);
  return status;
}

static wlm_status compare_input(wlmi_session *session, const char *input, const wlmi_cli_options *options,
                                wlmi_report *report) {
  wlm_status status = WLM_OK;
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "input", input);
  wlmi_report_device(report, session->context);
  wlmi_report_flag(report, "values", session->csr.values != NULL);
  wlmi_report_array(report, "comparisons");
  for (int i = 0; i < options->n_count && status == WLM_OK; i++) {
    session->problem.n = options->n[i];
    status = compare_width(session, options, report);
  }
  return status;
}

wlm_status wlmi_cmd_compare(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_session session = {0};
  wlm_status status;
  WLM_TRY(wlmi_session_open(options, &session));
  session.multiplies = 1;
  if (wlmi_context_device(session.context)->info.limits.target == WLMI_TARGET_CUDA) {
    report->exit_code = WLMI_EXIT_USAGE; /* a package is missing */
    WLM_TRY(wlmi_cusparse_open());
    report->exit_code = 0;
  }
  status = wlmi_session_each(&session, options, report, compare_input);
done:
  wlmi_session_close(&session);
  return status;
}
