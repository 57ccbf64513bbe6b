/* Compiles and runs the kernels of the gradients by argmax on a device and compares them with the float64 reference,
 * over many shapes. */
#pragma once

#include "generator/generator.h"
#include "support/kernel_check.h"

/* The problems to check, numbered from 0. They differ in every property that gives another kernel: message, types,
 * indices, values or none, transpose. */
int backward_problem_count(void);
wlmi_spec backward_problem(int number);

/* Computes both gradients, and each of them alone, `check->runs` times for all shapes. The winner of an element is a
 * random edge of its row. Checks that
 *   - results agree with the reference, although dC is NaN in rows without edges and B in rows that no edge uses
 *   - the old contents of an output do not matter, and nothing around it is written
 *   - all runs give the same bits, if the program is deterministic. */
wlm_status backward_check(const kernel_check *check, wlmi_generator *generator);
