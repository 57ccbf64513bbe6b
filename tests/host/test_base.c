/* Matrices whose offsets and columns count from 1: bits, positions, stats and A^T are those of the same matrix that
 * counts from 0, and messages have the caller's numbers. */
#include "runtime/context.h"
#include "support/bare_host.h"
#include "support/calls.h"
#include "support/requests.h"
#include "support/test.h"

/* The arrays of a matrix that count from 1, and those of its transpose. */
typedef struct from_one {
  int32_t rowptr[DRAWN_ROWS + 1], colind[DRAWN_NNZ];
  int32_t t_rowptr[DRAWN_COLS + 1], t_colind[DRAWN_NNZ], t_order[DRAWN_NNZ], rows[DRAWN_NNZ];
  wlm_csr csr;
} from_one;

static void count_from_one(const drawn *a, from_one *to) {
  to->csr = a->csr;
  to->csr.base = 1;
  to->csr.rowptr = to->rowptr;
  to->csr.colind = to->colind;
  for (int64_t i = 0; i <= a->csr.rows; i++) to->rowptr[i] = a->rowptr[i] + 1;
  for (int64_t p = 0; p < a->csr.nnz; p++) to->colind[p] = a->colind[p] + 1;
}

/* Adds A^T by wlm_csr_from_coo, as the header says. */
static void add_transpose(from_one *a) {
  for (int32_t i = 0; i < a->csr.rows; i++)
    for (int32_t p = a->rowptr[i] - 1; p < a->rowptr[i + 1] - 1; p++) a->rows[p] = i + 1;
  wlm_coo coo = COO(.rows = a->csr.cols, .cols = a->csr.rows, .nnz = a->csr.nnz, .row = a->colind, .col = a->rows,
                    .rowptr = a->t_rowptr, .colind = a->t_colind, .perm = a->t_order, .base = 1);
  assert_status(WLM_OK, wlm_csr_from_coo(bare_host, &coo));
  a->csr.t_rowptr = a->t_rowptr, a->csr.t_colind = a->t_colind, a->csr.t_order = a->t_order;
}

TEST_BETWEEN(every_request_has_the_bits_of_base_0, bare_host_begin, bare_host_end) {
  static drawn a;
  static from_one b;
  static results zero, one, planned;
  test_random random = {31};
  for (int i = 0; i < 3 * REQUESTS; i++) {
    const request *r = &requests[i % REQUESTS];
    request forward = *r;
    forward.gradient = 0;
    draw_matrix(&a, &random, !r->pattern);
    count_from_one(&a, &b);
    if (i / REQUESTS == 2) add_transpose(&b);
    results_begin(&zero), results_begin(&one), results_begin(&planned);
    for (int step = r->gradient ? 0 : 1; step < 2; step++) {
      const request *now = step ? r : &forward;
      const wlm_problem problem = request_problem(now);
      const wlm_execute_args args = request_call(now, &a, &zero), to_one = request_call(now, &a, &one);
      assert_status(WLM_OK, wlm_spmm(bare_host, &a.csr, &problem, &args));
      assert_status(WLM_OK, wlm_spmm(bare_host, &b.csr, &problem, &to_one));
      assert_status(WLM_OK, drawn_plan_once(bare_host, &b.csr, &problem, request_call(now, &a, &planned)));
    }
    if (memcmp(&zero, &one, sizeof one) || memcmp(&zero, &planned, sizeof one)) fail_msg("%s differs", r->name);
  }
}

TEST_BETWEEN(stats_and_fingerprint_are_those_of_base_0, bare_host_begin, bare_host_end) {
  static drawn a;
  static from_one b;
  test_random random = {33};
  draw_matrix(&a, &random, 1);
  count_from_one(&a, &b);
  OWN(wlm_matrix, zero, wlm_matrix_create(bare_host, &a.csr, NULL, &zero));
  OWN(wlm_matrix, one, wlm_matrix_create(bare_host, &b.csr, NULL, &one));
  assert_status(WLM_OK, wlmi_matrix_fingerprint(zero));
  assert_status(WLM_OK, wlmi_matrix_fingerprint(one));
  assert_memory_equal(wlm_matrix_stats(zero), wlm_matrix_stats(one), sizeof(wlm_stats));
  int64_t row = 7;
  assert_status(WLM_OK, wlm_matrix_validate(one, NULL, &row));
  assert_int_equal(row, -1);
}

