/* warploom bench on the host device: what it writes, that it goes on where it was cut off, what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/command.h"

static const char matrix_text[] =
    "%%MatrixMarket matrix coordinate pattern general\n5 6 7\n1 1\n1 3\n2 2\n4 6\n4 1\n4 2\n5 5\n";

#define BENCH(c, code, ...) \
  command_expect(c, &folder, code, "bench", "core", "--device", "host", "--samples", "3", __VA_ARGS__)

static void assert_value(const char *line, const char *path, const char *expected) {
  char *value = json_at(line, path);
  if (!value || strcmp(value, expected)) fail_msg("%s is %s, expected %s in %s", path, value, expected, line);
  free(value);
}

static void writes_a_line_a_case_and_goes_on(void **state) {
  (void)state;
  command c;
  char matrix[320], results[320];
  snprintf(matrix, sizeof matrix, "%s", folder_file(&folder, "small.mtx"));
  snprintf(results, sizeof results, "%s", folder_file(&folder, "results.jsonl"));
  write_whole(matrix, matrix_text, strlen(matrix_text));

  BENCH(&c, 0, "-n", "3", "--out", results, matrix);
  assert_int_equal(count_lines(c.out, "small "), 1);
  command_release(&c);
  char *first = text_of(results);
  assert_int_equal(count_lines(first, "\"suite\":\"core\""), 1);
  assert_true(json_is_valid(first));
  assert_value(first, "$.matrix", "small");
  assert_value(first, "$.nnz", "7");
  assert_value(first, "$.n", "3");
  assert_value(first, "$.failed", "{}");
  char *err = json_at(first, "$.max_rel_err"), *us = json_at(first, "$.us"), *variant = json_at(first, "$.variant");
  assert_true(err && atof(err) < 1e-6);
  assert_true(us && atof(us) > 0);
  assert_true(variant && !strncmp(variant, "host_", 5));
  free(err);
  free(us);
  free(variant);

  /* Cut off in the middle of the second case. */
  char *cut = malloc(strlen(first) + 16);
  assert_non_null(cut);
  size_t size = (size_t)sprintf(cut, "%s{\"suite\":\"co", first);
  write_whole(results, cut, size);
  free(cut);
  BENCH(&c, 0, "-n", "3,8", "--out", results, matrix, "uniform:rows=50,d=3");
  assert_int_equal(count_lines(c.out, "small "), 1);
  command_release(&c);
  char *second = text_of(results);
  assert_memory_equal(second, first, strlen(first)); /* what was there stays */
  assert_int_equal(count_lines(second, "\"suite\":\"core\""), 4);
  assert_int_equal(count_lines(second, "\"matrix\":\"small\""), 2);
  assert_int_equal(count_lines(second, "\"matrix\":\"uniform:rows=50,d=3\""), 2);

  BENCH(&c, 0, "-n", "3,8", "--out", results, matrix, "uniform:rows=50,d=3"); /* nothing is left */
  command_release(&c);
  char *third = text_of(results);
  assert_string_equal(third, second);
  free(first);
  free(second);
  free(third);
}

static void bad_input_does_not_stop_the_rest(void **state) {
  (void)state;
  command c;
  BENCH(&c, 1, "-n", "4", "nowhere.mtx", "uniform:rows=20,d=2");
  assert_contains(c.err, "nowhere.mtx");
  assert_int_equal(count_lines(c.out, "uniform:rows=20,d=2"), 1);
  command_release(&c);
}

static void bad_command_line(void **state) {
  (void)state;
  command c;
  command_expect(&c, &folder, 2, "bench");
  command_release(&c);
  command_expect(&c, &folder, 2, "bench", "nothing", "a.mtx");
  assert_contains(c.err, "unknown suite nothing");
  command_release(&c);
  BENCH(&c, 2, "-n", "0", "a.mtx");
  command_release(&c);
  BENCH(&c, 2, "--samples", "many", "a.mtx");
  command_release(&c);
  BENCH(&c, 2, "--colour", "a.mtx");
  assert_contains(c.err, "--colour");
  command_release(&c);
  command_expect(&c, &folder, 2, "bench", "core");
  assert_contains(c.err, "name a matrix");
  command_release(&c);
  BENCH(&c, 1, "--out", "/nowhere/at/all", "uniform:rows=20,d=2");
  assert_contains(c.err, "/nowhere/at/all");
  command_release(&c);
  command_expect(&c, &folder, 0, "bench", "--help");
  assert_contains(c.out, "core");
  command_release(&c);
}

static void summarises(void **state) {
  (void)state;
  static const char lines[] =
      "{\"matrix\":\"a\",\"rows\":10,\"nnz\":40,\"n\":32,\"us\":2.0,\"variant\":\"v/"
      "x=1\",\"chosen_us\":3.0,\"ge_spmm_us\":8.0,"
      "\"cusparse\":{\"default_nopre\":6.0,\"default\":6.0,\"alg1_nopre\":4.0,\"alg1\":null,\"alg3_nopre\":null,"
      "\"alg3\":1.0}}\n"
      "{\"matrix\":\"b\",\"rows\":10,\"nnz\":40,\"n\":64,\"us\":2.0,\"variant\":\"v/"
      "x=1\",\"chosen_us\":2.0,\"ge_spmm_us\":2.0,"
      "\"cusparse\":{\"default_nopre\":16.0,\"default\":4.0}}\n";
  command c;
  char results[320];
  snprintf(results, sizeof results, "%s", folder_file(&folder, "summary.jsonl"));
  write_whole(results, lines, strlen(lines));
  command_expect(&c, &folder, 0, "bench", "summary", results);
  assert_contains(c.out, "| a | 10 | 4.0 | 32 | `v/x=1` | 2.0 | 3.0 | 8.0 | 4.0 (alg1) | 1.0 (alg3) | 2.00x / 0.50x |");
  assert_contains(c.out, "2 cases");
  assert_contains(c.out, "without preprocess: 4.00x, 2.00x (a, N = 32)"); /* sqrt(2 * 8) */
  assert_contains(c.out, "preprocess kept: 1.00x, 0.50x (a, N = 32)");
  assert_contains(c.out, "dispatcher chose: 1.22x, 1.50x (a, N = 32)");
  command_release(&c);
  write_whole(results, "{}\n", 3);
  command_expect(&c, &folder, 1, "bench", "summary", results);
  assert_contains(c.err, "summary.jsonl:1");
  command_release(&c);
  command_expect(&c, &folder, 2, "bench", "summary");
  command_release(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_a_line_a_case_and_goes_on),
      cmocka_unit_test(summarises),
      cmocka_unit_test(bad_input_does_not_stop_the_rest),
      cmocka_unit_test(bad_command_line),
  };
  return cmocka_run_group_tests(tests, home_begin, folder_end);
}
