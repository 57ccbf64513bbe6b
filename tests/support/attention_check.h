/* kernel_check for attention and its gradient: compiles and runs an emitted program on a device and compares it with
 * the float64 reference. */
#ifndef WLM_TESTS_ATTENTION_CHECK_H
#define WLM_TESTS_ATTENTION_CHECK_H

#include "support/kernel_check.h"

/* For all shapes of matrices, with different leading dimensions, alpha and beta:
 *   - C and lse, or db, dvalues and dright, agree with the reference
 *   - scores of about 1e4 and -1e4; edges and whole rows that are masked by -inf
 *   - B and dC hold NaN and Inf in rows that no edge has and between n and their leading dimensions
 *   - nothing outside of the results is touched
 *   - the same bits each of `runs` times.
 * `kernels` are the program's, loaded. */
wlm_status attention_check_program(const kernel_check *check, const wlmi_program *program,
                                   void *const kernels[WLM_MAX_PASSES]);

#endif
