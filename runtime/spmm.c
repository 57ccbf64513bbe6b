/* wlm_spmm: one call for a matrix that is used once. The context caches what depends on the problem and the size of the
 * matrix (runtime/decisions.h), but nothing that depends on the contents of A. */
#include "core/problem/cell.h"
#include "core/problem/structs.h"
#include "runtime/decide.h"
#include "runtime/sort_device.h"
#include "runtime/transpose.h"

static const char function[] = "wlm_spmm"; /* for messages */

/* A call: A, and op(A) with the place of its entries in A. */
typedef struct one_call {
  wlm_context *context;
  wlm_problem problem;
  wlm_execute_args args;
  const wlm_csr *a, *op;
  const void *order;           /* NULL = in the same place */
  wlm_csr transposed;          /* op(A), if it is not A */
  void *const *build;          /* kernels that build A^T for this call; NULL = op(A) is there */
  wlmi_transpose_layout built; /* where in the workspace; no bytes if nothing is built */
} one_call;

/* Describes A^T at its places in this memory. */
static void place(one_call *c, const wlmi_transpose_layout *at, char *memory) {
  c->transposed.rowptr = memory + at->rowptr;
  c->transposed.colind = memory + at->colind;
  c->order = memory + at->order;
}

/* Builds A^T in the stream's workspace. */
static wlm_status build(one_call *c, char *memory) {
  const wlmi_transpose_layout *at = &c->built;
  place(c, at, memory);
  return wlmi_transpose_enqueue(c->context->device, c->build, c->a, memory + at->rowptr, memory + at->colind,
                                memory + at->order, memory + at->scratch, c->args.stream);
}

static wlm_status bind(const one_call *c, const wlm_plan *plan, wlmi_bound *bound) {
  return plan->shape.walks_a ? wlmi_bind(&plan->shape, c->a, c->a->rowptr, NULL, 1, bound)
                             : wlmi_bind(&plan->shape, c->op, c->a->rowptr, c->order, 1, bound);
}

/* Enqueues the product in the stream's workspace, where its own one takes the place of the scratch for A^T.
 * WLM_ERR_NOT_FOUND if the product is to scatter from A, and no family can. */
static wlm_status run(one_call *c, wlmi_use use) {
  wlmi_device *device = c->context->device;
  wlmi_decided *decided = NULL;
  wlmi_lent workspace = {0};
  wlmi_bound bound;
  wlm_stats stats;
  wlm_status status;
  wlmi_stats_estimate(c->op->rows, c->op->cols, c->op->nnz, &stats);
  const wlmi_decide_request request = {&c->problem, c->op, &stats, use, NULL};
  WLM_TRY(wlmi_decide(c->context, &request, &decided));
  WLM_TRY(bind(c, &decided->plan, &bound));
  const size_t behind = c->built.scratch + bound.workspace_size;
  WLM_TRY(wlmi_workspace_take(&c->context->workspaces, device, c->args.stream,
                              behind > c->built.size ? behind : c->built.size, &workspace));
  if (c->build) WLM_TRY(build(c, workspace.memory));
  if (c->build) WLM_TRY(bind(c, &decided->plan, &bound)); /* to where A^T is now known to be */
  c->args.workspace = c->build ? (char *)workspace.memory + c->built.scratch : workspace.memory;
  c->args.workspace_size = workspace.size - c->built.scratch;
  status = wlmi_run(function, &decided->plan.shape, &bound, &c->args, NULL);
done:
  wlmi_workspace_give(&c->context->workspaces, device, c->args.stream, &workspace);
  wlmi_decided_drop(decided);
  return status;
}

/* Builds A^T on the host, for this call only (wlmi_transpose_load says where). */
static wlm_status run_on_host_transpose(one_call *c, const wlmi_transpose_layout *at) {
  wlmi_device *device = c->context->device;
  void *memory = NULL;
  wlm_status status;
  WLM_TRY(device->ops->allocate(device, at->scratch, &memory));
  char *const bytes = memory;
  place(c, at, bytes);
  WLM_TRY(
      wlmi_transpose_on_host(device, c->args.stream, c->a, bytes + at->rowptr, bytes + at->colind, bytes + at->order));
  WLM_TRY(run(c, WLMI_USE_ONE_CALL));
  status = device->ops->wait(device, c->args.stream);
done:
  device->ops->release(device, memory);
  return status;
}

static wlm_status run_transposed(one_call *c) {
  void *kernels[WLMI_MAX_PASSES] = {0};
  if (c->a->t_rowptr) {
    c->transposed = wlmi_transpose_given(c->a);
    c->op = &c->transposed;
    c->order = c->a->t_order;
    return run(c, WLMI_USE_ONE_CALL);
  }
  if (wlmi_scatter_pays(&c->problem, c->a)) {
    const wlm_status status = run(c, WLMI_USE_SCATTER);
    if (status != WLM_ERR_NOT_FOUND) return status;
    wlmi_clear_error();
  }
  wlmi_transpose_layout layout;
  WLM_CHECK(wlmi_transpose_layout_of(c->a, &layout));
  c->transposed = *c->a;
  c->transposed.rows = c->a->cols;
  c->transposed.cols = c->a->rows;
  c->op = &c->transposed;
  const wlm_status status = wlmi_transpose_load(c->context, c->a, c->args.stream, kernels);
  if (status == WLM_ERR_NO_COMPILER) return run_on_host_transpose(c, &layout);
  if (status != WLM_OK) return status;
  c->built = layout;
  c->build = kernels;
  return run(c, WLMI_USE_ONE_CALL);
}

wlm_status wlm_spmm(wlm_context *context, const wlm_csr *csr, const wlm_problem *problem,
                    const wlm_execute_args *args) {
  one_call c = {.context = context};
  wlm_csr copy;
  const void *seen;
  WLM_CHECK(wlmi_need(function, "context csr problem args", context, csr, problem, args));
  WLM_CHECK(wlmi_struct_see(&wlmi_struct_csr, csr, &copy, &seen));
  WLM_CHECK(wlmi_struct_read(&wlmi_struct_problem, problem, &c.problem));
  WLM_CHECK(wlmi_struct_read(&wlmi_struct_execute_args, args, &c.args));
  c.a = c.op = seen;
  WLM_CHECK(wlmi_matrix_check(c.a));
  if (c.problem.policy.expected_calls > 1) c.problem.policy.expected_calls = 1; /* an invalid value is refused later */
  return wlmi_finish(wlmi_needs_transpose(&c.problem) ? run_transposed(&c) : run(&c, WLMI_USE_ONE_CALL));
}
