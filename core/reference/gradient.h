/* The float64 reference of an SDDMM. */
#pragma once

#include "core/reference/reference.h"

/* dvalues[p] = alpha * sum over j of dC[i,j] * d message(a_p, B[k,j]) / d a_p + beta * old[p], in double, for the edges
 * of the rows listed in `row_ids` (NULL = the first row_count ones). With heads p counts the nnz x heads values, and j
 * runs over the columns of its head. reduce is sum, or mean, which divides by the edges of row i. With sampling the
 * derivative is multiplied by the edge's share in the product; it is 0 for an edge that is left out.
 *
 *   call         the call of the SDDMM with its arrays in host memory; dvalues is the old one, read where beta is not 0
 *   edge_first   row_count + 1: the line of the first edge of each row in dvalues. A row whose next one begins at the
 *                same line has its edges left out.
 *   dvalues      heads numbers for each line; its scale the same over absolute values
 *
 * Results are not rounded to the dense type. */
wlm_status wlmi_reference_edges(const wlmi_csr_host *a, const wlm_problem *problem, const wlm_execute_args *call,
                                const int64_t *row_ids, int64_t row_count, const int64_t *edge_first,
                                const wlmi_reference_result *dvalues);
