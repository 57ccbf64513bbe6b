/* Programs with expressions of users, for the tests of compilers. Include after cmocka. */
#ifndef WLM_TESTS_EXPRESSIONS_H
#define WLM_TESTS_EXPRESSIONS_H

#include "generator/generator.h"

/* A spec of mul.sum with values whose activation calls every function that there is, and is finite for small x. */
wlmi_spec expressions_all_functions(int64_t n);
/* The source of a variant whose activation is tanh(x), but with one argument too many for tanhf:
 * what a user's mistake would be if the parser let it through. free() */
char *expressions_broken(wlmi_generator *generator, const char *variant, const wlmi_limits *limits);

#endif
