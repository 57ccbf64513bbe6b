/* kernel_check for SDDMM: compiles and runs an emitted program on a device and compares it with the float64 reference.
 */
#ifndef WLM_TESTS_EDGE_CHECK_H
#define WLM_TESTS_EDGE_CHECK_H

#include "support/kernel_check.h"

/* Runs the program for all shapes of matrices, with different leading dimensions, alpha and beta. Checks that
 *   - results agree with the reference, although B and dC hold NaN and Inf in rows that no edge uses and in the padding
 *   - dvalues are not read if beta = 0; they then begin as NaN
 *   - edges behind the last row, as wlm_csr_from_coo leaves them, count as 0
 *   - nothing outside of dvalues is written
 *   - all `runs` give the same bits, if the program is deterministic.
 * `kernels` are the loaded kernels of the program. */
wlm_status edge_check_program(const kernel_check *check, const wlmi_program *program,
                              void *const kernels[WLM_MAX_PASSES]);

#endif
