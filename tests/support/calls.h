/* Short forms of library calls, in which tests pass only the arrays. A template call gives everything else: alpha,
 * beta, bias, seed, leading dimensions, stream. */
#pragma once

#include "support/defaults.h"

/* Executes with the template's workspace, passing the size that the plan needs. */
static inline wlm_status test_execute_args(const wlm_plan *plan, wlm_execute_args args) {
  args.workspace_size = wlm_plan_workspace_size(plan);
  return wlm_plan_execute(plan, &args);
}

/* Executes into C and, if the plan has them, argmax indices. */
static inline wlm_status test_execute_argmax_call(const wlm_plan *plan, const wlm_execute_args *call, const void *b,
                                                  void *c, void *argmax, void *workspace) {
  wlm_execute_args args = *call;
  args.b = b;
  args.c = c;
  args.argmax = argmax;
  args.workspace = workspace;
  return test_execute_args(plan, args);
}

static inline wlm_status test_execute_call(const wlm_plan *plan, const wlm_execute_args *call, const void *b, void *c,
                                           void *workspace) {
  return test_execute_argmax_call(plan, call, b, c, NULL, workspace);
}

static inline wlm_status test_execute_argmax(const wlm_plan *plan, const void *b, void *c, void *argmax,
                                             void *workspace) {
  const wlm_execute_args call = WLM_EXECUTE_ARGS_INIT;
  return test_execute_argmax_call(plan, &call, b, c, argmax, workspace);
}

static inline wlm_status test_execute(const wlm_plan *plan, const void *b, void *c, void *workspace) {
  return test_execute_argmax(plan, b, c, NULL, workspace);
}

static inline wlm_status test_execute_sddmm_call(const wlm_plan *plan, const wlm_execute_args *call, const void *x,
                                                 const void *b, void *dvalues, void *workspace) {
  wlm_execute_args args = *call;
  args.x = x;
  args.b = b;
  args.dvalues = dvalues;
  args.workspace = workspace;
  return test_execute_args(plan, args);
}

static inline wlm_status test_execute_sddmm(const wlm_plan *plan, const void *x, const void *b, void *dvalues,
                                            void *workspace) {
  const wlm_execute_args call = WLM_EXECUTE_ARGS_INIT;
  return test_execute_sddmm_call(plan, &call, x, b, dvalues, workspace);
}

/* A call of a gradient by argmax indices. */
static inline wlm_execute_args test_gradient_args(const wlm_execute_args *call, const void *x, const void *argmax,
                                                  const void *b, void *db, void *dvalues) {
  wlm_execute_args args = *call;
  args.x = x;
  args.argmax = (void *)(uintptr_t)argmax; /* which is only read */
  args.b = b;
  args.argmax_db = db;
  args.argmax_dvalues = dvalues;
  return args;
}

/* Computes the gradients of a product by its argmax indices, with a plan of their own. */
static inline wlm_status test_argmax_gradient_call(wlm_context *context, const wlm_matrix *matrix,
                                                   const wlm_problem *product, wlm_execute_args args) {
  wlm_problem problem = *product;
  wlm_plan *plan;
  problem.operation = WLM_ARGMAX_GRADIENT;
  wlm_status status = wlm_plan_create(context, matrix, &problem, &plan);
  if (status == WLM_OK) status = test_execute_args(plan, args);
  wlm_plan_destroy(plan);
  return status;
}

static inline wlm_status test_argmax_gradient(wlm_context *context, const wlm_matrix *matrix,
                                              const wlm_problem *product, const void *x, const void *argmax,
                                              const void *b, void *db, void *dvalues) {
  const wlm_execute_args call = WLM_EXECUTE_ARGS_INIT;
  return test_argmax_gradient_call(context, matrix, product, test_gradient_args(&call, x, argmax, b, db, dvalues));
}

static inline wlm_status test_spmm_call(wlm_context *context, const wlm_csr *csr, const wlm_problem *problem,
                                        const wlm_execute_args *call, const void *b, void *c) {
  wlm_execute_args args = *call;
  args.b = b;
  args.c = c;
  return wlm_spmm(context, csr, problem, &args);
}

static inline wlm_status test_spmm(wlm_context *context, const wlm_csr *csr, const wlm_problem *problem, const void *b,
                                   void *c) {
  const wlm_execute_args call = WLM_EXECUTE_ARGS_INIT;
  return test_spmm_call(context, csr, problem, &call, b, c);
}

/* Creates a matrix with the stats that the caller gives. */
static inline wlm_status test_matrix_given(wlm_context *context, const wlm_csr *csr, const wlm_stats *stats,
                                           wlm_matrix **matrix) {
  wlm_matrix_options options = MATRIX_OPTIONS(.grade = WLM_STATS_GIVEN, .stats = stats);
  return wlm_matrix_create(context, csr, &options, matrix);
}
