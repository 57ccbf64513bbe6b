/* row_block works through a block with very many non-zeros in several tiles. No matrix of the other tests is so large;
 * here the kernels are told to take small tiles, which is one number in their text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "generator/generator.h"
#include "simt/shim/simt_device.h"
#include "support/asserts.h"
#include "support/kernel_check.h"

static const char large[] = "1048576", small[] = "     64";

static void order(void *user, int run) { simt_device_seed(user, (uint64_t)run + 1); }

static void test_several_tiles_a_block(void **state) {
  (void)state;
  static const struct {
    const char *variant;
    int64_t n;
    wlm_reduce reduce;
  } cases[] = {
      {"row_block/threads=128,rows=4,lanes=4,vector=4,batch=8", 16, WLM_SUM},
      {"row_block/threads=128,rows=16,lanes=8,vector=4,batch=4", 32, WLM_MEAN},
      {"row_block/threads=256,rows=64,lanes=32,vector=1,batch=8", 33, WLM_MAX},
      {"row_block/threads=128,rows=64,lanes=16,vector=4,batch=4", 100, WLM_PROD},
  };
  wlm_generator *generator;
  wlm_device *device;
  omp_set_num_threads(1);
  assert_status(WLM_OK, wlm_generator_create(NULL, &generator));
  assert_status(WLM_OK, simt_device_open(&device));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_problem problem = WLM_PROBLEM_INIT;
    wlm_csr csr = WLM_CSR_INIT;
    wlm_spec spec;
    wlm_program program;
    int told = 0;
    problem.n = cases[i].n;
    problem.reduce = cases[i].reduce;
    csr.values = &csr;
    assert_status(WLM_OK, wlm_spec_make(&problem, &csr, &spec));
    assert_status(WLM_OK, wlm_generator_emit(generator, cases[i].variant, &spec, &device->info.limits, &program));
    for (char *at = program.source; (at = strstr(at, large)) != NULL; told++) memcpy(at, small, strlen(small));
    assert_true(told > 0);
    assert_status(WLM_OK, kernel_check_program(&(kernel_check){device, &spec, 2, order, device, i + 1}, &program));
    wlm_program_release(&program);
  }
  device->ops->close(device);
  wlm_generator_destroy(generator);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_several_tiles_a_block)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
