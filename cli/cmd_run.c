/* run and explain: what a dispatched call does, and why. */
#include <math.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "runtime/dispatch/plan.h"
#include "tuner/entrant.h"
#include "tuner/timing.h"

static wlm_status check(wlmi_report *report, wlmi_operands *operands, wlmi_entrant *entrant, uint64_t seed,
                        double *max_rel_err) {
  wlmi_verifier *verifier = NULL;
  wlm_status status;
  WLM_TRY(wlmi_verifier_create(operands, seed, &verifier));
  wlmi_entrant_verify(entrant, operands, verifier);
  if (!entrant->failure || entrant->status == WLM_ERR_MISMATCH) {
    const int edges = operands->spec.problem.operation == WLM_SDDMM;
    wlmi_report_integer(report, edges ? "checked_edges" : "checked_rows", wlmi_verifier_rows(verifier));
    wlmi_report_real(report, "max_rel_err", "%.3g", entrant->max_rel_err);
    *max_rel_err = fmax(*max_rel_err, entrant->max_rel_err);
  }
  if (entrant->failure) status = wlmi_fail(entrant->status, "%s", entrant->failure);
done:
  wlmi_verifier_destroy(verifier);
  return status;
}

/* Of the edges, those that the product uses: what sampling leaves. */
static double kept_share(const wlmi_operands *operands) {
  return operands->a.nnz ? (double)operands->edges / (double)operands->a.nnz : 1;
}

static wlm_status run_width(wlmi_report *report, wlmi_session *session, const wlmi_cli_options *options,
                            double *max_rel_err) {
  enum { SAMPLES = 9, PREPARE_SAMPLES = 5 };
  wlm_status status;
  wlmi_operands operands = {0};
  wlmi_entrant entrant = {0};
  double prepare_seconds = 0;
  WLM_TRY(wlmi_operands_create(session->context, session->matrix, &session->problem, &session->args, options->seed,
                               &operands));
  wlmi_entrant_variant(session->context, &operands, options->variant, &entrant);
  if (entrant.failure) WLM_TRY(wlmi_fail(entrant.status, "%s", entrant.failure));
  WLM_TRY(wlmi_entrant_time_prepare(&entrant, PREPARE_SAMPLES, &prepare_seconds));
  WLM_TRY(wlmi_entrant_time(operands.device, &entrant, 1e-3, SAMPLES));
  const wlmi_plan_record *plan = &entrant.plan->record;
  wlmi_report_object(report, NULL);
  wlmi_report_integer(report, "n", session->problem.n);
  wlmi_report_string(report, "variant", entrant.name);
  wlmi_report_string(report, "step", wlmi_step_name(plan->decision.step));
  wlmi_report_real(report, "us", "%.2f", entrant.seconds * 1e6);
  wlmi_report_real(report, "spread", "%.3f", entrant.spread);
  if (report->json || entrant.prepared) { /* the lines for people leave it out where nothing is prepared */
    wlmi_report_real(report, "prepare_us", "%.2f", prepare_seconds * 1e6);
    wlmi_report_integer(report, "prepared_bytes", (int64_t)wlm_plan_prepared_size(entrant.plan));
  }
  if (session->problem.transpose) wlmi_report_real(report, "transpose_us", "%.2f", plan->transpose_seconds * 1e6);
  wlmi_report_real(report, "gbs", "%.2f",
                   wlmi_gather_gbs(&operands.spec, operands.a.rows, operands.edges, entrant.seconds));
  if (report->json || session->problem.sampling.sample != WLM_SAMPLE_NONE)
    wlmi_report_real(report, "kept_share", "%.3f", kept_share(&operands));
  if (options->check) status = check(report, &operands, &entrant, options->seed, max_rel_err);
  wlmi_report_close(report);
done:
  wlmi_entrant_release(&entrant);
  wlmi_operands_release(&operands);
  return status;
}

wlm_status wlmi_cmd_run(const wlmi_cli_options *options, wlmi_report *report) {
  wlm_status status;
  wlmi_session session = {0};
  double max_rel_err = 0;
  WLM_TRY(wlmi_session_open(options, &session));
  session.multiplies = 1;
  WLM_TRY(wlmi_session_load(&session, options->arguments[0]));
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "input", options->arguments[0]);
  wlmi_report_device(report, session.context);
  wlmi_report_array(report, "runs");
  for (int i = 0; i < options->n_count && status == WLM_OK; i++) {
    session.problem.n = options->n[i];
    status = run_width(report, &session, options, &max_rel_err);
  }
  wlmi_report_close(report);
  if (options->check && report->json) {
    wlmi_report_flag(report, "verified", status == WLM_OK);
    wlmi_report_real(report, "max_rel_err", "%.3g", max_rel_err);
  }
  wlmi_report_close(report);
  if (options->check && status == WLM_OK) wlmi_report_line(report, "verified: max_rel_err=%.3g", max_rel_err);
done:
  wlmi_session_close(&session);
  return status;
}

static wlm_status explain_width(wlmi_report *report, const wlmi_session *session, const char *variant) {
  wlm_status status;
  wlm_plan *plan = NULL;
  char *text = NULL;
  WLM_TRY(variant ? wlm_plan_create_variant(session->context, session->matrix, &session->problem, variant, &plan)
                  : wlm_plan_create(session->context, session->matrix, &session->problem, &plan));
  WLM_TRY(wlm_plan_explain(plan, report->json, &text));
  wlmi_report_block(report, text);
done:
  wlm_string_free(text);
  wlm_plan_destroy(plan);
  return status;
}

wlm_status wlmi_cmd_explain(const wlmi_cli_options *options, wlmi_report *report) {
  wlm_status status;
  wlmi_session session = {0};
  WLM_TRY(wlmi_session_open(options, &session));
  WLM_TRY(wlmi_session_load(&session, options->arguments[0]));
  wlmi_report_array(report, NULL);
  for (int i = 0; i < options->n_count && status == WLM_OK; i++) {
    session.problem.n = options->n[i];
    status = explain_width(report, &session, options->variant);
  }
done:
  wlmi_session_close(&session);
  return status;
}
