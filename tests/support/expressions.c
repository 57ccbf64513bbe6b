#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem/expression.h"
#include "support/defaults.h"
#include "support/expressions.h"
#include "support/own.h"

static wlmi_spec spec_with(int64_t n, const char *activation) {
  wlm_problem problem = PROBLEM(.n = n, .epilogue.activation = activation);
  wlm_csr csr = CSR(.values = &csr /* the spec depends only on whether there are values */);
  GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
  return spec;
}

wlmi_spec expressions_all_functions(int64_t n) {
  static char text[WLMI_EXPRESSION_TEXT];
#define SMALL "0.01*abs(x)+0.1" /* a range in which all functions are defined */
  static const char *const arguments[] = {"", SMALL, SMALL ",2", SMALL ",2,3"};
  size_t used = 0;
  for (int i = 0; i < WLMI_FUNCTIONS; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s(%s)", i ? "+" : "", wlmi_functions[i].name,
                             arguments[wlmi_functions[i].arity]);
  assert_true(used < sizeof text);
  return spec_with(n, text);
}

char *expressions_broken(wlmi_generator *generator, const char *variant, const wlmi_limits *limits) {
  static const char right[] = "\ntanhf(x); }", wrong[] = "\ntanhf(x,x); }";
  const wlmi_spec spec = spec_with(16, "tanh(x)");
  HOLD(wlmi_program, program, wlmi_generator_emit(generator, variant, &spec, limits, &program));
  const char *place = strstr(program.source, right);
  assert_non_null(place);
  char *text = malloc(strlen(program.source) + sizeof wrong);
  assert_non_null(text);
  sprintf(text, "%.*s%s%s", (int)(place - program.source), program.source, wrong, place + strlen(right));
  return text;
}
