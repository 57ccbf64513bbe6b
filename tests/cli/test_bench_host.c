/* The baselines of the host device in warploom bench: they compute the same product as the verified winner, whatever
 * the matrix, and a missing one is reported with its reason. */
#include "support/command.h"
#include "support/test.h"

/* Rows 3 and 6 are empty, as is column 2; row 5 is full. */
static const char matrix_text[] =
    "%%MatrixMarket matrix coordinate real general\n6 5 9\n1 1 2.5\n1 5 -1\n2 3 0.25\n4 4 1e-3\n5 1 1\n5 2 -2\n5 3 3\n"
    "5 4 -4\n5 5 5\n";

#define BENCH(code, ...) RUN(code, "bench", "core", "--device", "host", "--samples", "3", __VA_ARGS__)

static void text_at(const char *line, const char *path, char *out, size_t capacity) {
  FREED char *value = json_at(line, path);
  snprintf(out, capacity, "%s", value ? value : "");
}

/* 1 if GraphBLAS is installed; otherwise the line must give the reason. */
static int has_graphblas(const char *line) {
  char reason[512];
  text_at(line, "$.host_rival_errors.graphblas", reason, sizeof reason);
  if (!reason[0]) return 1;
  assert_contains(reason, "no libgraphblas.so", "WARPLOOM_GRAPHBLAS");
  return 0;
}

TEST(baselines_give_the_right_product) {
  int installed = 1;
  const char *matrix = in_folder("small.mtx"), *results = in_folder("right.jsonl");
  write_whole(matrix, matrix_text, strlen(matrix_text));
  BENCH(0, "-n", "1,3,33,64", "--out", results, matrix, "uniform:rows=700,d=5", "twin:arxiv,scale=0.01");
  FREED char *text = text_of(results);
  const int64_t lines = count_lines(text, "\"suite\":\"core\"");
  assert_int_equal(lines, 12);
  for (int64_t i = 0; i < lines; i++) {
    FREED char *line = line_of(text, i);
    assert_true(json_is_valid(line));
    if (!(json_number_at(line, "$.host_rivals.openmp") > 0)) fail_msg("no time of the OpenMP loop in %s", line);
    installed = has_graphblas(line);
    if (installed && !(json_number_at(line, "$.host_rivals.graphblas") > 0))
      fail_msg("no time of GraphBLAS in %s", line);
  }
  if (!installed) print_message("SuiteSparse:GraphBLAS is not installed: only the OpenMP loop was checked\n");
}

TEST(missing_library_is_a_reason) {
  char results[320], *value, reason[512];
  snprintf(results, sizeof results, "%s", folder_file(&folder, "missing.jsonl"));
  setenv("WARPLOOM_GRAPHBLAS", "/nowhere/libgraphblas.so", 1);
  BENCH(0, "-n", "4", "--out", results, "uniform:rows=30,d=2");
  setenv("WARPLOOM_GRAPHBLAS", "libz.so.1", 1); /* a library that is not GraphBLAS */
  BENCH(0, "-n", "5", "--out", results, "uniform:rows=30,d=2");
  unsetenv("WARPLOOM_GRAPHBLAS");
  FREED char *text = text_of(results), *first = line_of(text, 0), *second = line_of(text, 1);
  value = json_at(first, "$.host_rivals.graphblas");
  assert_null(value);
  assert_contains(first, "\"graphblas\":null");
  text_at(first, "$.host_rival_errors.graphblas", reason, sizeof reason);
  assert_contains(reason, "WARPLOOM_GRAPHBLAS", "/nowhere/libgraphblas.so");
  text_at(second, "$.host_rival_errors.graphblas", reason, sizeof reason);
  assert_contains(reason, "lacks GrB_");
  assert_true(json_number_at(first, "$.host_rivals.openmp") > 0 && json_number_at(second, "$.host_rivals.openmp") > 0);
}

TEST(suites_half_and_bf16_are_in_16_bits) {
  const struct {
    const char *name, *type;
    double least, most; /* of the error: the rounding of the type, not that of f32 */
  } suites[] = {{"half", "f16", 1e-5, 1e-3}, {"bf16", "bf16", 1e-3, 8e-3}};
  for (int i = 0; i < 2; i++) {
    char results[320], reason[512];
    snprintf(results, sizeof results, "%s/%s.jsonl", folder.path, suites[i].name);
    RUN(0, "bench", suites[i].name, "--device", "host", "--samples", "3", "-n", "5", "--out", results,
        "uniform:rows=30,d=2");
    FREED char *text = text_of(results), *line = line_of(text, 0);
    assert_json(line, {"$.suite", suites[i].name}, {"$.type", suites[i].type});
    assert_true(json_number_at(line, "$.us") > 0);
    const double error = json_number_at(line, "$.max_rel_err");
    assert_true(error > suites[i].least && error < suites[i].most);
    text_at(line, "$.host_rival_errors.openmp", reason, sizeof reason);
    assert_contains(reason, "f32 only");
  }
}

/* Every element is compared with float64, through copies with rows of 9 elements that begin at multiples of 16 bytes.
 */
TEST(suite_column_major_is_checked) {
  char *value;
  const char *results = in_folder("column_major.jsonl");
  RUN(0, "bench", "column_major", "--device", "host", "--samples", "3", "-n", "1,9", "--out", results,
      "uniform:rows=300,d=5");
  FREED char *text = text_of(results);
  for (int i = 0; i < 2; i++) {
    FREED char *line = line_of(text, i);
    assert_json_at(line, "$.suite", "column_major");
    assert_true(json_number_at(line, "$.us") > 0 && json_number_at(line, "$.max_rel_err") < 1e-5);
    assert_int_equal((int)json_number_at(line, "$.checked_rows"), 300);
    value = json_at(line, "$.host_rivals"); /* which are row-major */
    assert_null(value);
  }
}

/* 64 products with values of their own, all of which are compared with float64. */
TEST(suite_batch_is_checked) {
  char *value;
  const char *results = in_folder("batch.jsonl");
  RUN(0, "bench", "batch", "--device", "host", "--samples", "3", "-n", "9", "--out", results, "uniform:rows=300,d=5");
  FREED char *text = text_of(results), *line = line_of(text, 0);
  assert_json(line, {"$.suite", "batch"}, {"$.batch", "64"});
  assert_true(json_number_at(line, "$.us") > 0 && json_number_at(line, "$.loop_us") > 0);
  assert_true(json_number_at(line, "$.max_rel_err") < 1e-5);
  value = json_at(line, "$.cusparse_us"); /* the host has none */
  assert_null(value);
}

GROUP(home_begin, folder_end)
