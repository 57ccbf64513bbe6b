/* warploom bench operators on the host device: a case has all lines, each with a correct result; and the summary of a
 * hand-made file. */
#include "support/command.h"
#include "support/test.h"

/* Rows 3 and 6 are empty, as is column 2; row 5 is full. */
static const char matrix_text[] =
    "%%MatrixMarket matrix coordinate real general\n6 5 9\n1 1 2.5\n1 5 -1\n2 3 0.25\n4 4 1e-3\n5 1 1\n5 2 -2\n5 3 3\n"
    "5 4 -4\n5 5 5\n";

static const struct {
  const char *op, *type;
  double error; /* the largest error allowed */
} lines_of_a_case[] = {
    {"sum", "f32", 1e-6},     {"mean", "f32", 1e-6},   {"max", "f32", 1e-6},    {"min", "f32", 1e-6},
    {"max_arg", "f32", 1e-6}, {"custom", "f32", 1e-6}, {"copy_b", "f32", 1e-6}, {"sddmm", "f32", 1e-6},
    {"sum", "f16", 1e-3},     {"sum", "bf16", 1e-2},   {"sum", "f64", 1e-14},   {"max", "f16", 1e-3},
};
enum { LINES = sizeof lines_of_a_case / sizeof *lines_of_a_case };

static void check_line(const char *line, int place, const char *matrix, double sum_us) {
  static const char *const nulls[] = {"cusparse", "prepared_us", "prepare_us", "ge_spmm_us"};
  assert_true(json_is_valid(line));
  assert_json(line, {"$.suite", "operators"}, {"$.matrix", matrix}, {"$.op", lines_of_a_case[place].op},
              {"$.type", lines_of_a_case[place].type}, {"$.failed", "{}"});
  assert_true(json_number_at(line, "$.us") > 0);
  assert_true(json_number_at(line, "$.chosen_us") > 0);
  assert_true(json_number_at(line, "$.sum_us") == sum_us);
  assert_true(json_number_at(line, "$.candidates") > 0);
  if (!(json_number_at(line, "$.max_rel_err") <= lines_of_a_case[place].error)) fail_msg("too far off: %s", line);
  for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++) {
    char member[64];
    snprintf(member, sizeof member, "\"%s\":null", nulls[i]);
    assert_contains(line, member);
  }
  assert_contains(line, strcmp(lines_of_a_case[place].op, "max_arg") ? "\"arg_type\":null" : "\"arg_type\":\"i16\"");
  if (!strcmp(lines_of_a_case[place].op, "sddmm")) assert_contains(line, "\"cusparse_sddmm_us\":null");
}

TEST(all_lines_of_a_case) {
  command c;
  const char *matrix = in_folder("small.mtx"), *results = in_folder("operators.jsonl");
  write_whole(matrix, matrix_text, strlen(matrix_text));
  for (int again = 0; again < 2; again++) { /* the second run has nothing to do */
    c = RUN(0, "bench", "operators", "--device", "host", "--samples", "3", "-n", "3", "--out", results, matrix,
            "uniform:rows=300,d=5");
    assert_int_equal(count_lines(c.out, ", op sddmm, type f32, us "), again ? 0 : 2);
  }
  FREED char *text = text_of(results);
  char *rest = text;
  for (int i = 0; i < 2; i++) {
    double sum_us = 0;
    for (int place = 0; place < LINES; place++) {
      char *line = strtok_r(rest, "\n", &rest);
      assert_non_null(line);
      if (!place) sum_us = json_number_at(line, "$.us");
      check_line(line, place, i ? "uniform:rows=300,d=5" : "small", sum_us);
    }
  }
  assert_null(strtok_r(rest, "\n", &rest));
}

/* The suite has the matrices of suite core, in another order. */
TEST(suite_has_the_matrices_of_core) {
  size_t size;
  int count[2] = {0};
  FREED char *core = (char *)read_whole(WLM_SOURCE_DIR "/bench/suites/core.txt", &size);
  FREED char *own = (char *)read_whole(WLM_SOURCE_DIR "/bench/suites/operators.txt", &size);
  for (int i = 0; i < 2; i++) {
    char *other = i ? core : own, *rest = strdup(i ? own : core), *first = rest;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
      char whole[160];
      if (line[0] == '#' || !strncmp(line, "n ", 2)) continue;
      snprintf(whole, sizeof whole, "\n%s\n", line);
      if (!strstr(other, whole)) fail_msg("%s is in one list only", line);
      count[i]++;
    }
    free(first);
  }
  assert_int_equal(count[0], count[1]);
}

GROUP(home_begin, folder_end)
