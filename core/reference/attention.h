/* The float64 reference of attention and of its gradient. */
#pragma once

#include "core/problem/operation.h"
#include "core/reference/reference.h"

/* A call of attention in host memory. `a` is op(A): of the gradient A^T, whose rows are the columns of A, with its
 * values at its own edges. */
typedef struct wlmi_attention_walk {
  const wlmi_csr_host *a;
  const wlm_problem *problem;
  const wlm_execute_args *call; /* all that the problem reads, with its attention, and C where beta is not 0 */
  const int64_t *order;         /* where A has each edge of A^T, for dropout; NULL = in the same place */
} wlmi_attention_walk;

/* Computes the results of the rows listed in `row_ids` (NULL = the first row_count ones), with softmax and sums in
 * double, not rounded. results[0] is C or db, the others are those of WLM_RESULT_OF_; where a result's `value` is NULL,
 * it is left out. `scale` (or NULL) gets the sums of absolute values, and as much again for each unit of a score's
 * size, to which an error of the exponent is relative.
 *   edge_first   row_count + 1: the line of the first edge of each row in dscores. A row whose next one begins at the
 *                same line has its edges left out. Needed where dscores is.
 * WLM_ERR_UNSUPPORTED if the problem has an activation. */
wlm_status wlmi_reference_attention(const wlmi_attention_walk *walk, const int64_t *row_ids, int64_t row_count,
                                    const int64_t *edge_first, const wlmi_reference_result *results);
