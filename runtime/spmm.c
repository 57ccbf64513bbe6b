/* wlm_spmm: one call for a matrix that is used once. The context caches what depends on the problem and the size of the
 * matrix (runtime/decisions.h), but nothing that depends on the contents of A. */
#include "core/problem/cell.h"
#include "core/problem/structs.h"
#include "runtime/decide.h"
#include "runtime/helper.h"

static const char function[] = "wlm_spmm"; /* for messages */

/* A call: A, and op(A) with the place of its entries in A. */
typedef struct one_call {
  wlm_context *context;
  wlm_problem problem;
  wlm_execute_args args;
  const wlm_csr *a, *op;
  const void *order;            /* NULL = in the same place */
  wlm_csr transposed;           /* op(A), if it is not A */
  wlmi_transpose_layout layout; /* of A^T in the workspace; no bytes if it is not built for this call */
  void *const *kernels;         /* which build it; NULL = the host does */
} one_call;

/* Makes A^T op(A). Its arrays are NULL if it is not built yet. */
static void take_transpose(one_call *c, const wlm_csr *a) {
  c->transposed = wlmi_transpose_given(a);
  c->op = &c->transposed;
  c->order = a->t_order;
}

/* Builds A^T in the stream's workspace. */
static wlm_status build(one_call *c, char *memory) {
  wlm_csr a = *c->a;
  WLM_CHECK(wlmi_transpose_build(c->context->device, c->kernels, &c->layout, memory, memory + c->layout.scratch,
                                 c->args.stream, &a));
  take_transpose(c, &a);
  return WLM_OK;
}

static wlm_status bind(const one_call *c, const wlm_plan *plan, wlmi_bound *bound) {
  return plan->shape.loaded.program.walks_a ? wlmi_bind(&plan->shape, c->a, c->a->rowptr, NULL, 1, bound)
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
  const size_t behind = c->layout.scratch + bound.workspace_size;
  WLM_TRY(wlmi_workspace_take(&c->context->workspaces, device, c->args.stream,
                              behind > c->layout.size ? behind : c->layout.size, &workspace));
  c->args.workspace = workspace.memory;
  c->args.workspace_size = workspace.size - c->layout.scratch;
  if (c->layout.size) {
    WLM_TRY(build(c, workspace.memory));
    WLM_TRY(bind(c, &decided->plan, &bound)); /* to where A^T is now known to be */
    c->args.workspace = (char *)workspace.memory + c->layout.scratch;
  }
  status = wlmi_run(function, &decided->plan.shape, &bound, &c->args, NULL);
done:
  wlmi_workspace_give(&c->context->workspaces, device, c->args.stream, &workspace);
  wlmi_decided_drop(decided);
  return status;
}

static wlm_status run_transposed(one_call *c) {
  wlmi_help help;
  if (!c->a->t_rowptr && wlmi_scatter_pays(&c->problem, c->a)) {
    const wlm_status status = run(c, WLMI_USE_SCATTER);
    if (status != WLM_ERR_NOT_FOUND) return status;
    wlmi_clear_error();
  }
  take_transpose(c, c->a);
  if (c->a->t_rowptr) return run(c, WLMI_USE_ONE_CALL);
  const int may_wait = wlmi_transpose_may_wait(c->context->device, c->a, c->args.stream);
  WLM_CHECK(wlmi_transpose_layout_of(c->a, &c->layout));
  WLM_CHECK(wlmi_help_load(c->context, WLMI_HELPER_TRANSPOSE, c->a, may_wait, &help));
  c->kernels = help.kernels;
  if (!c->kernels) c->layout.size = c->layout.scratch; /* the host needs no scratch */
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
