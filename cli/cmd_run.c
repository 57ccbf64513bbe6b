/* run: times a product with the chosen kernel. explain: says why this kernel was chosen. */
#include <math.h>

#include "cli/commands.h"
#include "cli/family.h"
#include "cli/session.h"
#include "runtime/dispatch/plan.h"
#include "tuner/method.h"
#include "tuner/timing.h"

static wlm_status check(wlmi_report *report, wlmi_operands *operands, wlmi_method *method, uint64_t seed,
                        double *max_rel_err) {
  wlmi_verifier *verifier = NULL;
  wlm_status status;
  WLM_TRY(wlmi_verifier_create(operands, seed, &verifier));
  wlmi_method_verify(method, operands, verifier);
  if (!method->failure || method->status == WLM_ERR_MISMATCH) {
    const int edges = operands->spec.problem.operation == WLM_SDDMM;
    wlmi_report_integer(report, edges ? "checked_edges" : "checked_rows",
                        edges ? wlmi_verifier_edges(verifier) : wlmi_verifier_rows(verifier));
    wlmi_report_real(report, "max_rel_err", "%.3g", method->max_rel_err);
    *max_rel_err = fmax(*max_rel_err, method->max_rel_err);
  }
  if (method->failure) status = wlmi_fail(method->status, "%s", method->failure);
done:
  wlmi_verifier_destroy(verifier);
  return status;
}

/* The share of edges that the product uses with sampling. */
static double kept_share(const wlmi_operands *operands) {
  return operands->a.nnz ? (double)operands->edges / (double)operands->a.nnz : 1;
}

static wlm_status run_width(wlmi_report *report, wlmi_session *session, const wlmi_cli_options *options,
                            double *max_rel_err) {
  enum { SAMPLES = 9, PREPARE_SAMPLES = 5 };
  wlm_status status;
  wlmi_operands operands = {0};
  wlmi_method method = {0};
  double prepare_seconds = 0;
  char name[WLMI_VARIANT_NAME];
  WLM_TRY(wlmi_operands_create(session->context, session->matrix, &session->problem, &session->args, options->seed,
                               &operands));
  if (options->variant)
    WLM_TRY(wlmi_family_best(session->context, session->matrix, &operands.spec, options->variant, name));
  wlmi_method_variant(session->context, &operands, options->variant ? name : NULL, &method);
  if (method.failure) WLM_TRY(wlmi_fail(method.status, "%s", method.failure));
  WLM_TRY(wlmi_method_time_prepare(&method, PREPARE_SAMPLES, &prepare_seconds));
  WLM_TRY(wlmi_method_time(operands.device, &method, 1e-3, SAMPLES));
  const wlmi_plan_reason *plan = &method.plan->reason;
  wlmi_report_object(report, NULL);
  wlmi_report_members(report, "n=%jd variant=%s step=%s us=%.2f spread=%.3f", session->problem.n, method.name,
                      wlmi_step_name(plan->decision.step), method.seconds * 1e6, method.spread);
  if (report->json || method.prepared) { /* the text output leaves it out if nothing is prepared */
    wlmi_report_members(report, "prepare_us=%.2f prepared_bytes=%jd", prepare_seconds * 1e6,
                        (int64_t)wlm_plan_prepared_size(method.plan));
  }
  if (session->problem.transpose) wlmi_report_real(report, "transpose_us", "%.2f", plan->transpose_seconds * 1e6);
  wlmi_report_real(report, "gbs", "%.2f",
                   wlmi_gather_gbs(&operands.spec, operands.a.rows, operands.edges, method.seconds));
  if (report->json || session->problem.sampling.sample != WLM_SAMPLE_NONE)
    wlmi_report_real(report, "kept_share", "%.3f", kept_share(&operands));
  if (options->check) status = check(report, &operands, &method, options->seed, max_rel_err);
  wlmi_report_close(report);
done:
  wlmi_method_release(&method);
  wlmi_operands_release(&operands);
  return status;
}

static wlm_status run_input(wlmi_session *session, const char *input, const wlmi_cli_options *options,
                            wlmi_report *report) {
  wlm_status status = WLM_OK;
  double max_rel_err = 0;
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "input", input);
  wlmi_report_device(report, session->context);
  wlmi_report_array(report, "runs");
  for (int i = 0; i < options->n_count && status == WLM_OK; i++) {
    session->problem.n = options->n[i];
    status = run_width(report, session, options, &max_rel_err);
  }
  wlmi_report_close(report);
  if (options->check && report->json) {
    wlmi_report_flag(report, "verified", status == WLM_OK);
    wlmi_report_real(report, "max_rel_err", "%.3g", max_rel_err);
  }
  wlmi_report_close(report);
  if (options->check && status == WLM_OK) wlmi_report_line(report, "verified: max_rel_err=%.3g", max_rel_err);
  return status;
}

static wlm_status explain_width(wlmi_report *report, const wlmi_session *session, const char *variant) {
  wlm_status status;
  wlm_plan *plan = NULL;
  char *text = NULL, name[WLMI_VARIANT_NAME];
  wlmi_spec spec;
  WLM_TRY(wlmi_context_spec(session->context, session->matrix, &session->problem, &spec));
  if (variant) WLM_TRY(wlmi_family_best(session->context, session->matrix, &spec, variant, name));
  WLM_TRY(variant ? wlm_plan_create_variant(session->context, session->matrix, &session->problem, name, &plan)
                  : wlm_plan_create(session->context, session->matrix, &session->problem, &plan));
  WLM_TRY(wlm_plan_explain(plan, report->json, &text));
  wlmi_report_block(report, text);
done:
  wlm_string_free(text);
  wlm_plan_destroy(plan);
  return status;
}

static wlm_status explain_input(wlmi_session *session, const char *input, const wlmi_cli_options *options,
                                wlmi_report *report) {
  wlm_status status = WLM_OK;
  wlmi_text label = {0};
  wlmi_text_printf(&label, "input     %s\n", input);
  if (options->argument_count > 1 && !report->json) wlmi_report_block(report, label.data);
  wlmi_report_array(report, NULL);
  for (int i = 0; i < options->n_count && status == WLM_OK; i++) {
    session->problem.n = options->n[i];
    status = explain_width(report, session, options->variant);
  }
  wlmi_text_release(&label);
  return status;
}

static wlm_status for_inputs(const wlmi_cli_options *options, wlmi_report *report, int multiplies,
                             wlmi_session_input_fn *each) {
  wlmi_session session = {0};
  wlm_status status = wlmi_session_open(options, &session);
  session.multiplies = multiplies;
  if (status == WLM_OK) status = wlmi_session_each(&session, options, report, each);
  wlmi_session_close(&session);
  return status;
}

wlm_status wlmi_cmd_run(const wlmi_cli_options *options, wlmi_report *report) {
  return for_inputs(options, report, 1, run_input);
}

wlm_status wlmi_cmd_explain(const wlmi_cli_options *options, wlmi_report *report) {
  return for_inputs(options, report, 0, explain_input);
}
