/* Compiles the emitted host kernels of the covering set with the system's compiler and runs them against float64,
 * each with one, two and five OpenMP threads: results must be right and have the same bits each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <omp.h>

#include "runtime/devices.h"
#include "runtime/host/threads.h"
#include "support/asserts.h"
#include "support/covering_check.h"

static void next_threads(void *user, int run) {
  static const int threads[] = {1, 2, 5};
  (void)user;
  omp_set_num_threads(threads[run]);
}

static test_shard shard;

static void test_emitted_kernels(void **state) {
  (void)state;
  wlmi_device *device;
  assert_status(WLM_OK, wlmi_host_device_open(&device));
  wlmi_host_share_from(0); /* several threads even for small products */
  covering_check_all(&(covering_check){.device = device, .runs = 3, .before_run = next_threads, .shard = shard});
  device->ops->close(device);
}

int main(int argc, char **argv) {
  shard = test_shard_of(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_emitted_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
