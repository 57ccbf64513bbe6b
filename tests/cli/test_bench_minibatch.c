/* warploom bench minibatch and dispatch on the host device: what they write and what their summaries say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/command.h"

static void number_is_positive(const char *line, const char *path) {
  if (!(json_number_at(line, path) > 0)) fail_msg("%s is missing in %s", path, line);
}

static void no_number(const char *line, const char *path) {
  char *value = json_at(line, path);
  if (value) fail_msg("%s is %s in %s", path, value, line);
}

static void minibatch_times_both_directions(void **state) {
  (void)state;
  static const char *const directions[] = {"forward", "transposed"};
  command c;
  char results[320];
  snprintf(results, sizeof results, "%s", folder_file(&folder, "minibatch.jsonl"));
  command_expect(&c, &folder, 0, "bench", "minibatch", "--device", "host", "--samples", "1", "-n", "4", "--out",
                 results, "uniform:rows=1500,d=6", "uniform:rows=1,d=1");
  assert_int_equal(count_lines(c.out, "uniform:rows=1500,d=6"), 2);
  command_release(&c);
  char *text = text_of(results);
  assert_int_equal(count_lines(text, "\"suite\":\"minibatch\""), 4);
  for (int i = 0; i < 2; i++) {
    char *line = line_of(text, i);
    assert_true(json_is_valid(line));
    assert_json_at(line, "$.graph", "uniform:rows=1500,d=6");
    assert_json_at(line, "$.direction", directions[i]);
    assert_json_at(line, "$.n", "4");
    assert_json_at(line, "$.blocks", "102");
    assert_json_at(line, "$.failed", "{}");
    assert_json_at(line, "$.baseline", "openmp");
    number_is_positive(line, "$.us");
    number_is_positive(line, "$.openmp_us");
    no_number(line, "$.cusparse_us");
    assert_true(json_number_at(line, "$.max_rel_err") < 1e-6);
    assert_json_at(line, "$.layers[0].rows_mean", "1024.0");
    assert_json_at(line, "$.layers[0].nnz_mean", "6144.0");
    for (int layer = 0; layer < 3; layer++) {
      char path[64];
      snprintf(path, sizeof path, "$.layers[%d].us", layer);
      number_is_positive(line, path);
    }
    free(line);
  }
  free(text);
  command_expect(&c, &folder, 0, "bench", "summary", results);
  assert_contains(c.out, "| uniform:rows=1500,d=6 | 4 | forward | 102 |");
  assert_contains(c.out, "| forward | 2 | ");
  assert_contains(c.out, "| transposed | 2 | ");
  command_release(&c);
}

static void minibatch_needs_a_square_matrix(void **state) {
  (void)state;
  command c;
  command_expect(&c, &folder, 1, "bench", "minibatch", "--device", "host", "-n", "4", "uniform:rows=30,cols=20,d=2");
  assert_contains(c.err, "square matrix, not from 30 x 20");
  command_release(&c);
}

static void dispatch_times_each_call(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int has_baseline;
  } cases[] = {{"context_create", 0},  {"plan_known", 0},      {"rebind", 0}, {"matrix_estimated", 0},
               {"matrix_measured", 0}, {"spmm_new_matrix", 1}, {"execute", 1}};
  command c;
  char results[320];
  snprintf(results, sizeof results, "%s", folder_file(&folder, "dispatch.jsonl"));
  command_expect(&c, &folder, 0, "bench", "dispatch", "--device", "host", "--samples", "2", "-n", "4", "--out", results,
                 "uniform:rows=1500,d=6");
  command_release(&c);
  char *text = text_of(results);
  for (int i = 0; i < 7; i++) {
    char *line = line_of(text, i);
    assert_true(json_is_valid(line));
    assert_json_at(line, "$.case", cases[i].name);
    number_is_positive(line, "$.us");
    no_number(line, "$.failed");
    if (cases[i].has_baseline)
      number_is_positive(line, "$.baseline_us");
    else
      no_number(line, "$.baseline_us");
    free(line);
  }
  command_expect(&c, &folder, 0, "bench", "dispatch", "--device", "host", "-n", "4", "--out", results,
                 "uniform:rows=1500,d=6"); /* the file already has this case */
  command_release(&c);
  char *again = text_of(results);
  assert_string_equal(again, text);
  free(text);
  free(again);
  command_expect(&c, &folder, 0, "bench", "summary", results);
  assert_contains(c.out, "| context_create |");
  assert_contains(c.out, "7 cases, ");
  command_release(&c);
}

