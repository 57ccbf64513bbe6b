/* Runs an emitted program of SDDMM or attention with the arrays that the operation's table lists, over many shapes, and
 * compares every output with the float64 reference.
 *
 * Lines that no edge uses, and the padding of lines, hold NaN and infinities. Nothing outside of the lines of an output
 * may be written, and outputs begin as NaN where the call does not read them. Scores lie on both sides of 0, some far
 * apart; some edges are masked with -inf, and some rows have masked edges only. Those of the gradient are in another
 * order than A's. All runs must give the same bits. */
#pragma once

#include "support/kernel_check.h"

/* Called by kernel_check_program with the program's loaded kernels. */
wlm_status arrays_check_program(const kernel_check *check, const wlmi_program *program,
                                void *const kernels[WLMI_MAX_PASSES]);
