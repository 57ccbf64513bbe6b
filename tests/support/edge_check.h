/* kernel_check for SDDMM: compiles and runs an emitted program on a device and compares it with the float64 reference.
 */
#ifndef WLM_TESTS_EDGE_CHECK_H
#define WLM_TESTS_EDGE_CHECK_H

#include "support/kernel_check.h"

/* For all shapes of matrices, with different leading dimensions, alpha and beta:
 *   - results agree with the reference
 *   - B and dC hold NaN and Inf in rows that no edge has and between n and their leading dimensions
 *   - dvalues hold NaN where beta = 0; nothing outside of its nnz elements is touched
 *   - the same bits each of `runs` times where the program says that it is deterministic.
 * `kernels` are the program's, loaded. */
wlm_status edge_check_program(const kernel_check *check, const wlmi_program *program,
                              void *const kernels[WLM_MAX_PASSES]);

#endif
