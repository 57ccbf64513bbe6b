/* Multi-head graph attention: C[i, head h] = sum over the edges p = (i, j) of alpha[p, h] B[j, head h], where alpha is
 * the softmax of LeakyReLU(left[i, h] + right[j, h]) over the edges of node i, as in GAT (Velickovic et al., 2018). The
 * weights are computed here on the host; the aggregation is one call, which writes no features per edge to memory.
 *   cc attention.c $(pkg-config --cflags --libs warploom) -lm && ./a.out */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <warploom/warploom.h>

enum { NODES = 4, EDGES = 9, HEADS = 2, WIDTH = 3, N = HEADS * WIDTH };
static const int32_t rowptr[NODES + 1] = {0, 3, 5, 8, 9}, colind[EDGES] = {0, 1, 2, 1, 3, 0, 2, 3, 3};

static void check(wlm_status status) {
  if (status == WLM_OK) return;
  fprintf(stderr, "%s: %s\n", wlm_status_message(status), wlm_error_detail());
  exit(1);
}

/* alpha[p * HEADS + h], each head's weights of a node adding up to 1 */
static void edge_softmax(const float left[][HEADS], const float right[][HEADS], float *alpha) {
  for (int i = 0; i < NODES; i++)
    for (int h = 0; h < HEADS; h++) {
      float most = -INFINITY, sum = 0;
      for (int p = rowptr[i]; p < rowptr[i + 1]; p++) {
        const float score = left[i][h] + right[colind[p]][h];
        alpha[p * HEADS + h] = score < 0 ? 0.2f * score : score;
        most = fmaxf(most, alpha[p * HEADS + h]);
      }
      for (int p = rowptr[i]; p < rowptr[i + 1]; p++) sum += alpha[p * HEADS + h] = expf(alpha[p * HEADS + h] - most);
      for (int p = rowptr[i]; p < rowptr[i + 1]; p++) alpha[p * HEADS + h] /= sum;
    }
}

int main(void) {
  const float left[NODES][HEADS] = {{0, 1}, {-1, 0}, {2, -1}, {0, 0}};
  const float right[NODES][HEADS] = {{1, 0}, {0, 2}, {-1, 1}, {3, -2}};
  float alpha[EDGES * HEADS], b[NODES * N], c[NODES * N];
  edge_softmax(left, right, alpha);
  for (int k = 0; k < NODES; k++) /* a node has its number in head 0 and 1, 10, 100 ... in head 1 */
    for (int j = 0; j < N; j++) b[k * N + j] = j < WIDTH ? (float)k : powf(10, (float)k);

  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_context *context;
  options.device = "host"; /* pointers below are device pointers where this is a GPU */
  check(wlm_context_create(&options, &context));
  wlm_csr csr = WLM_CSR_INIT;
  csr.rows = csr.cols = NODES, csr.nnz = EDGES;
  csr.rowptr = rowptr, csr.colind = colind;
  csr.values = alpha; /* EDGES x HEADS */
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = N;
  problem.heads = HEADS;
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = b, args.c = c;
  check(wlm_spmm(context, &csr, &problem, &args));
  for (int i = 0; i < NODES; i++) printf("%.2f %.2f\n", c[i * N], c[i * N + WIDTH]);
  wlm_context_destroy(context);
}