static void summaries_compare_with_targets(void **state) {
  (void)state;
#define BLOCKS(graph, n, direction, us, cusparse)                                                           \
  "{\"suite\":\"minibatch\",\"graph\":\"" graph "\",\"n\":" n ",\"direction\":\"" direction "\",\"us\":" us \
  ",\"cusparse_us\":" cusparse                                                                              \
  ",\"openmp_us\":null,\"baseline\":\"alg2\",\"blocks\":102,\"rows_mean\":10.0,\""                          \
  "nnz_mean\":20.0}\n"
#define CALL(name, us, baseline) \
  "{\"suite\":\"dispatch\",\"n\":64,\"case\":\"" name "\",\"us\":" us ",\"baseline_us\":" baseline "}\n"
  static const char blocks[] = BLOCKS("g", "64", "forward", "10.0", "40.0") BLOCKS("g", "256", "forward", "10.0", "9.0")
      BLOCKS("g", "64", "transposed", "10.0", "12.0") BLOCKS("g", "256", "transposed", "10.0", "null");
  static const char calls[] = CALL("context_create", "20001.0", "null") CALL("rebind", "0.5", "null")
      CALL("spmm_new_matrix", "6.0", "3.0") CALL("execute", "2.4", "2.0") CALL("plan_known", "null", "null");
  command c;
  char results[320];
  snprintf(results, sizeof results, "%s", folder_file(&folder, "targets.jsonl"));
  write_whole(results, blocks, strlen(blocks));
  command_expect(&c, &folder, 0, "bench", "summary", results);
  assert_contains(c.out, "| g | 64 | forward | 102 | 10 | 20 | 10.0 | 40.0 | alg2 | 4.00x |");
  assert_contains(c.out, "| g | 256 | transposed | 102 | 10 | 20 | 10.0 | - | alg2 | - |");
  assert_contains(c.out,
                  "| forward | 2 | 1.90x | at least 1.8x, met | 0.90x (g, N = 256), 4.00x (g, N = 64) | at least 1.0x, "
                  "missed |");
  assert_contains(c.out, "| transposed | 1 | 1.20x | at least 1.4x, missed | 1.20x (g, N = 64) | at least 1.0x, met |");
  command_release(&c);
  write_whole(results, calls, strlen(calls));
  command_expect(&c, &folder, 0, "bench", "summary", results);
  assert_contains(c.out, "| context_create | 20001.00 | - | - | at most 20000 us, missed |");
  assert_contains(c.out, "| rebind | 0.50 | - | - | at most 0.5 us, met |");
  assert_contains(c.out, "| spmm_new_matrix | 6.00 | 3.00 | 2.00x | at most the baseline + 3 us, met |");
  assert_contains(c.out, "| execute | 2.40 | 2.00 | 1.20x | at most the baseline + 0.3 us, missed |");
  assert_contains(c.out, "| plan_known | - | - | - | at most 5 us, missed |");
  assert_contains(c.out, "5 cases, 2 targets met, 3 missed.");
  assert_contains(c.out, "geometric mean: 1.55x; worst: 2.00x (spmm_new_matrix, N = 64), 1.20x (execute, N = 64)");
  command_release(&c);
  write_whole(results, "{\"suite\":\"dispatch\"}\n", 21);
  command_expect(&c, &folder, 1, "bench", "summary", results);
  assert_contains(c.err, "targets.jsonl:1");
  command_release(&c);
  write_whole(results, "{\"suite\":\"minibatch\"}\n", 22);
  command_expect(&c, &folder, 1, "bench", "summary", results);
  assert_contains(c.err, "targets.jsonl:1");
  command_release(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(minibatch_times_both_directions),
      cmocka_unit_test(minibatch_needs_a_square_matrix),
      cmocka_unit_test(dispatch_times_each_call),
      cmocka_unit_test(summaries_compare_with_targets),
  };
  return cmocka_run_group_tests(tests, home_begin, folder_end);
}
