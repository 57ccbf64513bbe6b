/* Products with A^T: C = op(A^T, B) against float64, for every family of the host, with columns repeated and unsorted,
 * rows and columns empty, values that change in place; and the transpose of a transpose. */
#include <pthread.h>

#include "core/csr/transpose.h"
#include "core/reference/reference.h"
#include "runtime/context.h"
#include "support/bare_host.h"
#include "support/calls.h"
#include "support/shapes.h"
#include "support/test.h"

enum { N = 20 };

/* A matrix with both index types, and its transpose as a matrix of its own. */
typedef struct fixture {
  wlmi_csr_host a, t;
  int32_t *rowptr32, *order;
  int64_t *colind64;
  float *b;
} fixture;

static void fill(float *to, int64_t count, uint64_t seed) {
  test_random random = {seed};
  for (int64_t i = 0; i < count; i++) to[i] = test_draw_between(&random, 0.5f, 1.5f) * (test_draw(&random, 2) ? 1 : -1);
}

static wlm_csr view_of(const fixture *f, wlm_index type) {
  return (wlm_csr)CSR(.rows = f->a.rows, .cols = f->a.cols, .nnz = f->a.nnz,
                      .rowptr = type == WLM_I64 ? (const void *)f->a.rowptr : f->rowptr32, .rowptr_type = type,
                      .colind = type == WLM_I64 ? (const void *)f->colind64 : f->a.colind, .colind_type = type,
                      .values = f->a.values);
}

/* Builds the transpose by sorting pairs, unlike the library. */
static void transpose_slowly(fixture *f) {
  f->t = (wlmi_csr_host){.rows = f->a.cols, .cols = f->a.rows, .nnz = f->a.nnz};
  f->t.rowptr = wlmi_alloc_zero((size_t)f->t.rows + 1, sizeof *f->t.rowptr);
  f->t.colind = wlmi_alloc((size_t)f->a.nnz * sizeof *f->t.colind);
  f->t.values = wlmi_alloc((size_t)f->a.nnz * sizeof *f->t.values);
  f->order = wlmi_alloc((size_t)f->a.nnz * sizeof *f->order);
  int64_t next = 0;
  for (int64_t column = 0; column < f->a.cols; column++) {
    for (int64_t row = 0; row < f->a.rows; row++)
      for (int64_t p = f->a.rowptr[row]; p < f->a.rowptr[row + 1]; p++) {
        if (f->a.colind[p] != column) continue;
        f->t.colind[next] = (int32_t)row;
        f->order[next++] = (int32_t)p;
      }
    f->t.rowptr[column + 1] = next;
  }
}

static void take_values(fixture *f) {
  for (int64_t q = 0; q < f->a.nnz; q++) f->t.values[q] = f->a.values[f->order[q]];
}

static void fixture_make(fixture *f, int shape) {
  test_random random = {0x9E3779B97F4A7C15u + (uint64_t)shape};
  *f = (fixture){0};
  assert_status(WLM_OK, test_shape_make(shape, 64, 577, &random, &f->a));
  f->rowptr32 = wlmi_alloc((size_t)(f->a.rows + 1) * sizeof *f->rowptr32);
  for (int64_t row = 0; row <= f->a.rows; row++) f->rowptr32[row] = (int32_t)f->a.rowptr[row];
  f->colind64 = wlmi_alloc((size_t)f->a.nnz * sizeof *f->colind64);
  for (int64_t p = 0; p < f->a.nnz; p++) f->colind64[p] = f->a.colind[p];
  f->a.values = wlmi_alloc((size_t)f->a.nnz * sizeof *f->a.values);
  fill(f->a.values, f->a.nnz, 77);
  f->b = wlmi_alloc((size_t)(f->a.rows * N) * sizeof *f->b);
  fill(f->b, f->a.rows * N, 99);
  transpose_slowly(f);
  take_values(f);
}

static void fixture_release(fixture *f) {
  wlmi_csr_host_release(&f->a);
  wlmi_csr_host_release(&f->t);
  wlmi_free(f->rowptr32);
  wlmi_free(f->order);
  wlmi_free(f->colind64);
  wlmi_free(f->b);
}