/* A plan of one base takes no arrays of the other. */
TEST_BETWEEN(a_plan_is_for_one_base, bare_host_begin, bare_host_end) {
  static drawn a;
  static from_one b;
  test_random random = {35};
  wlm_problem problem = PROBLEM(.n = DRAWN_N);
  draw_matrix(&a, &random, 1);
  count_from_one(&a, &b);
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &b.csr, NULL, &matrix));
  OWN(wlm_plan, plan, wlm_plan_create(bare_host, matrix, &problem, &plan));
  assert_status(WLM_OK, wlm_plan_rebind(plan, &b.csr));
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_plan_rebind(plan, &a.csr), "the plan is for arrays of base 1, not 0");
}

static void refused(const wlm_csr *csr, wlm_status expected, const char *says) {
  wlm_matrix *matrix;
  assert_status(expected, wlm_matrix_create(bare_host, csr, NULL, &matrix));
  assert_contains(wlm_error_detail(), says);
}

TEST_BETWEEN(messages_have_the_callers_numbers, bare_host_begin, bare_host_end) {
  static const int32_t zero_rowptr[] = {0, 1, 3}, one_rowptr[] = {1, 2, 4}, short_rowptr[] = {1, 2, 3},
                       falling[] = {1, 0, 4}, colind[] = {1, 2, 5};
  wlm_csr csr = CSR(.rows = 2, .cols = 4, .nnz = 3, .rowptr = one_rowptr, .colind = colind);
  int64_t row;
  refused(&csr, WLM_ERR_INVALID_ARGUMENT,
          "rowptr starts at 1, must start at 0; if your arrays count from 1, set wlm_csr.base to 1");
  csr.base = 2;
  refused(&csr, WLM_ERR_INVALID_ARGUMENT, "wlm_csr.base is 2, must be 0 or 1");
  csr.base = -1;
  refused(&csr, WLM_ERR_INVALID_ARGUMENT, "wlm_csr.base is -1");
  csr.base = 1;
  csr.rowptr = zero_rowptr;
  refused(&csr, WLM_ERR_INVALID_ARGUMENT,
          "rowptr starts at 0, must start at 1; if your arrays count from 0, set wlm_csr.base to 0");
  csr.rowptr = short_rowptr;
  refused(&csr, WLM_ERR_INVALID_ARGUMENT, "rowptr ends at 3 after row 1, must end at nnz + 1 = 4");
  csr.rowptr = falling;
  refused(&csr, WLM_ERR_INVALID_ARGUMENT, "rowptr falls from 1 to 0 at row 0");
  csr.rowptr = one_rowptr;
  GET(wlm_matrix *, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_matrix_validate(matrix, NULL, &row),
               "row 1: colind[2] is 5, must be 1 to 4 (1-based)");
  assert_int_equal(row, 1);
  wlm_matrix_destroy(matrix);
  csr.nnz = INT32_MAX;
  refused(&csr, WLM_ERR_OVERFLOW, "2147483647 non-zeros do not fit a rowptr of i32");
  wlm_coo coo = COO(.base = 3);
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_csr_from_coo(bare_host, &coo), "wlm_coo.base is 3, must be 0 or 1");
}

/* Built-in kernels count from 0 and must not be taken. */
TEST(without_a_compiler_it_is_refused) {
  static drawn a;
  static from_one b;
  static results to;
  test_random random = {37};
  const wlm_problem problem = request_problem(&requests[0]);
  const wlm_execute_args args = request_call(&requests[0], &a, &to);
  draw_matrix(&a, &random, 1);
  count_from_one(&a, &b);
  setenv("WARPLOOM_CC", "/nonexistent/cc", 1);
  assert_int_equal(bare_host_begin(NULL), 0);
  assert_status(WLM_OK, wlm_spmm(bare_host, &a.csr, &problem, &args));
  assert_status(WLM_ERR_NO_COMPILER, wlm_spmm(bare_host, &b.csr, &problem, &args));
  bare_host_end(NULL);
  unsetenv("WARPLOOM_CC");
}
