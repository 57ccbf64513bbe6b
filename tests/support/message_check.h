/* kernel_check for messages: compiles and runs an emitted program on a device and compares it with the float64
 * reference. */
#pragma once

#include "support/kernel_check.h"

/* For all shapes of matrices, with different leading dimensions:
 *   - every result and all positions agree with the reference
 *   - operands hold NaN in lines that no edge has and behind their columns
 *   - nothing outside of the results is touched
 *   - the same bits each of `runs` times.
 * `kernels` are the program's, loaded. */
wlm_status message_check_program(const kernel_check *check, const wlmi_program *program,
                                 void *const kernels[WLMI_MAX_PASSES]);
