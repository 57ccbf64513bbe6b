/* Checks the covering set on the GPU as the simt tests check it without one, on several threads at once.
 * WARPLOOM_RUNS=100 repeats each entry a hundred times on the same operands: deterministic variants must give the same
 * bits. With --one-variant-each it checks one variant of each family and kind of problem, once and on one thread, for
 * compute-sanitizer, and prints their names; --one-variant-each 2/8 checks the second of eight parts. */
#include "support/covering_kinds.h"
#include "support/gpu.h"
#include "support/kernel_check.h"
#include "support/test.h"

enum { MOST_REPORTED = 20, RUNS = 3 };

static int one_each;
static test_shard shard;

static int runs(void) {
  const char *text = getenv("WARPLOOM_RUNS");
  return text && atoi(text) > 0 ? atoi(text) : one_each ? 1 : RUNS;
}

static wlm_status check_entry(wlmi_device *device, wlmi_generator *generator, const covering_entry *entry) {
  wlmi_program program;
  kernel_check check = {.device = device, .spec = &entry->spec, .runs = runs(), .seed = 11};
  wlm_status status = wlmi_generator_emit(generator, entry->variant, &entry->spec, &device->info.limits, &program);
  if (status != WLM_OK) return status;
  status = kernel_check_program(&check, &program);
  wlmi_program_release(&program);
  return status;
}

TEST(every_family_is_correct) {
  wlmi_device *device = test_gpu();
  HELD(covering) set;
  int64_t failures = 0;
  test_needs_nvrtc();
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  assert_int_equal(covering_make(generator, &device->info.limits, 1, covering_full(), &set), WLM_OK);
  assert_true(set.count > 0);
  if (one_each) covering_keep_sample(&set, shard);
#pragma omp parallel for schedule(dynamic) if (!one_each) // compute-sanitizer is slow with several threads
  for (int64_t i = 0; i < set.count; i++) {
    char what[512];
    covering_describe(&set.entries[i], what, sizeof what);
    if (one_each) print_message("%s\n", what);
    if (check_entry(device, generator, &set.entries[i]) == WLM_OK) continue;
#pragma omp critical
    if (++failures <= MOST_REPORTED) print_error("%s: %s\n", what, wlm_error_detail());
  }
  print_message("%lld variants checked %d times each on %s\n", (long long)set.count, runs(), device->info.name);
  assert_int_equal(failures, 0);
}

GROUP(NULL, test_gpu_close)

int main(int argc, char **argv) {
  one_each = argc > 1 && !strcmp(argv[1], "--one-variant-each");
  if (one_each) shard = test_shard_of(argc - 1, argv + 1);
  return test_run();
}
