/* The float64 reference of the gradients of max and min by their argmax indices. */
#pragma once

#include "core/csr/csr.h"

/* Gradients in double, and the sums of the absolute values of their terms, by which errors are scaled. */
typedef struct gradient_sums {
  double *db, *db_scale;           /* as B, but without padding */
  double *dvalues, *dvalues_scale; /* nnz x heads */
} gradient_sums;

/* a is A itself. dc and argmax have the rows of C; argmax is without padding and -1 where C has no edge. b is read
 * only if the message reads it. From the call alpha, ldb and ldc (0 = n) are used. */
void argmax_gradient(const wlmi_csr_host *a, const wlm_problem *problem, const wlm_execute_args *call, const void *dc,
                     const int64_t *argmax, const void *b, gradient_sums *sums);
