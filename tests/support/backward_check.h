/* Compiles and runs the kernels of the gradients by argmax on a device and compares them with the float64 reference,
 * over many shapes. */
#ifndef WLM_TESTS_BACKWARD_CHECK_H
#define WLM_TESTS_BACKWARD_CHECK_H

#include "generator/generator.h"
#include "support/kernel_check.h"

/* Problems that differ in all that changes the kernels: every message, types, indices, values or none, transpose. The
 * first `backward_problems` are there; N are their columns. */
int backward_problem_count(void);
wlmi_spec backward_problem(int number);

/* For all shapes, with any edge of its row as the winner of an element, for both gradients and for each alone:
 *   - they agree with the reference; dC holds NaN where there is no edge, B where no edge points
 *   - what was in the output does not matter, and nothing around it is written
 * `check->runs` times; the same bits each time where the program says so. */
wlm_status backward_check(const kernel_check *check, wlmi_generator *generator);

#endif
