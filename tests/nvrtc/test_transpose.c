/* The kernels that belong to no family compile with NVRTC and do not spill: building A^T and CSR from coordinates, for
 * every type of index, measuring stats, and gradients by argmax. */
#include "runtime/cuda/nvrtc.h"
#include "support/backward_check.h"
#include "support/emit_fixture.h"
#include "support/test.h"

static int count_of(const char *text, const char *what) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, what)); at++) count++;
  return count;
}

static const int architectures[] = {80, 90, 100};

static void compile(const wlmi_program *program, int arch) {
  HELD(wlmi_text) log = {0};
  size_t size;
  WLM_FREED GET(void *, cubin, wlmi_nvrtc_compile(program->source, program->variant, arch, 0, &cubin, &size, &log));
  assert_int_equal(count_of(log.data, " 0 bytes spill stores, 0 bytes spill loads"), program->pass_count);
}

TEST(gradients_compile) {
  test_needs_nvrtc();
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  for (int number = 0; number < backward_problem_count(); number++) {
    const wlmi_spec spec = backward_problem(number);
    const wlmi_limits limits = {.target = WLMI_TARGET_CUDA, .arch = architectures[number % 3]};
    HOLD(wlmi_program, program,
         wlmi_generator_emit_program(generator, WLMI_HELPER_GRADIENT, NULL, &spec, &limits, &program));
    compile(&program, limits.arch);
  }
}

TEST(compiles_for_all) {
  test_needs_nvrtc();
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  for (int number = 0; number < 12; number++) {
    wlm_problem problem = PROBLEM(.n = 1);
    wlm_csr csr = CSR(.rowptr_type = (wlm_index)(number & 1), .colind_type = (wlm_index)(number >> 1 & 1),
                      .base = number % 3 == 1);
    GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
    HOLD(wlmi_program, program,
         wlmi_generator_emit_program(generator, WLMI_HELPER_TRANSPOSE, NULL, &spec, NULL, &program));
    compile(&program, architectures[number / 4]);
    wlmi_program_release(&program);
    assert_status(WLM_OK, wlmi_generator_emit_program(generator, WLMI_HELPER_COO, NULL, &spec, NULL, &program));
    compile(&program, architectures[number / 4]);
  }
}

TEST(stats_and_copies_compile) {
  test_needs_nvrtc();
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  for (int number = 0; number < 6; number++) {
    HOLD(wlmi_program, program,
         emit_helper(generator, WLMI_HELPER_STATS, (wlm_index)(number & 1), WLM_I32, 0, &program));
    compile(&program, architectures[number / 2]);
    wlmi_program_release(&program);
    assert_status(WLM_OK, emit_helper(generator, WLMI_HELPER_VALIDATE, (wlm_index)(number & 1),
                                      (wlm_index)(number == 3), number == 2, &program));
    compile(&program, architectures[number / 2]);
    wlmi_program_release(&program);
    assert_status(WLM_OK, wlmi_generator_emit_program(generator, WLMI_HELPER_LAYOUT, NULL, &(wlmi_spec){.base = 0},
                                                      &emit_cuda, &program));
    compile(&program, architectures[number / 2]);
  }
}
