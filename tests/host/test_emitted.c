/* Compiles the emitted host kernels of the covering set with the system's compiler and runs them against float64,
 * each with one, two and five OpenMP threads: results must be right and have the same bits each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/devices.h"
#include "support/covering.h"
#include "support/kernel_check.h"
#include "support/parallel.h"

typedef struct suite {
  wlm_generator *generator;
  wlm_device *device;
  covering set;
} suite;

static void next_threads(void *user, int run) {
  static const int threads[] = {1, 2, 5};
  (void)user;
  omp_set_num_threads(threads[run]);
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
  const kernel_check check = {s->device, &entry->spec, 3, next_threads, NULL, (uint64_t)index + 1};
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
  assert_int_equal(wlm_host_device_open(&s.device), WLM_OK);
  assert_int_equal(covering_make(s.generator, &s.device->info.limits, 1, covering_full(), &s.set), WLM_OK);
  printf("host: %lld kernels\n", (long long)s.set.count);
  assert_true(s.set.count > 100);
  assert_int_equal(test_in_parallel(s.set.count, one, describe, &s), 0);
  covering_release(&s.set);
  s.device->ops->close(s.device);
  wlm_generator_destroy(s.generator);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_emitted_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
