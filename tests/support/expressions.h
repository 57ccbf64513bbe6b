/* Programs with user-defined expressions, for the tests of compilers. Include after cmocka. */
#pragma once

#include "generator/generator.h"

/* A spec of mul.sum with values. Its activation calls every function of the expression language and is finite for
 * small x. */
wlmi_spec expressions_all_functions(int64_t n);
/* The source of a variant whose activation calls tanhf with one argument too many, as if the parser had missed a
 * user's mistake; free(). */
char *expressions_broken(wlmi_generator *generator, const char *variant, const wlmi_limits *limits);
