/* wlm_spmm: one call for a matrix that is used once. The context caches what depends on the problem and the size of the
 * matrix (runtime/decisions.h), but nothing that depends on the contents of A. */
#include "core/problem/cell.h"
#include "core/problem/structs.h"
#include "runtime/decide.h"
#include "runtime/sort_device.h"
#include "runtime/transpose.h"

static const char function[] = "wlm_spmm"; /* for messages */

/* The gradients by argmax need no workspace. */
static wlm_status run_backward(const wlm_plan *decided, const wlm_csr *csr, const wlm_csr *a, const void *order,
                               const wlm_execute_args *call) {
  wlm_plan plan = *decided;
  WLM_CHECK(wlmi_bind(&plan.shape, csr, a->rowptr, order, 1, &plan.bound));
  WLM_CHECK(wlmi_plan_bind_backward(&plan, &plan.bound, a));
  return wlmi_plan_run_backward(function, &plan, call);
}

static int is_backward(const wlm_plan *plan, const wlm_execute_args *call) {
  return plan->shape.want_argmax && call->x;
}

/* Here and below csr is op(A), and a is A itself. */
static wlm_status bind(const wlm_plan *plan, const wlm_csr *csr, const wlm_csr *a, const void *order,
                       wlmi_bound *bound) {
  return plan->shape.walks_a ? wlmi_bind(&plan->shape, a, a->rowptr, NULL, 1, bound)
                             : wlmi_bind(&plan->shape, csr, a->rowptr, order, 1, bound);
}

static wlm_status run_decided(wlm_context *context, const wlm_plan *plan, const wlm_csr *csr, const wlm_csr *a,
                              const void *order, wlm_execute_args *call) {
  wlmi_bound bound;
  wlmi_lent workspace = {0};
  wlm_status status;
  if (is_backward(plan, call)) return run_backward(plan, csr, a, order, call);
  WLM_TRY(bind(plan, csr, a, order, &bound));
  WLM_TRY(wlmi_workspace_take(&context->workspaces, context->device, call->stream, bound.workspace_size, &workspace));
  call->workspace = workspace.memory;
  call->workspace_size = workspace.size;
  status = wlmi_run(function, &plan->shape, &bound, call, NULL);
done:
  wlmi_workspace_give(&context->workspaces, context->device, call->stream, &workspace);
  return status;
}

static wlm_status decide(wlm_context *context, const wlm_problem *problem, const wlm_csr *csr, wlmi_cell_use cell,
                         wlmi_decided **decided) {
  wlm_stats stats;
  wlmi_stats_estimate(csr->rows, csr->cols, csr->nnz, &stats);
  const wlmi_decide_request request = {problem, csr, &stats, cell, NULL};
  return wlmi_decide(context, &request, decided);
}

/* WLM_ERR_NOT_FOUND if the products are to scatter from A, and no family can. */
static wlm_status run(wlm_context *context, const wlm_problem *problem, const wlm_csr *csr, wlmi_cell_use cell,
                      wlm_execute_args *call) {
  wlmi_decided *decided = NULL;
  wlm_status status = decide(context, problem, csr, cell, &decided);
  if (status == WLM_OK) status = run_decided(context, &decided->plan, csr, csr, NULL, call);
  wlmi_decided_drop(decided);
  return status;
}

