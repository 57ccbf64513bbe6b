/* A matrix or operand that does not fit into memory is reported before it is read or allocated; --force continues. */
#include <sys/resource.h>

#include "cli/machine.h"
#include "support/command.h"
#include "support/test.h"

/* A file of 67 bytes. Its matrix takes 2.3 GB, and each column of C 1.2 GB more. */
static const char tall[] = "%%MatrixMarket matrix coordinate pattern general\n300000000 1 1\n1 1\n";
static const char wide[] = "%%MatrixMarket matrix coordinate pattern general\n1 300000000 1\n1 1\n";

static const char *input(const char *name, const char *text) {
  write_whole(folder_file(&folder, name), text, strlen(text));
  return folder.file;
}

static void expect_refused(command *c, const char *operand, const char *mend) {
  assert_contains(c->err, operand, " GB and this machine has ", mend);
}

TEST(operands_are_named) {
  command c = RUN(1, "run", "synth:rows=2000,d=8,cv=1", "-n", "1000000000", "--device", "host");
  expect_refused(&c, "synth:rows=2000,d=8,cv=1: B needs 16000.0 GB", "use a smaller -n, or --force");
  c = RUN(1, "tune", "synth:rows=2000,d=8,cv=1", "-n", "8,1000000000", "--device", "host");
  expect_refused(&c, "B needs 16000.0 GB", "use a smaller -n");
  c = RUN(1, "run", "synth:rows=2000,d=8,cv=1", "-n", "1000000000", "--device", "host", "--message",
          "x+y"); /* 3 arrays, and x and y once more for the reference */
  expect_refused(&c, "--message needs 40000.0 GB", "use a smaller -n");
  command_run(&c, &folder, "bench", "core", "synth:rows=2000,d=8,cv=1", "-n", "1000000000", "--device", "host");
  assert_true(c.code != 0);
  expect_refused(&c, "B needs 16000.0 GB", "use a smaller -n");
  c = RUN(1, "run", input("wide.mtx", wide), "-n", "100000", "--device", "host");
  expect_refused(&c, "wide.mtx: B needs 240000.0 GB", "use a smaller -n");
  c = RUN(1, "run", input("tall.mtx", tall), "-n", "100000", "--device", "host");
  expect_refused(&c, "tall.mtx: C needs 120000.0 GB", "use a smaller -n");
}

/* With an address space of 3 GB the matrix alone does not fit. A run with --force ends when an allocation fails. */
TEST(limits_are_respected_and_force_continues) {
  struct rlimit before, less;
  command c;
  assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
  less = before;
  less.rlim_cur = (rlim_t)3 << 30;
  const char *path = input("tall.mtx", tall);
  assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
  const int64_t free_memory = wlmi_machine_free_memory();
  command_run(&c, &folder, "run", path, "-n", "1", "--device", "host");
  assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
  assert_in_range(free_memory, 1, (int64_t)3 << 30);
  assert_int_equal(c.code, 1);
  expect_refused(&c, "tall.mtx: A needs 6.0 GB", "use a smaller matrix, or --force");

  assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
  command_run(&c, &folder, "run", "synth:rows=2000,d=8,cv=1", "-n", "1000000000", "--device", "host", "--force");
  assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
  assert_int_equal(c.code, 1);
  if (strstr(c.err, "this machine has")) fail_msg("%s", c.err);
}

/* The header of a small file decides, not its entries: 2^31 - 1 rows take 34 GB. */
TEST(commands_without_a_product_check_the_matrix) {
  static const char tallest[] = "%%MatrixMarket matrix coordinate pattern general\n2147483647 1 0\n";
  static const char *const commands[][6] = {{"stats"}, {"convert", "-o", "/dev/null"}, {"explain", "--device", "host"}};
  struct rlimit before, less;
  char path[320];
  snprintf(path, sizeof path, "%s", input("tallest.mtx", tallest));
  assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
  less = before;
  less.rlim_cur = (rlim_t)30 << 30; /* enough for one array of 17 GB */
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    const char *const *words = commands[i];
    command c;
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
    command_run(&c, &folder, words[0], path, words[1], words[2]);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(c.code, 1);
    expect_refused(&c, "tallest.mtx: A needs ", "use a smaller matrix, or --force");
  }
}

TEST(fitting_operands_run) {
  assert_true(wlmi_machine_free_memory() > 1 << 20);
  RUN(0, "run", "synth:rows=200,d=8,cv=1", "-n", "8", "--device", "host");
}

GROUP(home_begin, folder_end)
