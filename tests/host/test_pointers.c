/* What is said of addresses that no kernel may get, before one gets them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/asserts.h"
#include "support/bare_host.h"

/* 2 x 3. */
static const int32_t rowptr[] = {0, 2, 4}, colind[] = {0, 2, 1, 0};
static const float values[] = {1, 2, -1, 0.5f};
enum { ROWS = 2, COLS = 3, NNZ = 4, N = 33 };

static float b[COLS * N + 1], c[ROWS * N + 1], dvalues[NNZ + 1], db[COLS * N + 1];
static int32_t arg[ROWS * N + 1];

static wlm_csr small(void) {
  wlm_csr csr = WLM_CSR_INIT;
  csr.rows = ROWS;
  csr.cols = COLS;
  csr.nnz = NNZ;
  csr.rowptr = rowptr;
  csr.colind = colind;
  csr.values = values;
  return csr;
}

static void assert_refused(wlm_status status, const char *says) {
  assert_int_equal(WLM_ERR_INVALID_ARGUMENT, status);
  assert_contains(wlm_error_detail(), says);
}

/* A byte or half an element further on. */
static void *off(const void *address, size_t bytes) { return (char *)(uintptr_t)address + bytes; }

static wlm_plan *plan_of(wlm_matrix *matrix, const wlm_problem *problem) {
  wlm_plan *plan;
  assert_status(WLM_OK, wlm_plan_create(bare_host, matrix, problem, &plan));
  return plan;
}

