/* Attention over the edges of each row, in one pass over A:
 *
 *   C[i,h,:] = sum over edges p = (i, k) of softmax_p(score(p,h)) * B[k,h,:]
 *
 * The softmax is over the edges of row i. It is computed online (Milakov and Gimelshein 2018), so nothing of size nnz x
 * H is written. A call of the scores of GATConv:
 *
 *   wlm_problem problem = WLM_PROBLEM_INIT;
 *   problem.operation = WLM_ATTENTION;                   // score = WLM_SCORE_GAT
 *   problem.n = 64, problem.heads = H;                   // n / H columns for each head
 *   wlm_attention_operands attention = WLM_ATTENTION_OPERANDS_INIT;
 *   attention.left = left, attention.right = right;      // rows x H and cols x H
 *   wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
 *   args.b = b, args.c = c, args.attention = &attention;
 *   wlm_spmm(context, &a, &problem, &args);              // or wlm_plan_create and wlm_plan_execute
 *
 * wlm_problem.score is the score of edge p = (i, k) and head h, with a = the values of A, 0 where it has none:
 *
 *   WLM_SCORE_GAT    leaky_relu(left[i,h] + right[k,h] + a[p,h])
 *   WLM_SCORE_EDGE   a[p,h]; A must have values
 *   WLM_SCORE_GATV2  sum over the head's columns j of att[j] * leaky_relu(q[i,j] + B[k,j]), plus a[p,h]
 *   WLM_SCORE_DOT    scale * (sum over the head's columns j of q[i,j] * k[k,j]), plus a[p,h]
 *
 * A row without edges, or whose scores all are -inf, gives 0; a score of -inf gives its edge the weight 0; a NaN in a
 * score makes its row and head NaN. As in a product, 0 * Inf is NaN.
 *
 * The gradient is a plan with transpose = 1, which makes the weights again from `softmax`, as FlashAttention does from
 * one number for each row and head. It walks A^T once and is deterministic. alpha must be 1 and beta 0. For the weight
 * w[p,h] of edge p = (i, k), with x = dC:
 *
 *   db[k,h,:]    = sum over the edges p of column k of w[p,h] * x[i,h,:]
 *   dscores[p,h] = w[p,h] * (<x[i,h,:], B[k,h,:]> - delta[i,h]) * leaky_relu'(left[i,h] + right[k,h] + a[p,h])
 *   dright[k,h]  = sum over the edges p of column k of dscores[p,h]
 *
 * wlm_execute_args.db is cols x n of dense_type with leading dimension ldb, dscores nnz x H and dright cols x H of the
 * accumulator's type (f32, or f64 where dense_type is f64); all are overwritten, and dscores and dright may be NULL.
 * dscores is the gradient of a, the values of A. That of left is its sum over the edges of each row: WLM_SPMM with
 * message WLM_COPY_A, n = heads = H and dscores as its values.
 *
 * With WLM_SCORE_GATV2, db has the part of the scores besides, and dscores no factor leaky_relu'. With WLM_SCORE_DOT,
 * dscores has no such factor either, there is no dright, and
 *
 *   dk[k,h,:] = scale * (sum over the edges p of column k of dscores[p,h] * q[i,h,:])
 *
 * What is left out are sums over rows. WLM_ATTENTION_ROWS walks A, makes the weights again, too, and so reads no
 * dscores. It takes the operands of the gradient, with wlm_problem.dropout and the values of A as in the forward pass.
 * With z[p,j] = q[i,j] + B[k,j] for column j of head h, it gives for WLM_SCORE_GATV2
 *
 *   C[i,j]    = att[j] * sum over the edges p of row i of dscores[p,h] * leaky_relu'(z[p,j]), the gradient of q
 *   datt[i,j] = sum over the edges p of row i of dscores[p,h] * leaky_relu(z[p,j]); the gradient of att is the sum of
 *               these over all rows
 *
 * and for WLM_SCORE_DOT
 *
 *   C[i,h,:]  = scale * (sum over the edges p of row i of dscores[p,h] * k[k,h,:]), the gradient of q
 *
 * C and x have the leading dimension ldc. Alpha is 1 and beta 0; there is no epilogue and no transpose. Where dscores
 * are there anyway, C with WLM_SCORE_DOT is also a product: WLM_SPMM with dscores as the values of A (of the
 * accumulator's type, H for each edge), k as B and alpha = scale. */
#ifndef WARPLOOM_WARPLOOM_ATTENTION_H
#define WARPLOOM_WARPLOOM_ATTENTION_H

#include "warploom.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What attention reads and writes besides b, c, x, db and bias: wlm_execute_args.attention. H is
 * wlm_problem.heads. Arrays are row-major, on the device, and of the accumulator's type unless it says dense_type. */
struct wlm_attention_operands {
  size_t size;
  const void *left, *right; /* rows x H and cols x H with leading dimension ldt, for WLM_SCORE_GAT */
  const void *q;            /* rows x n of dense_type with leading dimension ldt, for WLM_SCORE_GATV2 and _DOT */
  const void *k;            /* cols x n of dense_type with leading dimension ldt, for WLM_SCORE_DOT */
  const void *att;          /* n elements, for WLM_SCORE_GATV2 */
  int64_t ldt;              /* in elements; 0 means H for left and right, n for q and k */
  double slope;             /* slope of leaky_relu for x < 0 */
  double scale;             /* of WLM_SCORE_DOT; often 1 / sqrt(n / H) */
  /* Where wlm_problem.dropout is set: the share of weights that are left out, 0 <= dropout < 1; the others count 1 / (1
   * - dropout) times as much. They are drawn after the softmax by a hash of wlm_execute_args.seed, the position of the
   * edge in colind of A and the head, so nothing is stored and the gradient repeats them from the same seed. */
  double dropout;
  /* rows x H x 2: the largest score of each row and head, and beside it 1 / the sum over the row's edges of exp(score -
   * largest); both 0 where no edge has a weight. So the weight of an edge is exp(score - largest) times the second
   * number, and log(sum of exp(score)) is the largest score minus the log of the second number. Aligned for a pair of
   * numbers; written where it is not NULL; read by the gradients. */
  void *softmax;
  /* rows x H, for the gradients: sum over the head's columns of x * C, with C before its epilogue. Where one edge has
   * all the weight, the gradient of its score is exactly 0 if this is the result of the message "edge_sum=x*b" with C
   * as b on the rows x rows matrix that has its diagonal alone: that adds columns in the order of these kernels. */
  const void *delta;
  /* Results of the gradients, which may be NULL. */
  void *dscores; /* nnz x H */
  void *dright;  /* cols x H; must be NULL with WLM_SCORE_DOT */
  void *dk;      /* cols x n of dense_type, dense, with WLM_SCORE_DOT */
  void *datt;    /* rows x n, of WLM_ATTENTION_ROWS with WLM_SCORE_GATV2; must be NULL with WLM_SCORE_DOT */
};
#define WLM_ATTENTION_OPERANDS_INIT \
  { sizeof(wlm_attention_operands), NULL, NULL, NULL, NULL, NULL, 0, 0.2, 1.0, 0.0, NULL, NULL, NULL, NULL, NULL, NULL }

/* What the INIT macro does, for callers without macros. */
WLM_API wlm_status wlm_attention_operands_init(void *args, size_t size);

#ifdef __cplusplus
}
#endif
#endif
