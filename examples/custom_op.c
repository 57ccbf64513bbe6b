/* Attention in a graph: C[i,:] = relu(sum_p w_p B[j_p,:] / sum_p w_p) over the edges p of node i, w_p = exp(a_p - the
 * largest a of the node), with the scores a_p as values of A. The weight is a user-defined expression, and a column of
 * ones in B gives the sum of the weights. Subtracting the largest score keeps exp in range.
 *
 *   cc custom_op.c $(pkg-config --cflags --libs warploom) && ./a.out */
#include <stdio.h>
#include <stdlib.h>
#include <warploom/warploom.h>

enum { NODES = 4, EDGES = 6, FEATURES = 2, N = FEATURES + 1 };

static void check(wlm_status status) {
  if (status == WLM_OK) return;
  fprintf(stderr, "%s: %s\n", wlm_status_message(status), wlm_error_detail());
  exit(1);
}

int main(void) {
  /* node 0 attends to nodes 0, 1, 2, node 1 to itself, node 2 to 0 and 1, node 3 to none */
  const int32_t rowptr[] = {0, 3, 4, 6, 6}, colind[] = {0, 1, 2, 1, 0, 1};
  float scores[EDGES] = {0, 0, 0, 500, 1, -1}, largest[NODES], c[NODES * N];
  const float b[NODES * N] = {1, 10, 1, 2, -20, 1, 6, 40, 1, 5, 50, 1};
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_context *context;
  options.device = "host";
  check(wlm_context_create(&options, &context));
  wlm_csr csr = WLM_CSR_INIT;
  csr.rows = csr.cols = NODES, csr.nnz = EDGES;
  csr.rowptr = rowptr, csr.colind = colind, csr.values = scores;

  wlm_problem maximum = WLM_PROBLEM_INIT;
  maximum.n = 1;
  maximum.message = WLM_COPY_A; /* this message does not read B */
  maximum.reduce = WLM_MAX;
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.c = largest;
  check(wlm_spmm(context, &csr, &maximum, &args));
  for (int i = 0; i < NODES; i++)
    for (int p = rowptr[i]; p < rowptr[i + 1]; p++) scores[p] -= largest[i];

  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = N;
  problem.reduce = WLM_CUSTOM;
  problem.custom = "message=exp(a)*b; init=0; reduce=acc+x; combine=reduce";
  problem.epilogue.activation = "relu(x)"; /* the same before the quotient as behind it, since weights are above 0 */
  args.b = b, args.c = c;
  check(wlm_spmm(context, &csr, &problem, &args));
  for (int i = 0; i < NODES; i++) {
    float *row = c + i * N, sum = row[FEATURES];
    for (int j = 0; j < FEATURES && sum > 0; j++) row[j] /= sum; /* a node without edges stays 0 */
    printf("%.4g %.4g\n", row[0], row[1]);
  }
  wlm_context_destroy(context);
}
