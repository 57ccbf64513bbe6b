/* Executes emitted CUDA kernels, a fiber a thread, under ASan and UBSan and compares with float64. Every program
 * runs twice, with different orders of lanes, warps and blocks: results must be right both times, and the same
 * where the family says that it is deterministic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "simt/shim/simt_device.h"
#include "support/covering.h"
#include "support/kernel_check.h"
#include "support/parallel.h"

enum { MOST_KERNELS = 350, MOST_KERNELS_FULL = 3000 };

typedef struct suite {
  wlm_generator *generator;
  wlm_device *device;
  covering set;
  uint64_t seed; /* of the next order */
} suite;

static void next_order(void *user, int run) {
  suite *s = user;
  simt_device_seed(s->device, s->seed++ * 2 + (uint64_t)run);
}

static void describe(void *user, int64_t index) {
  char text[512];
  covering_describe(&((suite *)user)->set.entries[index], text, sizeof text);
  fprintf(stderr, "%s\n", text);
}

static int one(void *user, int64_t index) {
  suite *s = user;
  const covering_entry *entry = &s->set.entries[index];
  wlm_program program = {0};
  kernel_check check = {s->device, &entry->spec, 2, next_order, s, (uint64_t)index + 1};
  s->seed = (uint64_t)index * 1000 + 1;
  omp_set_num_threads(1); /* the cores are taken by processes */
  wlm_status status = wlm_generator_emit(s->generator, entry->variant, &entry->spec, &s->device->info.limits, &program);
  if (status == WLM_OK) status = kernel_check_program(&check, &program);
  wlm_program_release(&program);
  if (status == WLM_OK) return 0;
  fprintf(stderr, "%s: ", wlm_error_detail());
  describe(user, index);
  return 1;
}

static void test_emitted_kernels(void **state) {
  (void)state;
  suite s = {0};
  assert_int_equal(wlm_generator_create(NULL, &s.generator), WLM_OK);
  assert_int_equal(simt_device_open(&s.device), WLM_OK);
  assert_int_equal(covering_make(s.generator, &s.device->info.limits, 1, covering_full(), &s.set), WLM_OK);
  printf("simt: %lld kernels\n", (long long)s.set.count);
  assert_true(s.set.count > 100);
  assert_true(s.set.count <= (covering_full() ? MOST_KERNELS_FULL : MOST_KERNELS));
  assert_int_equal(test_in_parallel(s.set.count, one, describe, &s), 0);
  covering_release(&s.set);
  s.device->ops->close(s.device);
  wlm_generator_destroy(s.generator);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_emitted_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
