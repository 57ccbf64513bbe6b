/* --heads on the command line: problems with heads are run, checked, tuned, stored separately, explained and exported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    command_expect(&c, &folder, 0, "run", INPUT, "-n", "24", "--heads", "8", "--device", "host", "--check", more[i][0],
                   more[i][1]);
    assert_contains(c.out, "verified");
    command_release(&c);
  }
  command_expect(&c, &folder, 0, "run", INPUT, "-n", "6", "--heads", "2", "--transpose", "--device", "host", "--check");
  assert_contains(c.out, "verified");
  command_release(&c);
}

/* Measurements for one number of heads are not used for another one; export and import keep the number. */
TEST(tunes_exports_and_imports) {
  char lines[320], copy[320];
  command c;
  snprintf(lines, sizeof lines, "%s/lines.jsonl", folder.path);
  snprintf(copy, sizeof copy, "%s/copy.db", folder.path);
  command_expect(&c, &folder, 0, "tune", INPUT, "-n", "24", "--heads", "4", "--device", "host");
  command_release(&c);
  command_expect(&c, &folder, 0, "explain", INPUT, "-n", "24", "--heads", "4", "--device", "host");
  assert_contains(c.out, "heads=4");
  assert_contains(c.out, "this very matrix");
  command_release(&c);
  command_expect(&c, &folder, 0, "explain", INPUT, "-n", "24", "--heads", "8", "--device", "host");
  assert_contains(c.out, "heads=8");
  assert_null(strstr(c.out, "this very matrix"));
  command_release(&c);
  command_expect(&c, &folder, 0, "export", "-o", lines);
  command_release(&c);
  char *first = text_of(lines), *key = strstr(first, "sample=none,heads=4");
  assert_non_null(key);
  command_expect(&c, &folder, 0, "import", lines, "--db", copy);
  command_release(&c);
  command_expect(&c, &folder, 0, "explain", INPUT, "-n", "24", "--heads", "4", "--device", "host", "--db", copy);
  assert_contains(c.out, "this very matrix");
  command_release(&c);
  command_expect(&c, &folder, 0, "export", "-o", lines, "--db", copy);
  command_release(&c);
  char *second = text_of(lines);
  assert_string_equal(first, second);
  free(first);
  free(second);
}

TEST(refuses_invalid_heads) {
  command c;
  command_expect(&c, &folder, 2, "run", INPUT, "-n", "32", "--heads", "3", "--device", "host");
  assert_contains(c.err, "--heads is 3, must be 1 or more and divide n = 32");
  command_release(&c);
  command_expect(&c, &folder, 2, "run", INPUT, "--heads", "0");
  assert_contains(c.err, "--heads must be 1 to 2147483647, not 0");
  command_release(&c);
}

TEST(shows_the_kernel) {
  command c;
  command_expect(&c, &folder, 0, "show", "row_vec/lanes=8,vector=4,batch=4", "-n", "32", "--heads", "8");
  assert_contains(c.out, "wlm_load_head_a(args, p");
  command_release(&c);
  command_expect(&c, &folder, 1, "show", "row_vec/lanes=8,vector=4,batch=4", "-n", "16", "--heads", "8", "--target",
                 "cuda");
  assert_contains(c.err, "columns of a head");
  command_release(&c);
}

GROUP(home_begin, folder_end)
