/* Runs an emitted program of any operation but products, with the arrays that the operation's table lists, over many
 * shapes, and compares every output with the float64 reference.
 *
 * Lines that no edge uses, and the padding of lines, hold NaN and infinities. Nothing outside of the lines of an output
 * may be written, and outputs begin as NaN where the call does not read them. Results are in the order of A's edges.
 * All runs must give the same bits.
 *   - attention: scores lie on both sides of 0, some far apart; some edges are masked with -inf, and some rows have
 *     masked edges only. The edges of its gradient are in another order than A's.
 *   - messages: positions must be exact.
 *   - gradients by argmax: the winner of an element is a random edge of its row, and dC is NaN where there is none.
 * They are computed together and alone. */
#pragma once

#include "support/kernel_check.h"

/* Called by kernel_check_program with the program's loaded kernels. */
wlm_status arrays_check_program(const kernel_check *check, const wlmi_program *program,
                                void *const kernels[WLMI_MAX_PASSES]);
