/* The command on a GPU: tuning, choosing by the measurements, checked runs, and a kernel that makes the device
 * unusable. */
#include <sys/stat.h>

#include "support/command.h"
#include "support/gpu.h"
#include "support/test.h"

#define MATRIX "twin:arxiv,scale=0.02"

static const char *const problems[][2] = {{"--op=sum", "--seed=1"},
                                          {"--op=mean", "--seed=2"},
                                          {"--op=copy_b.max", "--seed=3"},
                                          {"--op=sum", "--sample=bucket:32"},
                                          {"--op=sum", "--sample=fastrand_coprime:64:unbiased"}};

static void tuned_runs_are_correct(void **state) {
  const char *const *problem = *state, *op = problem[0], *more = problem[1];
  test_gpu();
  command c = RUN(0, "tune", MATRIX, "-n", "7,33,128", "--device", "cuda:0", op, more);
  if (count_lines(c.err, " failed")) fail_msg("tune %s %s: %s\n%s", op, more, c.out, c.err);
  c = RUN(0, "run", MATRIX, "-n", "7,33,128", "--device", "cuda:0", op, more, "--check");
  assert_contains(c.out, "verified: max_rel_err=");
  assert_int_equal(count_lines(c.out, "fingerprint"), 3);
}

static int is_there(const char *device) {
  command c = RUN(0, "info");
  const int found = strstr(c.out, device) != NULL;
  return found;
}

/* Compares with all algorithms of cuSPARSE, and gives two ratios in one verdict. If the file is a pattern, cuSPARSE
 * multiplies by ones. A second GPU is compared, too: without a current context, cuSPARSE uses the first one. */
static void compares_with_cusparse(void **state) {
  const char *device = *state;
  static const char pattern[] = "%%MatrixMarket matrix coordinate pattern general\n4 4 3\n1 2\n3 3\n4 1\n";
  const char *inputs[] = {MATRIX, folder_file(&folder, "pattern.mtx")};
  test_gpu();
  if (!is_there(device)) skip();
  write_whole(inputs[1], pattern, strlen(pattern));
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    command c = RUN(0, "compare", inputs[i], "-n", "64", "--device", device, "--samples", "3");
    assert_contains(c.out, "cuSPARSE                ", "cuSPARSE, preprocessed", " cuSPARSE, ",
                    " with its preprocessing kept\n");
  }
}

/* After a write out of bounds every call of the context fails. Tuning stops, and later candidates are not recorded
 * as failed. */
TEST(broken_device_ends_tuning) {
  static const char family[] =
      "return { target = \"cuda\", summary = \"a test\", parameters = {{\"x\", {1, 2, 3}}},\n"
      "  passes = function() return { { kernel = \"crash\", units = \"rows\", units_per_block = 1,\n"
      "    columns_per_block = 32, threads = 32 } } end, registers = function() return 32 end }\n";
  static const char kernel[] = "WLM_KERNEL(crash, 32) {\n  ((float *)args.c)[-(1ll << 45) - @{x}] = 0;\n}\n";
  command c;
  test_gpu();
  const char *path = in_folder("templates");
  mkdir(path, 0700);
  assert_int_equal(setenv("WARPLOOM_TEMPLATES", path, 1), 0);
  path = in_folder("templates/crash");
  mkdir(path, 0700);
  path = in_folder("templates/crash/family.lua");
  write_whole(path, family, strlen(family));
  path = in_folder("templates/crash/kernel.cu.in");
  write_whole(path, kernel, strlen(kernel));
  path = in_folder("crash.db");
  command_run(&c, &folder, "tune", MATRIX, "-n", "32", "--device", "cuda:0", "--db", path);
  unsetenv("WARPLOOM_TEMPLATES");
  assert_int_equal(c.code, 1);
  assert_contains(c.err, "left the device unusable");
  c = RUN(0, "db", "check", "--db", path, "--json");
  FREED char *count = json_at(c.out, "$.measurements");
  assert_string_equal(count, "1");
}

static int end(void **state) {
  folder_remove(&folder);
  return test_gpu_close(state);
}

#define TUNED(i) TEST_WITH(tuned_runs_are_correct_##i, tuned_runs_are_correct, (void *)(uintptr_t)problems[i])
TUNED(0)
TUNED(1)
TUNED(2)
TUNED(3)
TUNED(4)
TEST_WITH(compares_on_gpu_0, compares_with_cusparse, "cuda:0")
TEST_WITH(compares_on_gpu_1, compares_with_cusparse, "cuda:1")
GROUP(home_begin, end)

int main(int argc, char **argv) { return test_run_shard(test_shard_of(argc, argv)); }
