#include "support/exact_matrix.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/csr/transpose.h"
#include "support/defaults.h"
#include "support/own.h"
#include "support/shapes.h"

enum { SKEWED = 1 }; /* a shape */

void *exact_array(int64_t count, size_t each) {
  void *made = calloc((size_t)count + !count, each);
  assert_non_null(made);
  return made;
}

static exact_matrix matrix_of(int64_t rows, int64_t cols, int64_t nnz) {
  return (exact_matrix){.a = {rows, cols, nnz, exact_array(rows + 1, sizeof(int64_t)),
                              exact_array(nnz, sizeof(int32_t)), exact_array(nnz, sizeof(float)), NULL}};
}

void exact_matrix_release(exact_matrix *m) {
  free(m->a.rowptr);
  free(m->a.colind);
  free(m->a.values);
  free(m->order);
}

void exact_fill(float *to, int64_t count, int low, int high, uint64_t seed) {
  test_random random = {seed * 0x9E3779B97F4A7C15u | 1};
  for (int64_t i = 0; i < count; i++) {
    to[i] = (float)(low + (int)test_draw(&random, (uint64_t)(high - low + 1)));
    if (test_draw(&random, 2)) to[i] = -to[i];
  }
}

exact_matrix exact_matrix_make(int64_t longest) {
  test_random random = {77};
  HOLD(wlmi_csr_host, shape, test_shape_make(SKEWED, 32, longest, &random, &shape));
  exact_matrix m = matrix_of(shape.rows, shape.cols, shape.nnz);
  memcpy(m.a.rowptr, shape.rowptr, (size_t)(shape.rows + 1) * sizeof *m.a.rowptr);
  memcpy(m.a.colind, shape.colind, (size_t)shape.nnz * sizeof *m.a.colind);
  exact_fill(m.a.values, m.a.nnz, 1, 2, 1);
  return m;
}

static void copy_edge(exact_matrix *to, int64_t p, const exact_matrix *from, int64_t q) {
  to->a.colind[p] = from->a.colind[q];
  to->a.values[p] = from->a.values[q];
}

exact_matrix exact_twice(const exact_matrix *m) {
  exact_matrix t = matrix_of(m->a.rows, m->a.cols, 2 * m->a.nnz);
  for (int64_t row = 0; row <= m->a.rows; row++) t.a.rowptr[row] = 2 * m->a.rowptr[row];
  for (int64_t row = 0; row < m->a.rows; row++) {
    const int64_t begin = m->a.rowptr[row], degree = m->a.rowptr[row + 1] - begin;
    for (int64_t k = 0; k < 2 * degree; k++) copy_edge(&t, 2 * begin + k, m, begin + k % degree);
  }
  return t;
}

exact_matrix exact_permuted(const exact_matrix *m) {
  test_random random = {5};
  exact_matrix t = matrix_of(m->a.rows, m->a.cols, m->a.nnz);
  memcpy(t.a.rowptr, m->a.rowptr, (size_t)(m->a.rows + 1) * sizeof *t.a.rowptr);
  for (int64_t row = 0; row < m->a.rows; row++)
    for (int64_t begin = m->a.rowptr[row], p = begin; p < m->a.rowptr[row + 1]; p++) {
      const int64_t other = begin + (int64_t)test_draw(&random, (uint64_t)(p - begin + 1));
      copy_edge(&t, p, &t, other);
      copy_edge(&t, other, m, p);
    }
  return t;
}

exact_matrix exact_shifted(const exact_matrix *m, int64_t edges) {
  exact_matrix t = matrix_of(m->a.rows + 1, m->a.cols, m->a.nnz + edges);
  for (int64_t p = 0; p < edges; p++) copy_edge(&t, p, m, p);
  for (int64_t p = 0; p < m->a.nnz; p++) copy_edge(&t, edges + p, m, p);
  for (int64_t row = 0; row <= m->a.rows; row++) t.a.rowptr[row + 1] = m->a.rowptr[row] + edges;
  return t;
}

wlm_csr exact_csr(const exact_matrix *m) {
  return (wlm_csr)CSR(.rows = m->a.rows, .cols = m->a.cols, .nnz = m->a.nnz, .rowptr = m->a.rowptr,
                      .rowptr_type = WLM_I64, .colind = m->a.colind, .values = m->a.values);
}

exact_matrix exact_transposed(const exact_matrix *m) {
  const wlm_csr csr = exact_csr(m);
  exact_matrix t = matrix_of(m->a.cols, m->a.rows, m->a.nnz);
  t.order = exact_array(m->a.nnz, sizeof *t.order);
  assert_status(WLM_OK, wlmi_transpose_pattern(&csr, t.a.rowptr, t.a.colind, t.order));
  memcpy(t.a.values, m->a.values, (size_t)m->a.nnz * sizeof *t.a.values);
  return t;
}

void exact_settle(exact_matrix *t) {
  float *values = exact_array(t->a.nnz, sizeof *values);
  for (int64_t q = 0; q < t->a.nnz; q++) values[q] = t->a.values[t->order[q]];
  free(t->a.values);
  free(t->order);
  t->a.values = values;
  t->order = NULL;
}

void exact_fill_powers(float *to, int64_t count, uint64_t seed) {
  test_random random = {seed};
  for (int64_t i = 0; i < count; i++) {
    const uint64_t kind = test_draw(&random, 64);
    to[i] = kind == 0 ? 2 : kind == 1 ? 0.5f : 1;
    if (test_draw(&random, 2)) to[i] = -to[i];
  }
}

float *exact_mix(const float *x, const float *y, int64_t count) {
  float *made = exact_array(count, sizeof *made);
  for (int64_t i = 0; i < count; i++) made[i] = 3 * x[i] - 2 * y[i];
  return made;
}
