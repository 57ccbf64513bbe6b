/* Products of one column on the host, whose kernels load edges behind those of a row (templates/prelude/host_tile.h):
 * they load none behind the edges that rows have, and no NaN of another row reaches a result. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/bare_host.h"
#include "support/calls.h"
#include "support/shapes.h"
#include "support/test.h"

enum { COLS = 37, BEHIND = 5 };

typedef struct column {
  int64_t rows, nnz;
  int32_t *rowptr, *colind;
  float *values, *b, *c;
} column;

/* Rows of 0 to `longest` edges, the last `empty` ones without any; edges of no row behind them. B has a row of NaN,
 * which only every ninth row of A reads. */
static column column_make(int64_t rows, int longest, int64_t empty, test_random *random) {
  column a = {.rows = rows, .rowptr = calloc((size_t)rows + 1, 4)};
  for (int64_t row = 0; row < rows; row++)
    a.rowptr[row + 1] = a.rowptr[row] + (row < rows - empty ? (int32_t)test_draw(random, (uint64_t)longest + 1) : 0);
  const int32_t held = a.rowptr[rows];
  a.nnz = held + BEHIND;
  a.colind = malloc((size_t)a.nnz * 4);
  a.values = malloc((size_t)a.nnz * 4);
  a.b = malloc(COLS * 4);
  a.c = malloc((size_t)rows * 4);
  for (int i = 0; i < COLS; i++) a.b[i] = test_draw_between(random, -1, 1);
  a.b[COLS - 1] = NAN;
  for (int64_t row = 0; row < rows; row++)
    for (int32_t p = a.rowptr[row]; p < a.rowptr[row + 1]; p++) {
      a.colind[p] = row % 9 == 8 ? COLS - 1 : (int32_t)test_draw(random, COLS - 1);
      a.values[p] = test_draw_between(random, -1, 1);
    }
  for (int64_t p = held; p < a.nnz; p++) {
    a.colind[p] = INT_MIN;
    a.values[p] = NAN;
  }
  return a;
}

static void column_release(column *a) {
  free(a->rowptr);
  free(a->colind);
  free(a->values);
  free(a->b);
  free(a->c);
}

static double expected(const column *a, int64_t row, wlm_reduce reduce) {
  const int32_t begin = a->rowptr[row], end = a->rowptr[row + 1];
  double value = reduce == WLM_PROD ? 1 : 0;
  for (int32_t p = begin; p < end; p++) {
    const double x = (double)a->values[p] * a->b[a->colind[p]];
    if (reduce == WLM_PROD)
      value *= x;
    else if (reduce == WLM_MAX)
      value = p == begin || x > value || isnan(x) ? x : value;
    else
      value += x;
  }
  return reduce == WLM_MEAN && end > begin ? value / (end - begin) : value;
}

static void check(const column *a, wlm_reduce reduce, const char *variant, double alpha) {
  wlm_csr csr = CSR(.rows = a->rows, .cols = COLS, .nnz = a->rowptr[a->rows], .rowptr = a->rowptr, .colind = a->colind,
                    .values = a->values);
  const wlm_problem problem = PROBLEM(.n = 1, .reduce = reduce, .policy = {.expected_calls = 1});
  const wlm_execute_args call = EXECUTE_ARGS(.alpha = alpha);
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  OWN(wlm_plan, plan, wlm_plan_create_variant(bare_host, matrix, &problem, variant, &plan));
  csr.nnz = a->nnz;
  assert_status(WLM_OK, wlm_plan_rebind(plan, &csr));
  FREED void *workspace = malloc(wlm_plan_workspace_size(plan) + 1);
  memset(a->c, 0xff, (size_t)a->rows * 4);
  assert_status(WLM_OK, test_execute_call(plan, &call, a->b, a->c, workspace));
  for (int64_t row = 0; row < a->rows; row++) {
    const double right = alpha * expected(a, row, reduce);
    if (isnan(right) ? !isnan(a->c[row]) : !(fabs(a->c[row] - right) <= 1e-4 * (1 + fabs(right))))
      fail_msg("%s, %d, alpha %g, %lld rows: row %lld is %g, not %g", variant, (int)reduce, alpha, (long long)a->rows,
               (long long)row, (double)a->c[row], right);
  }
}

TEST(rows_of_all_lengths_and_ends) {
  static const char *const variants[] = {"host_row/rows=16,tile=16", "host_nnz/nonzeros=1024,tile=16"};
  static const wlm_reduce reductions[] = {WLM_SUM, WLM_MEAN, WLM_MAX, WLM_PROD};
  static const struct {
    int64_t rows;
    int longest;
    int64_t empty;
  } shapes[] = {{1, 1, 0}, {1, 9, 0}, {1, 3000, 0}, {300, 7, 0}, {300, 7, 40}, {17, 1, 3}, {50, 0, 0}, {900, 12, 1}};
  test_random random = {3};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    HELD(column) a = column_make(shapes[s].rows, shapes[s].longest, shapes[s].empty, &random);
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
      for (size_t r = 0; r < sizeof reductions / sizeof *reductions; r++) {
        check(&a, reductions[r], variants[v], 1);
        check(&a, reductions[r], variants[v], -0.5);
      }
  }
}

GROUP(bare_host_begin, bare_host_end)
