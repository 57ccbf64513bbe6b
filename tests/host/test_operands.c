/* Operands that share memory with others where they are equal; checked runs are correct with both. */
#include "core/problem/element.h"
#include "core/synth/input.h"
#include "support/command.h"
#include "support/host_bench.h"
#include "support/test.h"
#include "support/verified.h"

enum { N = 12 };
static bench host;

static int begin(void **state) {
  if (home_begin(state)) return 1;
  bench_make(&host, NULL, "uniform:rows=90,d=4", N);
  return 0;
}

static int end(void **state) {
  bench_release(&host);
  return folder_end(state);
}

/* A copy of the matrix with values of 1; `ones` has csr.nnz elements. */
static wlmi_csr_host with_ones(float *ones) {
  wlmi_csr_host a = host.csr;
  for (int64_t p = 0; p < host.csr.nnz; p++) ones[p] = 1;
  a.values = ones;
  return a;
}

static wlm_problem problem_of(wlm_type type) { return (wlm_problem)PROBLEM(.n = N, .dense_type = type); }

static void check(wlmi_operands *operands) {
  OWN(wlmi_verifier, verifier, wlmi_verifier_create(operands, 1, &verifier));
  OWN(wlm_plan, plan, wlm_plan_create(host.context, operands->matrix, &operands->spec.problem, &plan));
  GET(double, error, verify_plan(operands, verifier, plan, &error));
}

static void beside(const wlmi_operands *lender, const wlm_matrix *matrix, const wlm_problem *problem,
                   const wlm_execute_args *call, int borrows) {
  HOLD(wlmi_operands, operands, wlmi_operands_create_beside(lender, host.context, matrix, problem, call, 1, &operands));
  assert_int_equal(operands.a.rowptr == lender->a.rowptr, borrows);
  assert_int_equal(operands.call.b == lender->call.b, borrows);
  assert_int_equal(operands.call.c == lender->call.c, borrows);
  check(&operands);
}

TEST(equal_operands_are_shared) {
  const wlm_problem sum = problem_of(WLM_F32);
  float memory[1000];
  const wlmi_csr_host unit = with_ones(memory);
  HOLD(wlmi_operands, lender, wlmi_operands_create(host.context, host.upload.matrix, &sum, NULL, 1, &lender));
  HOLD(wlmi_upload, ones, wlmi_upload_create_values(host.context, &host.upload, &unit, WLM_F32, &ones));
  HOLD(wlmi_upload, wide, wlmi_upload_create_values(host.context, &host.upload, &unit, WLM_F64, &wide));

  wlm_problem problem = sum;
  problem.reduce = WLM_MAX;
  beside(&lender, host.upload.matrix, &problem, NULL, 1);
  beside(&lender, ones.matrix, &problem, NULL, 0);
  problem.reduce = WLM_CUSTOM;
  problem.custom = "init=0;reduce=acc+x;combine=reduce";
  beside(&lender, host.upload.matrix, &problem, NULL, 1);
  problem = problem_of(WLM_F64);
  beside(&lender, wide.matrix, &problem, NULL, 0);
  problem = sum;
  problem.operation = WLM_SDDMM; /* the result of an SDDMM has another shape */
  beside(&lender, host.upload.matrix, &problem, NULL, 0);
  problem = sum;
  problem.n = N + 1;
  beside(&lender, host.upload.matrix, &problem, NULL, 0);
  problem = sum;
  wlm_execute_args call = EXECUTE_ARGS(.beta = 2 /* a beta other than 0 reads the old C */);
  beside(&lender, host.upload.matrix, &problem, &call, 0);
  check(&lender); /* the lender still owns the shared memory */
}

