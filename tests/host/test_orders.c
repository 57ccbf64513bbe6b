/* Column-major B and C on the host device: every operation and type, arrays within one another, and what is refused. */
#include "support/bare_host.h"
#include "support/orders_check.h"
#include "support/test.h"
#include "warploom/warploom_attention.h"
#include "warploom/warploom_tune.h"

TEST_BETWEEN(every_request_in_every_order, bare_host_begin, bare_host_end) {
  static const int64_t widths[] = {DRAWN_N, 1, 7, 2};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) orders_check(bare_host, widths[i], 41 + i);
}

/* Elements of 2 and 8 bytes, and sizes beyond one tile. */
TEST_BETWEEN(other_types, bare_host_begin, bare_host_end) {
  enum { ROWS = 300, COLS = 270, N = 45 };
  static int32_t rowptr[ROWS + 1], colind[3 * ROWS];
  static double b64[COLS * N], c64[ROWS * N], got64[ROWS * N];
  static uint16_t b16[COLS * N], c16[ROWS * N], got16[ROWS * N];
  test_random random = {43};
  for (int i = 0; i < ROWS; i++) rowptr[i + 1] = rowptr[i] + i % 4;
  for (int p = 0; p < rowptr[ROWS]; p++) colind[p] = (int32_t)test_draw(&random, COLS);
  for (int i = 0; i < COLS * N; i++) b64[i] = (double)test_draw(&random, 9), b16[i] = (uint16_t)(0x3c00 + 64 * (i % 9));
  wlm_csr csr = CSR(.rows = ROWS, .cols = COLS, .nnz = rowptr[ROWS], .rowptr = rowptr, .colind = colind);
  for (int is_half = 0; is_half < 2; is_half++)
    for (int orders = 0; orders < 4; orders++) {
      const size_t size = is_half ? 2 : 8;
      void *const to = !orders ? (is_half ? (void *)c16 : c64) : is_half ? (void *)got16 : got64;
      wlm_problem problem = PROBLEM(.n = N, .dense_type = is_half ? WLM_F16 : WLM_F64,
                                    .b_order = orders & 1 ? WLM_COLUMN_MAJOR : WLM_ROW_MAJOR,
                                    .c_order = orders & 2 ? WLM_COLUMN_MAJOR : WLM_ROW_MAJOR);
      dense b = dense_of(is_half ? (void *)b16 : b64, COLS, N, size, problem.b_order, 1);
      dense c = dense_of(to, ROWS, N, size, problem.c_order, 2);
      wlm_execute_args args = EXECUTE_ARGS(.b = b.memory, .c = c.memory, .ldb = b.ld, .ldc = c.ld);
      assert_status(WLM_OK, wlm_spmm(bare_host, &csr, &problem, &args));
      dense_end(&b, is_half ? (void *)b16 : b64), dense_end(&c, to);
    }
  assert_memory_equal(c16, got16, sizeof c16);
  assert_memory_equal(c64, got64, sizeof c64);
}

/* Lines of C may lie between those of B, and columns of C between those of B. */
TEST_BETWEEN(arrays_within_one_larger_array, bare_host_begin, bare_host_end) {
  enum { ROWS = 5, N = 3, LD = 16 };
  static const int32_t rowptr[] = {0, 1, 2, 3, 4, 5}, colind[] = {4, 3, 2, 1, 0};
  float both[N * LD];
  wlm_csr csr = CSR(.rows = ROWS, .cols = ROWS, .nnz = ROWS, .rowptr = rowptr, .colind = colind);
  wlm_problem problem = PROBLEM(.n = N, .b_order = WLM_COLUMN_MAJOR, .c_order = WLM_COLUMN_MAJOR);
  for (int i = 0; i < N * LD; i++) both[i] = (float)i;
  wlm_execute_args args = EXECUTE_ARGS(.b = both, .c = both + 8, .ldb = LD, .ldc = LD);
  assert_status(WLM_OK, wlm_spmm(bare_host, &csr, &problem, &args));
  for (int j = 0; j < N; j++)
    for (int i = 0; i < ROWS; i++) assert_true(both[8 + j * LD + i] == (float)(j * LD + 4 - i));
  args.c = both + 4;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_spmm(bare_host, &csr, &problem, &args), "c and b share memory");
}