static wlm_problem transposed(wlm_message message, wlm_reduce reduce) {
  return (wlm_problem)PROBLEM(.n = N, .message = message, .reduce = reduce, .transpose = 1);
}

static void check(const fixture *f, const wlm_plan *plan, wlm_problem problem) {
  const int64_t count = f->a.cols * N;
  WLM_FREED float *c = wlmi_alloc((size_t)count * sizeof *c);
  WLM_FREED void *workspace = wlmi_alloc(wlm_plan_workspace_size(plan));
  WLM_FREED double *expected = wlmi_alloc((size_t)count * sizeof *expected),
                   *scale = wlmi_alloc((size_t)count * sizeof *scale);
  memset(c, 0xff, (size_t)count * sizeof *c);
  problem.transpose = 0;
  wlm_execute_args call = EXECUTE_ARGS(.b = f->b);
  const wlmi_reference_result reference = {expected, scale, NULL};
  assert_status(WLM_OK, wlmi_reference_rows(&f->t, &problem, &call, NULL, f->t.rows, &reference));
  assert_status(WLM_OK, test_execute(plan, f->b, c, workspace));
  for (int64_t i = 0; i < count; i++)
    if (!(fabs(c[i] - expected[i]) <= 1e-5 * scale[i] + 1e-30)) fail_msg("element %lld is wrong", (long long)i);
}

TEST(every_shape_and_family) {
  static const char *const variants[] = {NULL, "host_row/rows=16,tile=32", "host_nnz/nonzeros=1024,tile=32"};
  for (int shape = 0; shape < test_shape_count(); shape++) {
    MAKE(fixture, f, shape);
    for (int type = WLM_I32; type <= WLM_I64; type++) {
      wlm_csr csr = view_of(&f, (wlm_index)type);
      OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
      for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        wlm_problem problem = transposed(i == 1 ? WLM_DIV : WLM_MUL, i == 2 ? WLM_MAX : WLM_SUM);
        OWNED(wlm_plan) *plan = NULL;
        assert_status(WLM_OK, variants[i] ? wlm_plan_create_variant(bare_host, matrix, &problem, variants[i], &plan)
                                          : wlm_plan_create(bare_host, matrix, &problem, &plan));
        check(&f, plan, problem);
      }
    }
  }
}

/* Compares the pattern and the order with the slow transpose, and transposes back. */
TEST(twice_gives_the_matrix) {
  for (int shape = 0; shape < test_shape_count(); shape++) {
    MAKE(fixture, f, shape);
    wlm_csr csr = view_of(&f, WLM_I32), back = WLM_CSR_INIT;
    const size_t nnz = (size_t)csr.nnz * sizeof(int32_t);
    int32_t *rowptr = wlmi_alloc((size_t)(csr.cols + 1) * 4), *colind = wlmi_alloc(nnz), *order = wlmi_alloc(nnz);
    int32_t *rowptr2 = wlmi_alloc((size_t)(csr.rows + 1) * 4), *colind2 = wlmi_alloc(nnz), *order2 = wlmi_alloc(nnz);
    assert_status(WLM_OK, wlmi_transpose_pattern(&csr, rowptr, colind, order));
    for (int64_t i = 0; i <= csr.cols; i++) assert_int_equal(rowptr[i], f.t.rowptr[i]);
    assert_memory_equal(colind, f.t.colind, nnz);
    assert_memory_equal(order, f.order, nnz);
    back.rows = csr.cols;
    back.cols = csr.rows;
    back.nnz = csr.nnz;
    back.rowptr = rowptr;
    back.colind = colind;
    assert_status(WLM_OK, wlmi_transpose_pattern(&back, rowptr2, colind2, order2));
    assert_memory_equal(rowptr2, f.rowptr32, (size_t)(csr.rows + 1) * 4);
    /* Unsorted rows come back sorted by column, and equal columns in their old order. */
    for (int64_t row = 0; row < csr.rows; row++)
      for (int64_t p = rowptr2[row]; p < rowptr2[row + 1]; p++) {
        assert_int_equal(colind2[p], f.a.colind[order[order2[p]]]);
        if (p > rowptr2[row] && colind2[p] == colind2[p - 1])
          assert_true(order[order2[p]] > order[order2[p - 1]]);
        else if (p > rowptr2[row])
          assert_true(colind2[p] > colind2[p - 1]);
      }
    void *all[] = {rowptr, colind, order, rowptr2, colind2, order2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) wlmi_free(all[i]);
  }
}

