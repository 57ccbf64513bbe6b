/* The float64 reference of an SDDMM. */
#ifndef WLM_REFERENCE_GRADIENT_H
#define WLM_REFERENCE_GRADIENT_H

#include "core/csr/csr.h"

/* dvalues[p] = alpha * sum over j of dC[i,j] * d message(a_p, B[k,j]) / d a_p + beta * old[p], in double, for `count`
 * edges p: those listed in `edges`, or the first ones if it is NULL. With heads p counts the nnz x heads values, and j
 * runs over the columns of its head. reduce is sum, or mean, which divides by the edges of row i. With sampling the
 * derivative is multiplied by the edge's share in the product; it is 0 for an edge that is left out.
 *
 *   call   of which alpha, beta, seed, ldb and ldc (0 = n) are read
 *   dc     rows x n of the problem's dense type, leading dimension ldc
 *   b      cols x n, leading dimension ldb
 *   old    nnz x heads elements; read only where beta is not 0
 *   scale  count, or NULL: the same over absolute values, the denominators of errors
 *
 * Results are not rounded to the dense type. WLM_ERR_INVALID_ARGUMENT for an edge that does not exist. */
wlm_status wlmi_reference_edges(const wlmi_csr_host *a, const wlm_problem *problem, const wlm_execute_args *call,
                                const void *dc, const void *b, const void *old, const int64_t *edges, int64_t count,
                                double *dvalues, double *scale);

#endif
