/* Calls of the public interface that its new version spells differently. Goes when that version is everywhere: the
 * first branch of each function then takes its place. */
#ifndef WLM_BENCH_CALLS_H
#define WLM_BENCH_CALLS_H

#include "common/status.h"

#define WLM_CALLS_ARE_NEW (WLM_VERSION_MAJOR > 0 || WLM_VERSION_MINOR >= 2)

static inline wlm_status wlmi_call_spmm(wlm_context *context, const wlm_csr *csr, const wlm_problem *problem,
                                        const float *b, float *c, void *stream) {
#if WLM_CALLS_ARE_NEW
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = b;
  args.c = c;
  args.stream = stream;
  return wlm_spmm(context, csr, problem, &args);
#else
  return wlm_spmm(context, csr, problem, b, c, stream);
#endif
}

static inline wlm_status wlmi_call_execute(const wlm_plan *plan, const float *b, float *c, void *workspace, size_t size,
                                           void *stream) {
#if WLM_CALLS_ARE_NEW
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = b;
  args.c = c;
  args.workspace = workspace;
  args.workspace_size = size;
  args.stream = stream;
  return wlm_plan_execute(plan, &args);
#else
  (void)size;
  return wlm_plan_execute(plan, b, c, workspace, stream);
#endif
}

static inline wlm_status wlmi_call_rebind(wlm_plan *plan, const wlm_csr *csr) {
#if WLM_CALLS_ARE_NEW
  return wlm_plan_rebind(plan, csr);
#else
  (void)plan, (void)csr;
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "this version cannot rebind a plan");
#endif
}

static inline wlm_status wlmi_call_matrix_measured(wlm_context *context, const wlm_csr *csr, void *stream,
                                                   wlm_matrix **matrix) {
#if WLM_CALLS_ARE_NEW
  wlm_matrix_options options = WLM_MATRIX_OPTIONS_INIT;
  options.stream = stream;
  return wlm_matrix_create(context, csr, &options, matrix);
#else
  (void)stream;
  return wlm_matrix_create(context, csr, NULL, matrix);
#endif
}

static inline wlm_status wlmi_call_matrix_estimated(wlm_context *context, const wlm_csr *csr, wlm_matrix **matrix) {
#if WLM_CALLS_ARE_NEW
  wlm_matrix_options options = WLM_MATRIX_OPTIONS_INIT;
  options.grade = WLM_STATS_ESTIMATED;
  return wlm_matrix_create(context, csr, &options, matrix);
#else
  (void)context, (void)csr;
  *matrix = NULL;
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "this version cannot estimate stats");
#endif
}

#endif
