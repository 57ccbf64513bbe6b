/* Argmax indices of max and min through the public API on the host. The covering tests check them for every kernel of
 * both devices. */
#include "support/bare_host.h"
#include "support/calls.h"
#include "support/folder.h"
#include "support/test.h"
#include "warploom/warploom_tune.h"

/* 4 x 5; row 1 is empty; columns are not sorted, and column 1 stands twice in row 2. */
static const int32_t rowptr[] = {0, 3, 3, 7, 8}, colind[] = {4, 0, 2, 3, 1, 1, 0, 2};
static const float values[] = {1, 2, 1, -1, 1, 1, 2, 3};
enum { ROWS = 4, COLS = 5, NNZ = 8, N = 3 };
/* cols x N, with many ties */
static const float b[COLS * N] = {1, 2, -1, 4, 0, 0, 2, 4, -2, 1, -1, 1, 2, 4, -2};

FIXTURE(begin) {
  wlm_csr csr = CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr, .colind = colind, .values = values);
  return bare_host_begin_with(&csr);
}

static wlm_problem best_of(wlm_reduce reduce, wlm_index type) {
  return (wlm_problem)PROBLEM(.n = N, .reduce = reduce, .want_argmax = 1, .argmax_type = type);
}

static const wlm_execute_args plain = WLM_EXECUTE_ARGS_INIT;

static void run(const wlm_problem *problem, const wlm_execute_args *call, const void *dense, void *c, void *arg) {
  OWN(wlm_plan, plan, wlm_plan_create(bare_host, bare_matrix, problem, &plan));
  FREED void *workspace = malloc(wlm_plan_workspace_size(plan) + 1);
  assert_status(WLM_OK, test_execute_argmax_call(plan, call, dense, c, arg, workspace));
}

TEST(lowest_position_of_the_best) {
  /* row 0: 2, 4, -2 from each of three edges; row 2: 4, 0, 0 from two edges, -1, 1, -1 and 2, 4, -2 from the others */
  static const int64_t expected[] = {0, 0, 0, -1, -1, -1, 4, 6, 4, 7, 7, 7};
  wlm_problem problem = best_of(WLM_MAX, WLM_I64);
  float c[ROWS * N];
  int64_t wide[ROWS * N];
  int32_t narrow[ROWS * (N + 2)];
  run(&problem, &plain, b, c, wide);
  assert_true(c[0] == 2 && c[3] == 0 && c[4] == 0 && c[6] == 4 && c[7] == 4 && c[8] == 0);
  for (int i = 0; i < ROWS * N; i++) assert_int_equal(wide[i], expected[i]);
  problem = best_of(WLM_MAX, WLM_I32);
  wlm_execute_args call = EXECUTE_ARGS(.ldc = N + 2, .alpha = -1);
  problem.epilogue.activation = "relu"; /* an activation changes C only */
  memset(narrow, 0x55, sizeof narrow);
  float padded[ROWS * (N + 2)];
  run(&problem, &call, b, padded, narrow);
  for (int i = 0; i < ROWS * (N + 2); i++)
    assert_int_equal(narrow[i], i % (N + 2) < N ? (int)wide[i / (N + 2) * N + i % (N + 2)] : 0x55555555);
}

TEST(first_nan_wins) {
  float dense[COLS * N], c[ROWS * N];
  int32_t arg[ROWS * N];
  wlm_problem problem = best_of(WLM_MIN, WLM_I32);
  for (int i = 0; i < COLS * N; i++) dense[i] = i % N == 2 ? INFINITY : i % N == 1 ? -INFINITY : 1;
  dense[1 * N] = NAN; /* row 2 reads column 1 at positions 4 and 5 */
  run(&problem, &plain, dense, c, arg);
  assert_true(isnan(c[2 * N]));
  assert_int_equal(arg[2 * N], 4);
  assert_int_equal(arg[2 * N + 1], 4); /* -1 * -inf is inf; all others are -inf */
  assert_int_equal(arg[2 * N + 2], 3);
  assert_int_equal(arg[2], 0); /* all of them are inf, the value with which min begins */
  assert_int_equal(arg[N], -1);
}

/* -0 and 0 are equal, so the first edge wins. */
TEST(zero_equals_minus_zero) {
  for (int reduce = WLM_MAX; reduce <= WLM_MIN; reduce++) {
    float dense[COLS * N], c[ROWS * N];
    int32_t arg[ROWS * N];
    const wlm_problem problem = best_of((wlm_reduce)reduce, WLM_I32);
    /* messages are 0 times -1, 1, 1 and 2 in row 2 */
    for (int i = 0; i < COLS * N; i++) dense[i] = reduce == WLM_MAX ? 0.0f : -0.0f;
    run(&problem, &plain, dense, c, arg);
    for (int i = 0; i < N; i++) assert_true(c[2 * N + i] == 0 && arg[2 * N + i] == 3);
  }
}

/* The indices of a transposed product are positions in A. */
TEST(positions_of_a_transpose) {
  wlm_problem problem = best_of(WLM_MAX, WLM_I32);
  const float dense[ROWS * N] = {1, 1, 5, 9, 9, 9, 1, -1, 2, 0, 0, 0};
  float c[COLS * N];
  int32_t arg[COLS * N];
  /* Column 0 has positions 1 (row 0, 2) and 6 (row 2, 2), column 1 has 4 and 5 (row 2, 1), column 2 has 2 (row 0, 1)
   * and 7 (row 3, 3), column 3 has 3 and column 4 has 0. */
  static const int32_t expected[] = {1, 1, 1, 4, 4, 4, 2, 2, 2, 3, 3, 3, 0, 0, 0};
  problem.transpose = 1;
  run(&problem, &plain, dense, c, arg);
  for (int i = 0; i < COLS * N; i++) assert_int_equal(arg[i], expected[i]);
}

