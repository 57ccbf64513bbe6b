/* The float64 reference: what every kernel is checked against. */
#pragma once

#include "core/csr/csr.h"

/* What one result should be, in lines of the rows, or of the edges, that are listed. Numbers are not rounded. */
typedef struct wlmi_reference_result {
  double *value;      /* NULL = not wanted, as of the others */
  double *scale;      /* the denominators of errors */
  int64_t *positions; /* of max and min: positions in A, -1 for an empty row */
} wlmi_reference_result;

/* C = alpha * result + beta * C for the rows listed in `row_ids` (NULL = rows 0 .. row_count - 1), with messages,
 * reduction and epilogue in double.
 *   call    the call with its arrays b and bias in host memory; c is the whole C before the call, which is read, and
 *           needed, only where beta is not 0
 *   result  row_count x n, dense; its scale is the same reduction over the absolute values of the messages (sum |a b|
 *           for a sum; the largest for max and min), through the same epilogue with absolute values; of users'
 *           expressions what evaluate.h says, more where they round more
 * The result is not rounded to the dense type. Of positions, the lowest wins among equal messages, and the first NaN
 * wins over everything. They are exact: messages are rounded to the accumulator's type as in kernels (they are one
 * operation, so rounding the float64 result gives the same bits). The problem must be a valid one without transpose,
 * for which a is A^T, with the shares of its edges where A is sampled. With heads a->values are nnz x heads, or NULL.
 */
wlm_status wlmi_reference_rows(const wlmi_csr_host *a, const wlm_problem *problem, const wlm_execute_args *call,
                               const int64_t *row_ids, int64_t row_count, const wlmi_reference_result *result);

/* max |c - reference| / scale over a block of results; where scale is 0 the difference itself. `c` is the row_count x n
 * block with leading dimension ldc; `row_ids` as above picks its rows where `c` is the whole C, NULL where it holds
 * just the block. NaN agrees with NaN, an infinity with the same infinity (also with a reference beyond the range of
 * the type); any other value that is not finite is an infinite error. */
double wlmi_reference_error(wlm_type type, const void *c, int64_t ldc, const int64_t *row_ids, int64_t row_count,
                            int64_t n, const double *reference, const double *scale);

/* Parts of all references. */

/* alpha, beta and the bias of a call, for `count` columns of a row of C. `size` may be NULL. */
void wlmi_reference_finish(const wlm_problem *problem, const wlm_execute_args *call, int64_t row, int64_t first,
                           int64_t count, double *value, double *size);
/* Whether the edge at `position` with message x wins against the best so far, in whatever order edges come;
 * best_position = -1: there is none. */
int wlmi_wins(int is_max, double x, int64_t position, double best, int64_t best_position);
