/* run and explain: what a dispatched call does, and why. */
#include <math.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "runtime/dispatch/plan.h"
#include "tuner/timing.h"
#include "tuner/verify.h"

static wlm_status make_plan(const wlm_session *session, const char *variant, wlm_plan **plan) {
  if (variant) return wlm_plan_create_variant(session->context, session->matrix, &session->problem, variant, plan);
  return wlm_plan_create(session->context, session->matrix, &session->problem, plan);
}

static wlm_status check(wlm_report *report, wlm_operands *operands, const wlm_plan *plan, uint64_t seed,
                        double *max_rel_err) {
  wlm_verifier *verifier = NULL;
  double error = 0;
  wlm_status status = wlm_verifier_create(operands, seed, &verifier);
  if (status == WLM_OK) status = wlm_verify(verifier, plan, &error);
  if (status == WLM_OK || status == WLM_ERR_MISMATCH) {
    const int edges = operands->spec.problem.operation == WLM_SDDMM;
    wlm_report_integer(report, edges ? "checked_edges" : "checked_rows", wlm_verifier_rows(verifier));
    wlm_report_real(report, "max_rel_err", "%.3g", error);
    *max_rel_err = fmax(*max_rel_err, error);
  }
  wlm_verifier_destroy(verifier);
  return status;
}

/* Of the edges, those that the product uses: what sampling leaves. */
static double kept_share(const wlm_operands *operands) {
  return operands->a.nnz ? (double)operands->edges / (double)operands->a.nnz : 1;
}

static wlm_status run_width(wlm_report *report, wlm_session *session, const wlm_cli_options *options,
                            double *max_rel_err) {
  wlm_status status;
  wlm_plan *plan = NULL;
  wlm_operands operands = {0};
  wlm_timing timing = {0}, preparing = {0};
  const wlm_timing_options timing_options = {.min_sample_seconds = 1e-3, .samples = 9};
  WLM_TRY(make_plan(session, options->variant, &plan));
  WLM_TRY(wlm_operands_create(session->context, session->matrix, &session->problem, options->seed, &operands));
  WLM_TRY(wlm_operands_bind(&operands, plan));
  WLM_TRY(wlm_time_plan(&operands, plan, &timing_options, &timing));
  WLM_TRY(wlm_time_prepare(&operands, plan, timing_options.min_sample_seconds, &preparing));
  wlm_report_object(report, NULL);
  wlm_report_integer(report, "n", session->problem.n);
  wlm_report_string(report, "variant", wlm_plan_variant(plan));
  wlm_report_string(report, "step", wlm_step_name(plan->decision.step));
  wlm_report_real(report, "us", "%.2f", timing.median * 1e6);
  wlm_report_real(report, "spread", "%.3f", timing.spread);
  if (report->json || preparing.samples) { /* people are told where there is any */
    wlm_report_real(report, "prepare_us", "%.2f", preparing.median * 1e6);
    wlm_report_integer(report, "prepared_bytes", (int64_t)wlm_plan_prepared_size(plan));
  }
  if (session->problem.transpose) wlm_report_real(report, "transpose_us", "%.2f", plan->transpose_seconds * 1e6);
  wlm_report_real(report, "gbs", "%.2f",
                  wlm_gather_gbs(&operands.spec, operands.a.rows, operands.edges, timing.median));
  if (report->json || session->problem.sample != WLM_SAMPLE_NONE)
    wlm_report_real(report, "kept_share", "%.3f", kept_share(&operands));
  if (options->check) status = check(report, &operands, plan, options->seed, max_rel_err);
  wlm_report_close(report);
done:
  wlm_operands_release(&operands);
  wlm_plan_destroy(plan);
  return status;
}

int wlm_cmd_run(const wlm_cli_options *options) {
  wlm_status status;
  wlm_report report = {.json = options->json};
  wlm_session session = {0};
  double max_rel_err = 0;
  WLM_TRY(wlm_session_open(options, &session));
  WLM_TRY(wlm_session_load(&session, options->arguments[0]));
  wlm_report_object(&report, NULL);
  wlm_report_string(&report, "input", options->arguments[0]);
  wlm_report_device(&report, session.context);
  wlm_report_array(&report, "runs");
  for (int i = 0; i < options->n_count && status == WLM_OK; i++) {
    session.problem.n = options->n[i];
    status = run_width(&report, &session, options, &max_rel_err);
  }
  wlm_report_close(&report);
  if (options->check && report.json) {
    wlm_report_flag(&report, "verified", status == WLM_OK);
    wlm_report_real(&report, "max_rel_err", "%.3g", max_rel_err);
  }
  wlm_report_close(&report);
  if (options->check && status == WLM_OK) wlm_report_line(&report, "verified: max_rel_err=%.3g", max_rel_err);
done:
  wlm_session_close(&session);
  return wlm_cli_finish(&report, status);
}

static wlm_status explain_width(wlm_report *report, wlm_session *session, const char *variant) {
  wlm_status status;
  wlm_plan *plan = NULL;
  char *text = NULL;
  WLM_TRY(make_plan(session, variant, &plan));
  WLM_TRY(wlm_plan_explain(plan, report->json, &text));
  wlm_report_block(report, text);
done:
  wlm_string_free(text);
  wlm_plan_destroy(plan);
  return status;
}

int wlm_cmd_explain(const wlm_cli_options *options) {
  wlm_status status;
  wlm_report report = {.json = options->json};
  wlm_session session = {0};
  WLM_TRY(wlm_session_open(options, &session));
  WLM_TRY(wlm_session_load(&session, options->arguments[0]));
  wlm_report_array(&report, NULL);
  for (int i = 0; i < options->n_count && status == WLM_OK; i++) {
    session.problem.n = options->n[i];
    status = explain_width(&report, &session, options->variant);
  }
  wlm_report_close(&report);
done:
  wlm_session_close(&session);
  return wlm_cli_finish(&report, status);
}
