/* The float64 reference of attention and of its gradient. */
#ifndef WLM_REFERENCE_ATTENTION_H
#define WLM_REFERENCE_ATTENTION_H

#include "core/csr/csr.h"

/* The additional arguments of attention, with H heads, in double. */
typedef struct wlmi_attention_terms {
  const double *left, *right; /* rows x H and cols x H; not read if scores are given per edge */
  const double *lse, *delta;  /* rows x H, for the gradient */
  const int64_t *order;       /* of the gradient: where A has each edge of A^T, for dropout; NULL = in the same place */
  const void *q;     /* of scores that are sums, in host memory: rows x n of dense_type with leading dimension ldt */
  const double *att; /* of WLM_SCORE_GATV2: n */
  const void *k;     /* of WLM_SCORE_DOT: cols x n, as q */
  /* Of the gradient: the edge of dvalues at which that of the first edge of each named row is written, row_count + 1. A
   * row whose next one begins at the same edge has its edges left out. NULL = as dvalues says. */
  const int64_t *edge_first;
} wlmi_attention_terms;

/* C = alpha * attention + beta * C + bias for the rows named by `row_ids` (NULL = the first row_count ones), softmax
 * and sums in double; a->values are the terms of edges, or the scores. WLM_ERR_UNSUPPORTED if the problem has an
 * activation.
 *   call   alpha, beta, slope, scale, ldb, ldc, ldt (0 = n) and the bias, which is in host memory, are read
 *   c      row_count x n, dense; not rounded
 *   lse    row_count x H, or NULL
 *   scale, lse_scale   NULL, or the denominators of errors: the sums of absolute values, and as much again for each
 *                      unit of a score's size, to which an error of the exponent is relative */
wlm_status wlmi_reference_attention(const wlmi_csr_host *a, const wlm_problem *problem, const wlm_execute_args *call,
                                    const wlmi_attention_terms *terms, const void *b, const void *c_old,
                                    const int64_t *row_ids, int64_t row_count, double *c, double *scale, double *lse,
                                    double *lse_scale);

/* The gradient. `a` is A^T here: its rows are the columns of A, and its values lie at its own edges.
 *   x        dC: a->cols x n with leading dimension ldc;  b: a->rows x n with leading dimension ldb
 *   db       row_count x n;  dright: row_count x H, or NULL
 *   dvalues  nnz x H in the order of a's edges, of which those of the rows are written; NULL = not wanted
 *   dk       of WLM_SCORE_DOT, row_count x n; NULL = not wanted
 * Each with a scale, as above. */
wlm_status wlmi_reference_attention_gradient(const wlmi_csr_host *a, const wlm_problem *problem,
                                             const wlm_execute_args *call, const wlmi_attention_terms *terms,
                                             const void *x, const void *b, const int64_t *row_ids, int64_t row_count,
                                             double *db, double *db_scale, double *dright, double *dright_scale,
                                             double *dvalues, double *dvalues_scale, double *dk, double *dk_scale);

/* WLM_ATTENTION_ROWS: a->values are the gradients of scores. c and scale, and datt and its scale: row_count x n. */
wlm_status wlmi_reference_attention_rows(const wlmi_csr_host *a, const wlm_problem *problem,
                                         const wlm_execute_args *call, const wlmi_attention_terms *terms, const void *b,
                                         const int64_t *row_ids, int64_t row_count, double *c, double *scale,
                                         double *datt, double *datt_scale);

#endif
