/* warploom bench minibatch and dispatch on the host device: what they write and what their summaries say. */
#include "support/command.h"
#include "support/test.h"

static void number_is_positive(const char *line, const char *path) {
  if (!(json_number_at(line, path) > 0)) fail_msg("%s is missing in %s", path, line);
}

static void no_number(const char *line, const char *path) {
  char *value = json_at(line, path);
  if (value) fail_msg("%s is %s in %s", path, value, line);
}

TEST(minibatch_times_both_directions) {
  static const char *const directions[] = {"forward", "transposed"};
  const char *results = in_folder("minibatch.jsonl");
  command c = RUN(0, "bench", "minibatch", "--device", "host", "--samples", "1", "-n", "4", "--out", results,
                  "uniform:rows=1500,d=6", "uniform:rows=1,d=1");
  assert_int_equal(count_lines(c.out, "uniform:rows=1500,d=6"), 2);
  FREED char *text = text_of(results);
  assert_int_equal(count_lines(text, "\"suite\":\"minibatch\""), 4);
  for (int i = 0; i < 2; i++) {
    FREED char *line = line_of(text, i);
    assert_true(json_is_valid(line));
    assert_json(line, {"$.graph", "uniform:rows=1500,d=6"}, {"$.direction", directions[i]}, {"$.n", "4"},
                {"$.blocks", "102"}, {"$.failed", "{}"}, {"$.baseline", "openmp"});
    number_is_positive(line, "$.us");
    number_is_positive(line, "$.openmp_us");
    no_number(line, "$.cusparse_us");
    assert_true(json_number_at(line, "$.max_rel_err") < 1e-6);
    assert_json(line, {"$.layers[0].rows_mean", "1024.0"}, {"$.layers[0].nnz_mean", "6144.0"});
    for (int layer = 0; layer < 3; layer++) {
      char path[64];
      snprintf(path, sizeof path, "$.layers[%d].us", layer);
      number_is_positive(line, path);
    }
  }
}

TEST(minibatch_needs_a_square_matrix) {
  command c = RUN(1, "bench", "minibatch", "--device", "host", "-n", "4", "uniform:rows=30,cols=20,d=2");
  assert_contains(c.err, "square matrix, not from 30 x 20");
}

TEST(dispatch_times_each_call) {
  static const struct {
    const char *name;
    int has_baseline;
  } cases[] = {{"context_create", 0},  {"plan_known", 0},      {"rebind", 0}, {"matrix_estimated", 0},
               {"matrix_measured", 0}, {"spmm_new_matrix", 1}, {"execute", 1}};
  const char *results = in_folder("dispatch.jsonl");
  RUN(0, "bench", "dispatch", "--device", "host", "--samples", "2", "-n", "4", "--out", results,
      "uniform:rows=1500,d=6");
  FREED char *text = text_of(results);
  for (int i = 0; i < 7; i++) {
    FREED char *line = line_of(text, i);
    assert_true(json_is_valid(line));
    assert_json_at(line, "$.case", cases[i].name);
    number_is_positive(line, "$.us");
    no_number(line, "$.failed");
    if (cases[i].has_baseline)
      number_is_positive(line, "$.baseline_us");
    else
      no_number(line, "$.baseline_us");
  }
  RUN(0, "bench", "dispatch", "--device", "host", "-n", "4", "--out", results,
      "uniform:rows=1500,d=6"); /* the file already has this case */
  FREED char *again = text_of(results);
  assert_string_equal(again, text);
}

GROUP(home_begin, folder_end)
