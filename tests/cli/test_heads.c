/* --heads on the command line: problems with heads are run, checked, tuned, stored separately, explained and exported.
 */
#include "support/command.h"
#include "support/test.h"

#define INPUT "uniform:rows=300,d=7"

TEST(runs_and_checks) {
  static const char *const more[][2] = {{"--op", "div.max"},
                                        {"--type", "f16"},
                                        {"--operation", "sddmm"},
                                        {"--sample", "bucket:8:kept"},
                                        {"--op", "init=0;reduce=acc+x"},
                                        {"--epilogue", "relu"}};
  command c;
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    c = RUN(0, "run", INPUT, "-n", "24", "--heads", "8", "--device", "host", "--check", more[i][0], more[i][1]);
    assert_contains(c.out, "verified");
  }
  c = RUN(0, "run", INPUT, "-n", "6", "--heads", "2", "--transpose", "--device", "host", "--check");
  assert_contains(c.out, "verified");
}

/* Measurements for one number of heads are not used for another one; export and import keep the number. */
TEST(tunes_exports_and_imports) {
  const char *lines = in_folder("lines.jsonl"), *copy = in_folder("copy.db");
  RUN(0, "tune", INPUT, "-n", "24", "--heads", "4", "--device", "host");
  command c = RUN(0, "explain", INPUT, "-n", "24", "--heads", "4", "--device", "host");
  assert_contains(c.out, "heads=4", "this very matrix");
  c = RUN(0, "explain", INPUT, "-n", "24", "--heads", "8", "--device", "host");
  assert_contains(c.out, "heads=8");
  assert_null(strstr(c.out, "this very matrix"));
  RUN(0, "export", "-o", lines);
  FREED char *first = text_of(lines);
  char *key = strstr(first, "sample=none,heads=4");
  assert_non_null(key);
  RUN(0, "import", lines, "--db", copy);
  c = RUN(0, "explain", INPUT, "-n", "24", "--heads", "4", "--device", "host", "--db", copy);
  assert_contains(c.out, "this very matrix");
  RUN(0, "export", "-o", lines, "--db", copy);
  FREED char *second = text_of(lines);
  assert_string_equal(first, second);
}

TEST(refuses_invalid_heads) {
  command c = RUN(2, "run", INPUT, "-n", "32", "--heads", "3", "--device", "host");
  assert_contains(c.err, "--heads is 3, must be 1 or more and divide n = 32");
  c = RUN(2, "run", INPUT, "--heads", "0");
  assert_contains(c.err, "--heads must be 1 to 2147483647, not 0");
}

TEST(shows_the_kernel) {
  command c = RUN(0, "show", "row_vec/lanes=8,vector=4,batch=4", "-n", "32", "--heads", "8");
  assert_contains(c.out, "wlm_load_head_a(args, p");
  c = RUN(1, "show", "row_vec/lanes=8,vector=4,batch=4", "-n", "16", "--heads", "8", "--target", "cuda");
  assert_contains(c.err, "columns of a head");
}

GROUP(home_begin, folder_end)
