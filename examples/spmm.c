/* C = A * B in three ways: in one call, with a plan for a matrix that is used often, and with the same plan bound to
 * another matrix, as for mini-batches. Runs on the host device, where device pointers are ordinary pointers:
 *   cc spmm.c $(pkg-config --cflags --libs warploom) && ./a.out */
#include <stdio.h>
#include <stdlib.h>
#include <warploom/warploom.h>

static void check(wlm_status status) {
  if (status == WLM_OK) return;
  fprintf(stderr, "%s: %s\n", wlm_status_message(status), wlm_error_detail());
  exit(1);
}

int main(void) {
  /* [ 1 0 2 ]   rows 0 and 2 of B, then row 1 */
  /* [ 0 3 0 ]                                 */
  const int32_t rowptr[] = {0, 2, 3}, colind[] = {0, 2, 1};
  const float values[] = {1, 2, 3}, b[] = {1, 10, 2, 20, 3, 30};
  float c[4];

  /* one call */
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  options.device = "host"; /* NULL = the first GPU, where there is one */
  wlm_context *context;
  check(wlm_context_create(&options, &context));
  wlm_csr csr = WLM_CSR_INIT;
  csr.rows = 2, csr.cols = 3, csr.nnz = 3;
  csr.rowptr = rowptr, csr.colind = colind, csr.values = values;
  wlm_problem problem = WLM_PROBLEM_INIT; /* sum of a * b in f32 */
  problem.n = 2;
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = b, args.c = c;
  check(wlm_spmm(context, &csr, &problem, &args));
  printf("%g %g\n%g %g\n", c[0], c[1], c[2], c[3]);

  /* the same with a plan, whose kernel is chosen from what was tuned for such a matrix */
  wlm_matrix *matrix;
  check(wlm_matrix_create(context, &csr, NULL, &matrix));
  wlm_plan *plan;
  check(wlm_plan_create(context, matrix, &problem, &plan));
  args.workspace_size = wlm_plan_workspace_size(plan);
  args.workspace = malloc(args.workspace_size + 1);
  check(wlm_plan_execute(plan, &args));
  printf("%s\n%g %g\n%g %g\n", wlm_plan_variant(plan), c[0], c[1], c[2], c[3]);

  /* another matrix of the same types: here the first row alone */
  csr.rows = 1, csr.nnz = 2;
  check(wlm_plan_rebind(plan, &csr));
  if (wlm_plan_workspace_size(plan) > args.workspace_size) {
    args.workspace_size = wlm_plan_workspace_size(plan);
    args.workspace = realloc(args.workspace, args.workspace_size);
  }
  check(wlm_plan_execute(plan, &args));
  printf("%g %g\n", c[0], c[1]);

  free(args.workspace);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
}
