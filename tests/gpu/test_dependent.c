/* Runs one variant of each family and kind of problem on the GPU in three ways: each pass after the pass before it,
 * with dependent launch (a pass starts while the one before it drains), and with dependent launch of a fresh pattern
 * (wlm_args.fresh). All must agree with float64. The argument 2/4 runs the second of four parts. */
#include "support/covering_kinds.h"
#include "support/gpu.h"
#include "support/kernel_check.h"
#include "support/test.h"

/* CU_STREAM_PER_THREAD: kernels overlap on it, as they might not on the legacy stream. */
#define STREAM ((void *)2)

enum { RUNS = 3, OVERLAP_FROM = 90 };

typedef struct way {
  const char *name;
  int dependent, fresh;
} way;

static const way ways[] = {{"one pass after the other", 0, 0}, {"dependent", 1, 0}, {"dependent, fresh", 1, 1}};
enum { WAYS = sizeof ways / sizeof *ways };

static test_shard shard;
static const wlmi_device_ops *usual;
static _Thread_local const way *chosen; /* each thread checks another entry */
static _Thread_local int64_t dependent_launches;

/* kernel_check writes operands and reads results with blocking calls, so the stream is free to choose. */
static wlm_status launch_in_this_way(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                                     void *stream) {
  wlmi_launch changed = *launch;
  (void)stream;
  changed.dependent = launch->dependent && chosen->dependent;
  ((struct wlm_args *)args)->fresh = chosen->fresh; /* the call's own copy */
  dependent_launches += changed.dependent;
  return usual->launch(device, &changed, args, STREAM);
}

static wlm_status check_entry(wlmi_device *device, wlmi_generator *generator, const covering_entry *entry) {
  wlmi_program program;
  const kernel_check check = {.device = device, .spec = &entry->spec, .runs = RUNS, .seed = 13};
  wlm_status status = wlmi_generator_emit(generator, entry->variant, &entry->spec, &device->info.limits, &program);
  if (status != WLM_OK) return status;
  status = kernel_check_program(&check, &program);
  wlmi_program_release(&program);
  return status;
}

TEST(every_family_in_each_way) {
  wlmi_device *device = test_gpu();
  int64_t failures = 0, dependent = 0;
  test_needs_nvrtc();
  if (device->info.limits.arch < OVERLAP_FROM) test_missing("overlap", "GPU of sm_90 or newer", device->info.arch);
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  HOLD(covering, set, covering_make(generator, &device->info.limits, 1, 0, &set));
  covering_keep_sample(&set, shard);
  assert_true(set.count > 0);
  usual = device->ops;
  wlmi_device_ops ops = *usual;
  ops.launch = launch_in_this_way;
  device->ops = &ops;
#pragma omp parallel for schedule(dynamic) reduction(+ : failures, dependent)
  for (int64_t i = 0; i < set.count * WAYS; i++) {
    const covering_entry *entry = &set.entries[i / WAYS];
    chosen = &ways[i % WAYS];
    dependent_launches = 0;
    const wlm_status status = check_entry(device, generator, entry);
    dependent += dependent_launches;
    failures += status != WLM_OK;
    if (status == WLM_OK) continue;
#pragma omp critical
    {
      char what[512];
      covering_describe(entry, what, sizeof what);
      print_error("%s, %s: %s\n", what, chosen->name, wlm_error_detail());
    }
  }
  device->ops = usual;
  print_message("%lld variants checked in %d ways on %s, %lld dependent launches\n", (long long)set.count, (int)WAYS,
                device->info.name, (long long)dependent);
  assert_int_equal(failures, 0);
  assert_true(dependent > 0);
}

GROUP(NULL, test_gpu_close)

int main(int argc, char **argv) {
  shard = test_shard_of(argc, argv);
  return test_run();
}