TEST(values_change_in_place) {
  MAKE(fixture, f, 0);
  wlm_csr csr = view_of(&f, WLM_I32);
  wlm_problem problem = transposed(WLM_MUL, WLM_SUM);
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  OWN(wlm_plan, plan, wlm_plan_create(bare_host, matrix, &problem, &plan));
  for (uint64_t seed = 1; seed <= 3; seed++) {
    fill(f.a.values, f.a.nnz, seed);
    take_values(&f);
    check(&f, plan, problem);
  }
}

static void *plan_once(void *matrix) {
  wlm_problem problem = transposed(WLM_MUL, WLM_SUM);
  OWNED(wlm_plan) *plan = NULL;
  if (wlm_plan_create(bare_host, matrix, &problem, &plan) != WLM_OK) return "failed";
  return NULL;
}

/* Many threads use one A^T. explain mentions it for the transposed plan only. */
TEST(a_transpose_is_built_once) {
  MAKE(fixture, f, 0);
  wlm_csr csr = view_of(&f, WLM_I32);
  wlm_problem problem = transposed(WLM_MUL, WLM_SUM);
  wlmi_matrix_view first, second;
  pthread_t threads[4];
  void *failure;
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, plan_once, matrix), 0);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], &failure);
    assert_null(failure);
  }
  assert_status(WLM_OK, wlmi_matrix_see(matrix, &problem, &first));
  assert_status(WLM_OK, wlmi_matrix_see(matrix, &problem, &second));
  assert_ptr_equal(first.order, second.order);
  assert_true(first.made_seconds > 0);
  assert_int_equal(first.made_bytes, (f.a.cols + 1 + 2 * f.a.nnz) * 4);
  assert_int_equal(first.stats->rows, f.a.cols);
  assert_int_equal(first.stats->nnz, f.a.nnz);
  OWN(wlm_plan, plan, wlm_plan_create(bare_host, matrix, &problem, &plan));
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 0, &text));
  assert_non_null(strstr(text, "transpose=1"));
  assert_non_null(strstr(text, "bytes beside the matrix, made in"));
  wlm_string_free(text);
  wlm_plan_destroy(plan);
  problem.transpose = 0;
  assert_status(WLM_OK, wlm_plan_create(bare_host, matrix, &problem, &plan));
  assert_status(WLM_OK, wlm_plan_explain(plan, 0, &text));
  assert_null(strstr(text, "transpose"));
}

/* All non-zeros of A are in one row, so that rows of A^T are even. */
TEST(a_choice_is_that_for_op_a) {
  int32_t rowptr[65] = {0}, colind[64];
  wlm_problem problem = transposed(WLM_MUL, WLM_SUM);
  for (int32_t i = 0; i < 64; i++) colind[i] = i, rowptr[i + 1] = 64;
  wlm_csr csr = CSR(.rows = 64, .cols = 64, .nnz = 64, .rowptr = rowptr, .colind = colind);
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  GET(wlmi_decision, decision, wlmi_context_choose(bare_host, matrix, &problem, &decision));
  assert_memory_equal(decision.variant, "host_row/", strlen("host_row/"));
  problem.transpose = 0;
  assert_status(WLM_OK, wlmi_context_choose(bare_host, matrix, &problem, &decision));
  assert_memory_equal(decision.variant, "host_nnz/", strlen("host_nnz/"));
}

TEST(invalid_calls_are_refused) {
  static const int32_t rowptr[] = {0, 1, 2}, outside[] = {0, 3};
  wlm_problem problem = transposed(WLM_MUL, WLM_SUM);
  wlm_csr csr = CSR(.rows = 2, .nnz = 2, .cols = 3, .rowptr = rowptr, .colind = outside);
  wlm_stats stats = STATS(.rows = 2, .nnz = 2, .cols = 3, .longest = 1, .mean = 1);
  wlm_plan *plan;
  OWN(wlm_matrix, matrix, test_matrix_given(bare_host, &csr, &stats, &matrix));
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_plan_create(bare_host, matrix, &problem, &plan), "colind[1] is 3");
}

GROUP(bare_host_begin, bare_host_end)
