/* The float64 reference of the gradients of max and min by their argmax indices. */
#ifndef WLM_TESTS_SUPPORT_ARGMAX_GRADIENT_H
#define WLM_TESTS_SUPPORT_ARGMAX_GRADIENT_H

#include "csr/csr.h"

/* Sums in double and, beside them, of the absolute values of their terms. */
typedef struct gradient_sums {
  double *db, *db_scale;           /* as B, without padding */
  double *dvalues, *dvalues_scale; /* nnz x heads */
} gradient_sums;

/* a is A itself; dc and argmax are as C of op(A), argmax without padding and -1 where there is no edge. b is read where
 * the message reads it. Of the call alpha, ldb and ldc (0 = n) are read. */
void argmax_gradient(const wlmi_csr_host *a, const wlm_problem *problem, const wlm_execute_args *call, const void *dc,
                     const int64_t *argmax, const void *b, gradient_sums *sums);

#endif