/* Positions of 16 bits are the lower ones of those of 32 bits, and give the same gradients: of the longest rows that
 * they can serve, with an empty row among them. A longer row is refused. */
TEST(lower_bits) {
  enum { LONG = 65536, MANY = 2 * LONG + 5 };
  static float line[LONG], x[4] = {1, 2, 4, 8}, db[2][LONG];
  static int32_t column[MANY];
  int32_t begins[] = {0, 5, 5, LONG + 5, 2 * LONG + 5}, wide[4];
  uint16_t narrow[4];
  float c[4];
  wlm_plan *plan;
  for (int p = 0; p < MANY; p++) column[p] = p < 5 ? p : (p - 5) % LONG;
  for (int k = 0; k < LONG; k++) line[k] = (float)(k * 25173 % LONG);
  wlm_csr csr = CSR(.rows = 4, .cols = LONG, .nnz = MANY, .rowptr = begins, .colind = column);
  OWN(wlm_matrix, of_long_rows, wlm_matrix_create(bare_host, &csr, NULL, &of_long_rows));
  for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
    wlm_problem problem = best_of(WLM_MAX, is_narrow ? WLM_I16 : WLM_I32);
    problem.n = 1;
    assert_status(WLM_OK, wlm_plan_create(bare_host, of_long_rows, &problem, &plan));
    void *workspace = malloc(wlm_plan_workspace_size(plan) + 1), *positions = is_narrow ? (void *)narrow : wide;
    assert_status(WLM_OK, test_execute_argmax(plan, line, c, positions, workspace));
    assert_status(WLM_OK,
                  test_argmax_gradient(bare_host, of_long_rows, &problem, x, positions, line, db[is_narrow], NULL));
    free(workspace);
    wlm_plan_destroy(plan);
  }
  for (int row = 0; row < 4; row++)
    if (row != 1) assert_int_equal(narrow[row], wide[row] & 0xffff);
  assert_int_equal(wide[1], -1);
  assert_int_equal(wide[3] - wide[2], LONG);
  assert_memory_equal(db[0], db[1], sizeof db[0]);
  assert_true(db[1][column[wide[2]]] == 12);
  wlm_matrix_destroy(of_long_rows);

  begins[2] = 4;
  begins[1] = 4;
  assert_status(WLM_OK, wlm_matrix_create(bare_host, &csr, NULL, &of_long_rows));
  const wlm_problem problem = best_of(WLM_MAX, WLM_I16);
  assert_fails(WLM_ERR_OVERFLOW, wlm_plan_create(bare_host, of_long_rows, &problem, &plan),
               "a row has 65537 non-zeros");
}

TEST(invalid_calls_are_refused) {
  wlm_problem problem = best_of(WLM_MAX, WLM_I64);
  float c[ROWS * N];
  int64_t arg[ROWS * N];
  GET(wlm_plan *, plan, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 1, &text));
  assert_contains(text, ",arg=i64");
  assert_fails(WLM_ERR_INVALID_ARGUMENT, test_execute(plan, b, c, NULL), "wlm_plan_execute: argmax is NULL");
  wlm_plan_destroy(plan);
  problem.want_argmax = 0;
  assert_status(WLM_OK, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
  memset(arg, 0x55, sizeof arg);
  /* execute ignores argmax, since the plan has no argmax indices */
  assert_status(WLM_OK, test_execute_argmax(plan, b, c, arg, NULL));
  for (int i = 0; i < ROWS * N; i++) assert_true(arg[i] == 0x5555555555555555);
  wlm_plan_destroy(plan);
  problem = best_of(WLM_SUM, WLM_I32);
  assert_status(WLM_ERR_UNSUPPORTED, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
  problem.reduce = WLM_CUSTOM;
  problem.custom = "init=0;reduce=acc+x";
  assert_status(WLM_ERR_UNSUPPORTED, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
  problem = best_of(WLM_MAX, (wlm_index)3);
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
}

/* Measurements with argmax indices stay separate from those without, through export and import. */
TEST_BETWEEN(tuned_and_exported, folder_begin, folder_end) {
  char path[2][400];
  char *lines[2];
  wlm_csr csr = CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr, .colind = colind, .values = values);
  for (int i = 0; i < 2; i++) {
    wlm_problem problem = best_of(WLM_MAX, WLM_I32);
    snprintf(path[i], sizeof path[i], "%s/tuned-%d.db", folder.path, i);
    wlm_context_options options = BARE_OPTIONS(.device = "host", .database = path[i]);
    OWN(wlm_context, one, wlm_context_create(&options, &one));
    OWN(wlm_matrix, bound, wlm_matrix_create(one, &csr, NULL, &bound));
    if (i)
      assert_status(WLM_OK, wlm_import_string(one, lines[0], NULL));
    else
      assert_status(WLM_OK, wlm_tune(one, bound, &problem, NULL, NULL));
    assert_status(WLM_OK, wlm_export_string(one, &lines[i]));
    assert_contains(lines[i], ",arg=i32");
    OWN(wlm_plan, plan, wlm_plan_create(one, bound, &problem, &plan));
    WLM_FREED GET(char *, text, wlm_plan_explain(plan, 0, &text));
    assert_contains(text, "fingerprint");
  }
  assert_string_equal(lines[0], lines[1]);
  wlm_string_free(lines[0]);
  wlm_string_free(lines[1]);
}

GROUP(begin, bare_host_end)
