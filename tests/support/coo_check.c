#include "support/coo_check.h"

#include <stdlib.h>
#include <string.h>

#include "core/problem/spec.h"
#include "support/defaults.h"
#include "support/own.h"
#include "support/shapes.h"

/* Indices of one, two and three 8-bit digits; one tile, and several with an incomplete last one; more rows than
 * edges, and fewer. */
static const struct {
  int64_t rows, cols, nnz;
} sizes[] = {{0, 0, 0},     {1, 1, 1},    {1, 9, 40},     {300, 7, 0},    {5, 1, 33},
             {255, 8, 700}, {256, 8, 70}, {50, 60, 9001}, {65535, 4, 90}, {70000, 90000, 5000}};
enum { SIZES = sizeof sizes / sizeof *sizes, KINDS = 3 };

int coo_case_count(void) { return SIZES * KINDS; }

coo_case coo_case_of(int number) {
  const int size = number / KINDS, kind = number % KINDS;
  coo_case c = {sizes[size].rows, sizes[size].cols, sizes[size].nnz, kind == 1, kind == 2, 0, 0, 0, number % 5 < 2};
  c.index_type = number % 2 ? WLM_I64 : WLM_I32;
  c.rowptr_type = number / 2 % 2 ? WLM_I64 : WLM_I32;
  c.colind_type = number / 4 % 2 ? WLM_I64 : WLM_I32;
  return c;
}

typedef struct edge {
  int64_t row, col, p;
} edge;

static int by_row(const void *a, const void *b) {
  const edge *one = a, *other = b;
  if (one->row != other->row) return one->row < other->row ? -1 : 1;
  return one->p < other->p ? -1 : one->p > other->p;
}

static int is_inside(int64_t index, int64_t count) { return index >= 0 && index < count; }

static int64_t draw_index(const coo_case *c, int64_t count, test_random *random) {
  if (c->outside && !test_draw(random, 9)) return test_draw(random, 2) ? -1 - (int64_t)test_draw(random, 5) : count;
  return (int64_t)test_draw(random, (uint64_t)count);
}

static int64_t read_index(wlm_index type, const void *from, int64_t i) {
  return type == WLM_I64 ? ((const int64_t *)from)[i] : ((const int32_t *)from)[i];
}

/* Allocates exactly this array, but at least one byte. */
static void *array_of(int64_t count, wlm_index type) {
  const size_t size = (size_t)count * wlmi_index_size(type);
  void *array = malloc(size + !size);
  assert_non_null(array);
  memset(array, 0x5a, size);
  return array;
}

static void *indices(const edge *edges, int64_t nnz, int columns, int base, wlm_index type) {
  void *array = array_of(nnz, type);
  for (int64_t p = 0; p < nnz; p++) {
    const int64_t index = base + (columns ? edges[p].col : edges[p].row);
    if (type == WLM_I64)
      ((int64_t *)array)[p] = index;
    else
      ((int32_t *)array)[p] = (int32_t)index;
  }
  return array;
}

/* Compares with the CSR matrix of `edges`, which are sorted by row; edges outside of the matrix come last. */
static void compare(const wlm_coo *coo, const edge *edges) {
  int64_t q = 0;
  for (int64_t row = 0; row <= coo->rows; row++) {
    while (q < coo->nnz && edges[q].row < row) q++;
    assert_int_equal(read_index(coo->rowptr_type, coo->rowptr, row), q + coo->base);
  }
  for (q = 0; q < coo->nnz; q++) {
    const int64_t column = is_inside(edges[q].col, coo->cols) ? edges[q].col : 0;
    assert_int_equal(read_index(coo->colind_type, coo->colind, q), column + coo->base);
    if (coo->perm) assert_int_equal(read_index(coo->rowptr_type, coo->perm, q), edges[q].p);
  }
}

static void run(const coo_case *c, const edge *given, const edge *expected, int promise, int perm,
                void (*convert)(void *user, const wlm_coo *coo), void *user) {
  FREED void *row = indices(given, c->nnz, 0, c->base, c->index_type),
             *col = indices(given, c->nnz, 1, c->base, c->index_type);
  wlm_coo coo =
      COO(.rows = c->rows, .cols = c->cols, .nnz = c->nnz, .base = c->base, .row = row, .col = col,
          .index_type = c->index_type, .sorted = promise, .rowptr_type = c->rowptr_type, .colind_type = c->colind_type);
  coo.rowptr = array_of(c->rows + 1, c->rowptr_type);
  coo.colind = array_of(c->nnz, c->colind_type);
  coo.perm = perm ? array_of(c->nnz, c->rowptr_type) : NULL;
  convert(user, &coo);
  compare(&coo, expected);
  free(coo.rowptr);
  free(coo.colind);
  free(coo.perm);
}

void coo_check(const coo_case *c, uint64_t seed, void (*convert)(void *user, const wlm_coo *coo), void *user) {
  test_random random = {seed};
  FREED edge *given = malloc(((size_t)c->nnz + 1) * sizeof *given),
             *expected = malloc(((size_t)c->nnz + 1) * sizeof *given);
  assert_true(given && expected);
  for (int64_t p = 0; p < c->nnz; p++)
    given[p] = (edge){draw_index(c, c->rows, &random), draw_index(c, c->cols, &random), p};
  if (c->sorted) qsort(given, (size_t)c->nnz, sizeof *given, by_row);
  for (int64_t p = 0; p < c->nnz; p++) {
    given[p].p = p;
    expected[p] = given[p];
    if (!is_inside(given[p].row, c->rows) || !is_inside(given[p].col, c->cols)) expected[p].row = c->rows;
  }
  qsort(expected, (size_t)c->nnz, sizeof *expected, by_row);
  for (int promise = 0; promise <= c->sorted; promise++)
    for (int perm = 0; perm < 2; perm++) run(c, given, expected, promise, perm, convert, user);
}
