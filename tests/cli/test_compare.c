/* warploom compare: one table and one verdict for each N, and its messages where it cannot compare. */
#include "support/command.h"
#include "support/test.h"

#define MATRIX "uniform:rows=400,d=7"

TEST(gives_a_verdict) {
  command c = RUN(0, "compare", MATRIX, "-n", "16,32", "--device", "host", "--samples", "3");
  assert_int_equal(count_lines(c.out, "verdict      "), 2);
  assert_int_equal(count_lines(c.out, " a plain OpenMP loop"), 2);
  assert_int_equal(count_lines(c.out, "OpenMP loop  openmp"), 2);
  assert_int_equal(count_lines(c.out, "hint         this matrix is not tuned"), 2);
}

TEST(json_agrees_with_itself) {
  command c = RUN(0, "compare", MATRIX, "-n", "16", "--device", "host", "--samples", "3", "--json");
  assert_true(json_is_valid(c.out));
  assert_json(c.out, {"$.comparisons[0].n", "16"}, {"$.comparisons[0].methods[0].method", "warploom"});
  const double ours = json_number_at(c.out, "$.comparisons[0].methods[0].us");
  const double loop = json_number_at(c.out, "$.comparisons[0].methods[1].us");
  assert_true(fabs(json_number_at(c.out, "$.comparisons[0].speed_up") - loop / ours) < 1e-6 * loop / ours);
  assert_true(json_number_at(c.out, "$.comparisons[0].methods[1].error") < 1e-5);
}

/* For a tuned matrix there is no hint to tune it. If the file is a pattern, the baselines multiply by ones. */
TEST(gives_no_hint_for_a_tuned_matrix) {
  static const char pattern[] = "%%MatrixMarket matrix coordinate pattern general\n4 4 3\n1 2\n3 3\n4 1\n";
  const char *path = folder_file(&folder, "pattern.mtx");
  write_whole(path, pattern, strlen(pattern));
  RUN(0, "tune", path, "-n", "16", "--device", "host");
  command c = RUN(0, "compare", path, "-n", "16", "--device", "host", "--samples", "3");
  assert_contains(c.out, "values       no", "step         fingerprint");
  assert_null(strstr(c.out, "not tuned"));
  assert_contains(c.out, "OpenMP loop  openmp");
  c = RUN(0, "compare", path, "-n", "32", "--device", "host", "--samples", "3");
  assert_contains(c.out, "hint         this matrix is tuned for N = 16, not for this N; warploom tune");
}

TEST(refuses_what_it_cannot_compare) {
  command c = RUN(1, "compare", MATRIX, "--device", "host", "--type", "f64");
  assert_contains(c.err, "nothing to compare with: computes in f32 only");
  c = RUN(2, "compare", MATRIX, "--op", "max");
  assert_contains(c.err, "takes no option '--op'");
  setenv("WARPLOOM_CC", "/no/such/compiler", 1);
  c = RUN(2, "compare", MATRIX, "--device", "host"); /* a package is missing */
  assert_contains(c.err, "nothing to compare with: ");
  unsetenv("WARPLOOM_CC");
}

GROUP(home_begin, folder_end)
