/* Attention in a graph: C[i,:] = sum_p exp(a_p) B[j_p,:] / sum_p exp(a_p) over the edges p of node i, then relu, with
 * the scores a_p as values of A. The weight is a user's expression, and a column of ones in B gives its sum. cc
 * custom_op.c $(pkg-config --cflags --libs warploom) && ./a.out */
#include <stdio.h>
#include <stdlib.h>
#include <warploom/warploom.h>

static void check(wlm_status status) {
  if (status == WLM_OK) return;
  fprintf(stderr, "%s: %s\n", wlm_status_message(status), wlm_error_detail());
  exit(1);
}

int main(void) {
  /* node 0 looks at nodes 0, 1, 2, node 1 at itself, node 2 at 0 and 1; two features and a one for each */
  const int32_t rowptr[] = {0, 3, 4, 6}, colind[] = {0, 1, 2, 1, 0, 1};
  const float scores[] = {0, 0, 0, 5, 1, -1}, b[] = {1, 10, 1, 2, -20, 1, 6, 40, 1};
  float c[9];
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_context *context;
  options.device = "host";
  check(wlm_context_create(&options, &context));
  wlm_csr csr = WLM_CSR_INIT;
  csr.rows = csr.cols = 3, csr.nnz = 6;
  csr.rowptr = rowptr, csr.colind = colind, csr.values = scores;
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = 3;
  problem.reduce = WLM_CUSTOM;
  problem.custom = "message=exp(a)*b; init=0; reduce=acc+x; combine=reduce";
  problem.activation = "relu(x)";
  check(wlm_spmm(context, &csr, &problem, b, c, NULL));
  for (int i = 0; i < 9; i += 3) printf("%.4g %.4g\n", c[i] / c[i + 2], c[i + 1] / c[i + 2]);
  wlm_context_destroy(context);
}