static void of_a_matrix(void **state) {
  (void)state;
  wlm_matrix *matrix;
  wlm_csr csr = small();
  csr.rowptr = off(rowptr, 1);
  assert_refused(wlm_matrix_create(bare_host, &csr, NULL, &matrix), "rowptr is 0x");
  csr = small();
  csr.rowptr_type = WLM_I64; /* half an offset */
  csr.rowptr = off(rowptr, (uintptr_t)rowptr % 8 ? 0 : 4);
  assert_refused(wlm_matrix_create(bare_host, &csr, NULL, &matrix), "multiple of 8 bytes");
  csr = small();
  csr.colind = off(colind, 2);
  assert_refused(wlm_matrix_create(bare_host, &csr, NULL, &matrix), "colind is 0x");
  csr = small();
  csr.values = off(values, 2);
  assert_refused(wlm_matrix_create(bare_host, &csr, NULL, &matrix), "values is 0x");
  csr.value_type = WLM_F16;
  assert_status(WLM_OK, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  wlm_matrix_destroy(matrix);
}

static void of_products(void **state) {
  (void)state;
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_matrix *matrix;
  wlm_plan *plan;
  const wlm_csr csr = small();
  assert_status(WLM_OK, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  problem.n = N;
  problem.bias = off(b, 2);
  assert_refused(wlm_plan_create(bare_host, matrix, &problem, &plan), "wlm_problem: bias is 0x");
  problem.bias = NULL;

  plan = plan_of(matrix, &problem);
  assert_refused(wlm_plan_execute(plan, off(b, 2), c, NULL, NULL), "wlm_plan_execute: b is 0x");
  assert_refused(wlm_plan_execute(plan, b, off(c, 1), NULL, NULL), "c is 0x");
  assert_status(WLM_OK, wlm_plan_execute(plan, b + 1, c + 1, NULL, NULL));
  wlm_plan_destroy(plan);

  assert_status(WLM_OK, wlm_plan_create_variant(bare_host, matrix, &problem, "host_nnz/nonzeros=1024,tile=32", &plan));
  const size_t size = wlm_plan_workspace_size(plan);
  assert_true(size > 0);
  char *workspace = aligned_alloc(16, (size + 31) / 16 * 16);
  assert_refused(wlm_plan_execute(plan, b, c, off(workspace, 8), NULL), "workspace is 0x");
  assert_status(WLM_OK, wlm_plan_execute(plan, b, c, workspace, NULL));
  free(workspace);
  wlm_plan_destroy(plan);

  problem.reduce = WLM_MAX;
  problem.want_arg = 1;
  plan = plan_of(matrix, &problem);
  assert_refused(wlm_plan_execute_arg(plan, b, c, off(arg, 2), NULL, NULL), "wlm_plan_execute_arg: arg is 0x");
  assert_status(WLM_OK, wlm_plan_execute_arg(plan, b, c, arg, NULL, NULL));
  assert_refused(wlm_plan_execute_arg_backward(plan, c, off(arg, 2), b, db, dvalues, NULL), "backward: arg is 0x");
  assert_refused(wlm_plan_execute_arg_backward(plan, off(c, 2), arg, b, db, dvalues, NULL), "dc is 0x");
  assert_refused(wlm_plan_execute_arg_backward(plan, c, arg, b, off(db, 2), dvalues, NULL), "db is 0x");
  assert_refused(wlm_plan_execute_arg_backward(plan, c, arg, b, db, off(dvalues, 2), NULL), "dvalues is 0x");
  assert_status(WLM_OK, wlm_plan_execute_arg_backward(plan, c, arg, b, db, dvalues, NULL));
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
}

static void of_an_sddmm(void **state) {
  (void)state;
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_matrix *matrix;
  const wlm_csr csr = small();
  assert_status(WLM_OK, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  problem.n = N;
  problem.operation = WLM_SDDMM;
  wlm_plan *plan = plan_of(matrix, &problem);
  assert_refused(wlm_plan_execute_sddmm(plan, off(c, 2), b, dvalues, NULL, NULL), "sddmm: dc is 0x");
  assert_refused(wlm_plan_execute_sddmm(plan, c, off(b, 2), dvalues, NULL, NULL), "b is 0x");
  assert_refused(wlm_plan_execute_sddmm(plan, c, b, off(dvalues, 2), NULL, NULL), "dvalues is 0x");
  assert_status(WLM_OK, wlm_plan_execute_sddmm(plan, c, b, dvalues, NULL, NULL));
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
}

/* B is asked for exactly where it is read. */
static void of_messages_without_b(void **state) {
  (void)state;
  static const int product[] = {1, 1, 0, 1, 1, 1, 1, 1}, gradient[] = {1, 0, 0, 0, 0, 0, 1, 1};
  wlm_matrix *matrix;
  const wlm_csr csr = small();
  assert_status(WLM_OK, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  for (int message = WLM_MUL; message <= WLM_RDIV; message++) {
    const wlm_status of_product = product[message] ? WLM_ERR_INVALID_ARGUMENT : WLM_OK;
    const wlm_status of_gradient = gradient[message] ? WLM_ERR_INVALID_ARGUMENT : WLM_OK;
    wlm_problem problem = WLM_PROBLEM_INIT;
    problem.n = N;
    problem.message = (wlm_message)message;
    wlm_plan *plan = plan_of(matrix, &problem);
    assert_int_equal(of_product, wlm_plan_execute(plan, NULL, c, NULL, NULL));
    if (!product[message]) assert_true(c[0] == 3 && c[N] == -0.5f);
    wlm_plan_destroy(plan);
    problem.operation = WLM_SDDMM;
    plan = plan_of(matrix, &problem);
    assert_int_equal(of_gradient, wlm_plan_execute_sddmm(plan, c, NULL, dvalues, NULL, NULL));
    wlm_plan_destroy(plan);
    problem.operation = WLM_SPMM;
    problem.reduce = WLM_MIN;
    problem.want_arg = 1;
    plan = plan_of(matrix, &problem);
    assert_int_equal(of_product, wlm_plan_execute_arg(plan, NULL, c, arg, NULL, NULL));
    assert_int_equal(of_gradient, wlm_plan_execute_arg_backward(plan, c, arg, NULL, db, dvalues, NULL));
    wlm_plan_destroy(plan);
  }
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = N;
  problem.reduce = WLM_CUSTOM;
  problem.custom = "message=a*a;init=0;reduce=acc+x";
  wlm_plan *plan = plan_of(matrix, &problem);
  assert_status(WLM_OK, wlm_plan_execute(plan, NULL, c, NULL, NULL));
  assert_true(c[0] == 5 && c[N] == 1.25f);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_a_matrix),
      cmocka_unit_test(of_products),
      cmocka_unit_test(of_an_sddmm),
      cmocka_unit_test(of_messages_without_b),
  };
  return cmocka_run_group_tests(tests, bare_host_begin, bare_host_end);
}