TEST(values_over_a_pattern) {
  wlmi_upload ones, half;
  float memory[1000];
  const wlmi_csr_host unit = with_ones(memory);
  assert_status(WLM_OK, wlmi_upload_create_values(host.context, &host.upload, &unit, WLM_F32, &ones));
  assert_status(WLM_OK, wlmi_upload_create_values(host.context, &host.upload, &unit, WLM_F16, &half));
  const wlm_csr *pattern = wlmi_matrix_csr(host.upload.matrix), *seen = wlmi_matrix_csr(ones.matrix);
  assert_ptr_equal(seen->rowptr, pattern->rowptr);
  assert_ptr_equal(seen->colind, pattern->colind);
  assert_status(WLM_OK, wlmi_matrix_fingerprint(ones.matrix));
  assert_status(WLM_OK, wlmi_matrix_fingerprint(host.upload.matrix));
  assert_memory_equal(wlm_matrix_stats(ones.matrix)->fingerprint, wlm_matrix_stats(host.upload.matrix)->fingerprint,
                      16);
  assert_int_equal(wlmi_matrix_csr(half.matrix)->value_type, WLM_F16);
  for (int64_t p = 0; p < seen->nnz; p++) {
    assert_true(wlmi_element_get(WLM_F32, seen->values, p) == 1);
    assert_true(wlmi_element_get(WLM_F16, wlmi_matrix_csr(half.matrix)->values, p) == 1);
  }
  wlmi_upload_release(&half);
  wlmi_upload_release(&ones);
  /* the pattern was not released with the first values */
  assert_status(WLM_OK, wlmi_upload_create(host.context, &host.csr, WLM_I32, &ones));
  wlmi_upload_release(&ones);
}

/* What calls alone give cannot be compared. */
TEST(values_of_calls_are_refused) {
  wlm_csr given = *wlmi_matrix_csr(host.upload.matrix);
  wlm_problem problem = problem_of(WLM_F32);
  HELD(wlmi_operands) operands;
  given.values = NULL;
  given.has_values = 1;
  OWN(wlm_matrix, matrix, wlm_matrix_create(host.context, &given, NULL, &matrix));
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_operands_create(host.context, matrix, &problem, NULL, 1, &operands));
  assert_contains(wlm_error_detail(), "wlm_csr.values is NULL");
}

/* B of attention's gradient has as many rows as A has columns, and dC as many as A has rows. */
TEST(gradients_of_wide_and_tall_matrices) {
  static const char *const inputs[] = {"uniform:rows=400,cols=50,d=3", "uniform:rows=50,cols=400,d=3"};
  wlm_problem problem = problem_of(WLM_F32);
  problem.operation = WLM_ATTENTION;
  problem.transpose = 1;
  for (int i = 0; i < 2; i++) {
    HOLD(wlmi_csr_host, a, wlmi_input_read(inputs[i], &a));
    HOLD(wlmi_upload, one, wlmi_upload_create(host.context, &a, WLM_I32, &one));
    HOLD(wlmi_operands, operands, wlmi_operands_create(host.context, one.matrix, &problem, NULL, 1, &operands));
    for (int shift = 1; shift >= 0; shift--) {
      assert_status(WLM_OK, wlmi_operands_shift(&operands, shift));
      check(&operands);
    }
  }
}

static const wlmi_device_ops *usual;

static wlm_status allocate_little(wlmi_device *device, size_t size, void **memory) {
  if (size <= 1 << 20) return usual->allocate(device, size, memory);
  *memory = NULL;
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%zu bytes", size);
}

/* The last offset is INT32_MAX or one more. The device has no memory for so many columns, which come next. */
TEST(offsets_that_do_not_fit_are_refused) {
  wlmi_device *device = wlmi_context_device(host.context);
  wlmi_device_ops ops = *device->ops;
  usual = device->ops;
  ops.allocate = allocate_little;
  device->ops = &ops;
  for (int64_t beyond = 0; beyond < 2; beyond++) {
    int64_t rowptr[] = {0, INT32_MAX + beyond};
    const wlmi_csr_host large = {.rows = 1, .cols = 1, .nnz = rowptr[1], .rowptr = rowptr};
    wlmi_upload to;
    assert_int_equal(wlmi_upload_rowptr_type(&large), beyond ? WLM_I64 : WLM_I32);
    assert_status(beyond ? WLM_ERR_OVERFLOW : WLM_ERR_OUT_OF_MEMORY,
                  wlmi_upload_create(host.context, &large, WLM_I32, &to));
    assert_status(WLM_ERR_OUT_OF_MEMORY, wlmi_upload_create(host.context, &large, WLM_I64, &to));
  }
  device->ops = usual;
}

GROUP(begin, end)
