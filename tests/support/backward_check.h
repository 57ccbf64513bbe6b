/* The kernels of gradients by argmax, which belong to no family. */
#pragma once

#include "generator/generator.h"
#include "support/kernel_check.h"

/* The problems to check, numbered from 0. They differ in every property that gives another kernel: message, types,
 * indices, values or none, transpose. */
int backward_problem_count(void);
wlmi_spec backward_problem(int number);

/* Checks the gradients of a problem by kernel_check_program. */
wlm_status backward_check(const kernel_check *check, wlmi_generator *generator);