static void refused(const wlm_csr *csr, const wlm_problem *problem, const wlm_execute_args *args, wlm_status expected,
                    const char *says) {
  assert_status(expected, wlm_spmm(bare_host, csr, problem, args));
  assert_contains(wlm_error_detail(), says);
}

TEST_BETWEEN(refuses, bare_host_begin, bare_host_end) {
  static drawn a;
  static results to;
  test_random random = {47};
  wlm_execute_args args = request_call(&requests[0], &a, &to), wrong;
  draw_matrix(&a, &random, 1);
  a.csr.rows = 40, a.csr.cols = 50, a.csr.nnz = 0;
  memset(a.rowptr, 0, sizeof a.rowptr);
  wlm_problem problem = PROBLEM(.n = 8, .b_order = (wlm_order)2);
  refused(&a.csr, &problem, &args, WLM_ERR_INVALID_ARGUMENT, "wlm_problem.b_order is 2, which is not in its enum");
  problem.b_order = WLM_COLUMN_MAJOR, problem.c_order = (wlm_order)-1;
  refused(&a.csr, &problem, &args, WLM_ERR_INVALID_ARGUMENT, "wlm_problem.c_order is -1");
  problem.c_order = WLM_COLUMN_MAJOR;
  wrong = args, wrong.ldb = 49;
  refused(&a.csr, &problem, &wrong, WLM_ERR_INVALID_ARGUMENT, "ldb is 49, must be 50 or more for b");
  wrong = args, wrong.ldc = 39;
  refused(&a.csr, &problem, &wrong, WLM_ERR_INVALID_ARGUMENT, "ldc is 39, must be 40 or more for c");
  wrong = args, wrong.ldb = INT64_MAX / 8;
  refused(&a.csr, &problem, &wrong, WLM_ERR_OVERFLOW, "ldb is");
  wrong.ldb = -3;
  refused(&a.csr, &problem, &wrong, WLM_ERR_INVALID_ARGUMENT, "ldb is -3");
  problem.operation = WLM_ATTENTION;
  refused(&a.csr, &problem, &args, WLM_ERR_UNSUPPORTED, "column-major arrays of attention and of messages");
}

/* The copies lie in the workspace, whose size says so, and a call with less is refused. */
TEST_BETWEEN(the_workspace_has_the_copies, bare_host_begin, bare_host_end) {
  static drawn a;
  static results to;
  static _Alignas(64) char workspace[1 << 16];
  test_random random = {49};
  wlm_problem problem = request_problem(&requests[0]);
  wlm_plan *online;
  draw_matrix(&a, &random, 1);
  wlm_execute_args args = request_call(&requests[0], &a, &to);
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &a.csr, NULL, &matrix));
  OWN(wlm_plan, rows, wlm_plan_create(bare_host, matrix, &problem, &rows));
  problem.b_order = problem.c_order = WLM_COLUMN_MAJOR;
  OWN(wlm_plan, columns, wlm_plan_create(bare_host, matrix, &problem, &columns));
  assert_string_equal(wlm_plan_variant(rows), wlm_plan_variant(columns));
  const size_t copies = (size_t)(a.csr.rows + a.csr.cols) * DRAWN_N * 4;
  assert_in_range(wlm_plan_workspace_size(columns), wlm_plan_workspace_size(rows) + copies,
                  wlm_plan_workspace_size(rows) + copies + 64);
  args.workspace = workspace;
  args.workspace_size = wlm_plan_workspace_size(columns) - 1;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_plan_execute(columns, &args), "workspace_size");
  assert_fails(WLM_ERR_UNSUPPORTED, wlm_plan_create_online(bare_host, matrix, &problem, NULL, &online), "row-major");
}
