/* Executes emitted CUDA kernels, a fiber a thread, under ASan and UBSan and compares with float64. Every program
 * runs twice, with different orders of lanes, warps and blocks: results must be right both times, and the same
 * where the family says that it is deterministic. */
#include <omp.h>

#include "simt/shim/simt_device.h"
#include "support/covering.h"
#include "support/covering_check.h"
#include "support/emit_fixture.h"
#include "support/test.h"

/* Of the full set, entries marked `first` and every eighth of the others are compiled with all checks. */
enum { MOST_KERNELS = 1000, MOST_KERNELS_FULL = 15200, UNHURRIED = 8 };

typedef struct orders {
  wlmi_device *device;
  uint64_t seed; /* of the order of the next launch */
} orders;

static void before_entry(void *user, int64_t index, const covering_entry *entry) {
  orders *o = user;
  o->seed = (uint64_t)index * 1000 + 1;
  simt_device_hurry(o->device, covering_full() && !entry->first && index % UNHURRIED != 0);
  omp_set_num_threads(1); /* the test already uses all cores with processes */
}

static void before_run(void *user, int run) {
  orders *o = user;
  simt_device_seed(o->device, o->seed++ * 2 + (uint64_t)run);
}

static covering_part part;

TEST(test_emitted_kernels) {
  orders o = {0};
  assert_status(WLM_OK, simt_device_open(&o.device));
  /* The table of docs/operators.md (tests/emit) is made from this set, so the architectures must be equal. */
  assert_int_equal(o.device->info.limits.arch, emit_cuda.arch);
  assert_int_equal(o.device->info.limits.threads_per_block, emit_cuda.threads_per_block);
  assert_int_equal(o.device->info.limits.shared_bytes, emit_cuda.shared_bytes);
  int64_t count = covering_check_all(&(covering_check){o.device, 2, before_entry, before_run, &o, part});
  assert_true(count <= (covering_full() ? MOST_KERNELS_FULL : MOST_KERNELS));
  o.device->ops->close(o.device);
}

int main(int argc, char **argv) {
  part = covering_part_of(argc, argv);
  return test_run();
}
