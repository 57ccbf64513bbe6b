#include "support/backward_check.h"

#include "support/defaults.h"
#include "support/own.h"

static const struct {
  wlm_message message;
  wlm_type type, value_type;
  wlm_index rowptr, colind, arg;
  int has_values, transpose;
  int64_t n, heads;
} problems[] = {
    {WLM_MUL, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 1, 0, 33, 3},
    {WLM_MUL, WLM_F16, WLM_F16, WLM_I64, WLM_I32, WLM_I32, 1, 1, 16, 1},
    {WLM_MUL, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I64, 0, 0, 1, 1},
    {WLM_COPY_B, WLM_F32, WLM_F32, WLM_I32, WLM_I64, WLM_I32, 1, 1, 64, 4},
    {WLM_COPY_A, WLM_F64, WLM_F64, WLM_I32, WLM_I32, WLM_I64, 1, 0, 4, 1},
    {WLM_ADD, WLM_BF16, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 1, 0, 7, 1},
    {WLM_SUB, WLM_F32, WLM_F32, WLM_I64, WLM_I64, WLM_I64, 1, 0, 32, 1},
    {WLM_RSUB, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 1, 1, 2, 1},
    {WLM_DIV, WLM_F64, WLM_F64, WLM_I32, WLM_I32, WLM_I32, 1, 1, 9, 9},
    {WLM_RDIV, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 1, 0, 66, 2},
    {WLM_MUL, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 1, 0, 40, 1},
    {WLM_MUL, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I32, 0, 0, 6, 3},
    {WLM_COPY_B, WLM_F32, WLM_F32, WLM_I32, WLM_I32, WLM_I16, 0, 0, 64, 1},
    {WLM_DIV, WLM_F16, WLM_F32, WLM_I64, WLM_I64, WLM_I16, 1, 0, 10, 2},
};

int backward_problem_count(void) { return sizeof problems / sizeof *problems; }

wlmi_spec backward_problem(int number) {
  wlm_problem p = PROBLEM(.n = problems[number].n, .heads = problems[number].heads, .message = problems[number].message,
                          .operation = WLM_ARGMAX_GRADIENT, .reduce = number % 2 ? WLM_MIN : WLM_MAX,
                          .dense_type = problems[number].type, .argmax_type = problems[number].arg,
                          .transpose = problems[number].transpose);
  wlm_csr csr = CSR(.rowptr_type = problems[number].rowptr, .colind_type = problems[number].colind,
                    .value_type = problems[number].value_type, .values = problems[number].has_values ? &csr : NULL,
                    .base = number / 2 % 2);
  wlmi_spec spec = {0};
  (void)wlmi_spec_make(&p, &csr, &spec);
  return spec;
}

wlm_status backward_check(const kernel_check *check, wlmi_generator *generator) {
  HELD(wlmi_program) program = {0};
  const wlm_status status = wlmi_generator_emit_program(generator, WLMI_HELPER_GRADIENT, NULL, check->spec,
                                                        &check->device->info.limits, &program);
  return status == WLM_OK ? kernel_check_program(check, &program) : status;
}
