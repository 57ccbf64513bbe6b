/* Cases that the covering set may miss: every family with several values per edge, also transposed, and with numbers of
 * columns per head that no vector or the widest vector divides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "generator/generator.h"
#include "simt/shim/simt_device.h"
#include "support/asserts.h"
#include "support/kernel_check.h"

static const struct point {
  wlm_operation operation;
  int64_t n, heads;
  wlm_type type;
  wlm_index rowptr;
  int transpose, families;
} points[] = {{WLM_SPMM, 40, 8, WLM_F32, WLM_I64, 1, 6},   {WLM_SPMM, 6, 3, WLM_F16, WLM_I32, 1, 7},
              {WLM_SPMM, 96, 3, WLM_F32, WLM_I32, 0, 5},   {WLM_SPMM, 30, 2, WLM_BF16, WLM_I32, 0, 5},
              {WLM_SDDMM, 128, 8, WLM_F32, WLM_I32, 0, 2}, {WLM_SDDMM, 66, 2, WLM_F64, WLM_I64, 0, 2}};

static void check(wlmi_device *device, wlmi_generator *generator, const wlmi_spec *spec, const char *variant) {
  const kernel_check of = {.device = device, .spec = spec, .runs = 1, .seed = 5};
  wlmi_program program;
  assert_status(WLM_OK, wlmi_generator_emit(generator, variant, spec, &device->info.limits, &program));
  if (kernel_check_program(&of, &program) != WLM_OK)
    fail_msg("n = %lld, %lld heads: %s", (long long)spec->problem.n, (long long)spec->problem.heads,
             wlm_error_detail());
  wlmi_program_release(&program);
}

/* One variant of each, not always the same. */
static int check_families(wlmi_device *device, wlmi_generator *generator, const wlmi_spec *spec) {
  const wlmi_candidate_list *names;
  int families = 0;
  assert_status(WLM_OK, wlmi_generator_describe(generator, spec, &device->info.limits, &names));
  for (int64_t first = 0, end; first < names->count; first = end, families++) {
    const size_t size = strcspn(names->candidates[first].variant, "/") + 1;
    for (end = first;
         end < names->count && !strncmp(names->candidates[end].variant, names->candidates[first].variant, size);)
      end++;
    check(device, generator, spec, names->candidates[first + spec->problem.n % (end - first)].variant);
  }
  wlmi_candidates_drop(names);
  return families;
}

static void every_family(void **state) {
  (void)state;
  wlmi_device *device;
  wlmi_generator *generator;
  assert_status(WLM_OK, simt_device_open(&device));
  assert_status(WLM_OK, wlmi_generator_create(NULL, &generator));
  simt_device_seed(device, 3);
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    wlm_problem problem = WLM_PROBLEM_INIT;
    wlm_csr csr = WLM_CSR_INIT;
    wlmi_spec spec;
    problem.operation = points[i].operation;
    problem.n = points[i].n;
    problem.heads = points[i].heads;
    problem.transpose = points[i].transpose;
    problem.dense_type = csr.value_type = points[i].type;
    csr.rowptr_type = points[i].rowptr;
    csr.values = &csr;
    assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
    assert_true(check_families(device, generator, &spec) >= points[i].families);
  }
  wlmi_generator_destroy(generator);
  device->ops->close(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_family)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