/* Builds A^T on the host, for this call only (wlmi_transpose_load says where). */
static wlm_status run_on_host_transpose(wlm_context *context, const wlm_problem *problem, const wlm_csr *csr,
                                        wlm_execute_args *call) {
  wlm_matrix_options options = WLM_MATRIX_OPTIONS_INIT;
  wlm_matrix *matrix = NULL;
  wlmi_matrix_view view;
  wlmi_decided *decided = NULL;
  wlm_status status;
  options.grade = WLM_STATS_ESTIMATED;
  options.stream = call->stream;
  WLM_TRY(wlm_matrix_create(context, csr, &options, &matrix));
  WLM_TRY(wlmi_matrix_see(matrix, problem, &view));
  WLM_TRY(decide(context, problem, &view.csr, WLM_CELL_ONE_CALL, &decided));
  WLM_TRY(run_decided(context, &decided->plan, &view.csr, csr, view.order, call));
  status = context->device->ops->wait(context->device, call->stream);
done:
  wlmi_decided_drop(decided);
  wlm_matrix_destroy(matrix);
  return status;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Builds A^T in the stream's workspace, then multiplies by it. The product's workspace reuses the memory of the
 * scratch. */
static wlm_status run_built_transpose(wlm_context *context, const wlm_problem *problem, const wlm_csr *csr,
                                      wlm_execute_args *call) {
  wlmi_device *device = context->device;
  void *kernels[WLM_MAX_PASSES] = {0};
  wlmi_transpose_layout layout;
  wlmi_lent workspace = {0};
  wlmi_decided *decided = NULL;
  wlmi_bound bound;
  wlm_csr transposed = *csr;
  wlm_status status = wlmi_transpose_load(context, csr, call->stream, kernels);
  if (status == WLM_ERR_NO_COMPILER) return run_on_host_transpose(context, problem, csr, call);
  if (status != WLM_OK) return status;
  transposed.rows = csr->cols;
  transposed.cols = csr->rows;
  WLM_TRY(wlmi_transpose_layout_of(csr, &layout));
  WLM_TRY(decide(context, problem, &transposed, WLM_CELL_ONE_CALL, &decided));
  const wlm_plan *plan = &decided->plan;
  WLM_TRY(bind(plan, &transposed, csr, NULL, &bound)); /* only to learn the workspace size */
  WLM_TRY(wlmi_workspace_take(&context->workspaces, device, call->stream,
                              larger(layout.size, layout.scratch + bound.workspace_size), &workspace));
  char *const memory = workspace.memory;
  void *const order = memory + layout.order;
  transposed.rowptr = memory + layout.rowptr;
  transposed.colind = memory + layout.colind;
  WLM_TRY(wlmi_transpose_enqueue(device, kernels, csr, memory + layout.rowptr, memory + layout.colind, order,
                                 memory + layout.scratch, call->stream));
  if (is_backward(plan, call)) {
    status = run_backward(plan, &transposed, csr, order, call);
    goto done;
  }
  call->workspace = memory + layout.scratch;
  call->workspace_size = workspace.size - layout.scratch;
  WLM_TRY(bind(plan, &transposed, csr, order, &bound));
  status = wlmi_run(function, &plan->shape, &bound, call, NULL);
done:
  wlmi_workspace_give(&context->workspaces, device, call->stream, &workspace);
  wlmi_decided_drop(decided);
  return status;
}

static wlm_status run_transposed(wlm_context *context, const wlm_problem *problem, const wlm_csr *csr,
                                 wlm_execute_args *call) {
  if (wlmi_scatter_pays(problem, csr)) {
    const wlm_status status = run(context, problem, csr, WLM_CELL_SCATTER, call);
    if (status != WLM_ERR_NOT_FOUND) return status;
    wlmi_clear_error();
  }
  return run_built_transpose(context, problem, csr, call);
}

wlm_status wlm_spmm(wlm_context *context, const wlm_csr *csr, const wlm_problem *given, const wlm_execute_args *args) {
  wlm_csr matrix;
  wlm_problem problem;
  wlm_execute_args call;
  WLM_CHECK(wlmi_need(function, "context csr problem args", context, csr, given, args));
  WLM_CHECK(wlmi_struct_read(&wlmi_struct_csr, csr, &matrix));
  WLM_CHECK(wlmi_struct_read(&wlmi_struct_problem, given, &problem));
  WLM_CHECK(wlmi_struct_read(&wlmi_struct_execute_args, args, &call));
  WLM_CHECK(wlmi_matrix_check(&matrix));
  if (problem.policy.expected_calls > 1) problem.policy.expected_calls = 1; /* an invalid value is refused later */
  return wlmi_finish(problem.transpose ? run_transposed(context, &problem, &matrix, &call)
                                       : run(context, &problem, &matrix, WLM_CELL_ONE_CALL, &call));
}
