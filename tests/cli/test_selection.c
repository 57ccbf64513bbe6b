/* warploom bench selection: three lines a case, timed side by side, from a database that was tuned before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/command.h"

static const char input[] = "uniform:rows=400,d=5";

static double number_at(const char *line, const char *path) {
  char *value = json_at(line, path);
  double number = value ? atof(value) : -1; /* JSON's null is no value */
  free(value);
  return number;
}

static void expect_text(const char *line, const char *path, const char *expected) {
  char *value = json_at(line, path);
  assert_non_null(value);
  assert_string_equal(value, expected);
  free(value);
}

static void three_ways_of_choosing_a_case(void **state) {
  (void)state;
  static const char *const modes[] = {"tuned", "loo", "rule"}, *const sources[] = {"fingerprint", "rule", "rule"};
  command c;
  char database[320], results[320];
  size_t size;
  snprintf(database, sizeof database, "%s", folder_file(&folder, "tuned.db"));
  snprintf(results, sizeof results, "%s", folder_file(&folder, "selection.jsonl"));
  command_expect(&c, &folder, 0, "tune", "--device", "host", "--db", database, "-n", "16", input);
  command_expect(&c, &folder, 0, "bench", "selection", "--device", "host", "--samples", "3", "--db", database, "-n",
                 "16", "--out", results, input);
  char *text = (char *)read_whole(results, &size), *rest = text;
  for (int mode = 0; mode < 3; mode++) {
    char *line = strtok_r(rest, "\n", &rest);
    assert_non_null(line);
    expect_text(line, "$.matrix", input);
    expect_text(line, "$.mode", modes[mode]);
    expect_text(line, "$.source", sources[mode]);
    assert_true(number_at(line, "$.n") == 16);
    assert_true(number_at(line, "$.best_us") > 0);
    assert_true(number_at(line, "$.us") >= number_at(line, "$.best_us"));
    assert_true(number_at(line, "$.best_fixed_us") < 0); /* it is not of the suite */
    assert_true(number_at(line, "$.distance") == 0);
  }
  assert_null(strtok_r(rest, "\n", &rest));
  free(text);
}

static void needs_a_database(void **state) {
  (void)state;
  command c;
  command_expect(&c, &folder, 1, "bench", "selection", "--device", "host", "-n", "16", input);
  assert_contains(c.err, "--db");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(three_ways_of_choosing_a_case),
      cmocka_unit_test(needs_a_database),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
