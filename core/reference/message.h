/* The float64 reference of a message. */
#pragma once

#include "core/problem/message.h"
#include "core/reference/reference.h"

/* A message bound to its operands. `a` is op(A); with wlm_problem.transpose its rows are the columns of A. */
typedef struct wlmi_message_walk {
  const wlmi_csr_host *a;     /* with the shares of its edges if A is sampled */
  const wlm_problem *problem; /* n, heads, transpose, epilogue, types and want_argmax are read */
  const wlmi_message *message;
  const wlm_message_args *call; /* operands in host memory, their leading dimensions, and scalars */
  const int64_t *order;         /* with transpose: where A has each edge of A^T; NULL = in the same place */
  const int64_t *rowptr;        /* of A, for the operand degree; NULL = that of `a` */
  const void *bias;             /* n numbers in host memory, where the problem has one */
  uint64_t seed;                /* of the call, for the operand kept */
} wlmi_message_walk;

/* Results of rows have n values for each named row. Edge results have n values (edge_sum: one for each head) for each
 * edge of the named rows, one row after the other; `a` has the order of the edges of a row.
 *
 * Computes the results of the rows listed in `row_ids` (NULL = the first row_count ones). Where a result's `value` is
 * NULL, it is left out.
 *   edge_first   row_count + 1: the line of the first edge of each row in edge results. A row whose next one begins at
 *                the same line has its edges left out. NULL where all edge results are left out. */
wlm_status wlmi_reference_message(const wlmi_message_walk *walk, const int64_t *row_ids, int64_t row_count,
                                  const int64_t *edge_first, const wlmi_reference_result *results);

/* The message of result `result` at edge `edge` of row `row` of op(A) and at one column. *size is the size to which its
 * rounding error is relative. */
void wlmi_reference_message_at(const wlmi_message_walk *walk, int result, int64_t row, int64_t edge, int64_t column,
                               double *value, double *size);
