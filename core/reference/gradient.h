/* The float64 reference of an SDDMM. */
#pragma once

#include "core/reference/reference.h"

/* dvalues[p] = alpha * sum over j of dC[i,j] * d message(a_p, B[k,j]) / d a_p + beta * old[p], in double, for `count`
 * edges p: those listed in `edges`, or the first ones if it is NULL. With heads p counts the nnz x heads values, and j
 * runs over the columns of its head. reduce is sum, or mean, which divides by the edges of row i. With sampling the
 * derivative is multiplied by the edge's share in the product; it is 0 for an edge that is left out.
 *
 *   call      the call of the SDDMM with its arrays in host memory; dvalues is the old one, read where beta is not 0
 *   dvalues   count; its scale the same over absolute values
 *
 * Results are not rounded to the dense type. WLM_ERR_INVALID_ARGUMENT for an edge that does not exist. */
wlm_status wlmi_reference_edges(const wlmi_csr_host *a, const wlm_problem *problem, const wlm_execute_args *call,
                                const int64_t *edges, int64_t count, const wlmi_reference_result *dvalues);
