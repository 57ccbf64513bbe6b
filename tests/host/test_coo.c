/* wlm_csr_from_coo on the host device: every list of support/coo_check.h, arguments that it refuses, and what
 * operations and gradients do with a list whose edges are partly out of range. */
#include <sys/mman.h>
#include <unistd.h>

#include "support/bare_host.h"
#include "support/coo_check.h"
#include "support/shapes.h"
#include "support/test.h"
#include "warploom/warploom_attention.h"

static void convert(void *user, const wlm_coo *coo) { assert_status(WLM_OK, wlm_csr_from_coo(user, coo)); }

TEST(every_list) {
  for (int number = 0; number < coo_case_count(); number++) {
    const coo_case c = coo_case_of(number);
    coo_check(&c, (uint64_t)number + 1, convert, bare_host);
  }
}

static void refused(wlm_context *context, const wlm_coo *coo, wlm_status expected, const char *says) {
  assert_status(expected, wlm_csr_from_coo(context, coo));
  assert_contains(wlm_error_detail(), says);
}

TEST(refuses) {
  static const int64_t row[3] = {2, 0, 1}, col[3] = {1, 1, 0};
  static int64_t rowptr[4], colind[3], perm[3];
  wlm_context *const context = bare_host;
  wlm_coo good = COO(.rows = 3, .cols = 2, .nnz = 3, .row = row, .col = col, .rowptr = rowptr, .colind = colind,
                     .perm = perm, .index_type = WLM_I64, .rowptr_type = WLM_I64, .colind_type = WLM_I64),
          coo;
  assert_status(WLM_OK, wlm_csr_from_coo(context, &good));
  refused(context, NULL, WLM_ERR_INVALID_ARGUMENT, "wlm_csr_from_coo: coo is NULL");
  refused(NULL, &good, WLM_ERR_INVALID_ARGUMENT, "wlm_csr_from_coo: context is NULL");
  coo = good, coo.nnz = -1;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "nnz = -1");
  coo = good, coo.row = NULL;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "row");
  coo = good, coo.col = (const char *)col + 1;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "col");
  coo = good, coo.rowptr = NULL;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "rowptr");
  coo = good, coo.perm = (char *)perm + 4;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "perm");
  coo = good, coo.index_type = (wlm_index)7;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "wlm_coo.index_type is 7");
  coo = good, coo.rowptr_type = (wlm_index)7;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "rowptr_type is 7");
  coo = good, coo.cols = 0;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "no columns");
  coo = good, coo.rows = 0;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "no rows");
  coo = good, coo.index_type = WLM_I32, coo.rows = (int64_t)1 << 31;
  refused(context, &coo, WLM_ERR_OVERFLOW, "2147483648 rows do not fit indices of i32");
  coo = good, coo.rowptr_type = WLM_I32, coo.nnz = (int64_t)1 << 31;
  refused(context, &coo, WLM_ERR_OVERFLOW, "do not fit a rowptr of i32");
}

/* ---- edges out of range --------------------------------------------------------------------------------------- */

enum { ROWS = 37, COLS = 23, NNZ = 6000, N = 8, SPMM, BACKWARD, EDGES, ATTENTION, ATTENTION_GRADIENT };

/* Memory that ends where no memory is, filled with NaN. */
static void *guarded(size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
  char *memory = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(memory != MAP_FAILED);
  assert_int_equal(mprotect(memory + whole, page, PROT_NONE), 0);
  return memset(memory + whole - size, 0xff, size);
}

static float *guarded_floats(int64_t count) { return guarded((size_t)count * sizeof(float)); }

/* Short binary fractions, so that sums are exact in any order. */
static float *drawn(test_random *random, int64_t count) {
  float *values = guarded_floats(count);
  for (int64_t i = 0; i < count; i++) values[i] = (float)((int)test_draw(random, 17) - 8) / 8;
  return values;
}

static wlm_csr convert_badly(test_random *random) {
  int32_t *row = guarded(NNZ * sizeof *row), *col = guarded(NNZ * sizeof *col);
  for (int p = 0; p < NNZ; p++) {
    row[p] = (int32_t)test_draw(random, ROWS + 9) - 4;
    col[p] = (int32_t)test_draw(random, COLS + 9) - 4;
  }
  wlm_coo coo = COO(.rows = ROWS, .cols = COLS, .nnz = NNZ, .row = row, .col = col);
  wlm_csr csr = CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ);
  csr.rowptr = coo.rowptr = guarded((ROWS + 1) * sizeof(int32_t));
  csr.colind = coo.colind = guarded(NNZ * sizeof(int32_t));
  assert_status(WLM_OK, wlm_csr_from_coo(bare_host, &coo));
  csr.values = drawn(random, NNZ);
  return csr;
}

/* The edges that rows have, in double. */
static void expect_sums(const wlm_csr *csr, const float *b, double *c) {
  const int32_t *rowptr = csr->rowptr, *colind = csr->colind;
  memset(c, 0, ROWS * N * sizeof *c);
  for (int r = 0; r < ROWS; r++)
    for (int32_t p = rowptr[r]; p < rowptr[r + 1]; p++)
      for (int j = 0; j < N; j++) c[r * N + j] += (double)(((const float *)csr->values)[p] * b[colind[p] * N + j]);
}

static void expect_edges(const wlm_csr *csr, const float *x, const float *b, double *dvalues) {
  const int32_t *rowptr = csr->rowptr, *colind = csr->colind;
  memset(dvalues, 0, NNZ * sizeof *dvalues);
  for (int r = 0; r < ROWS; r++)
    for (int32_t p = rowptr[r]; p < rowptr[r + 1]; p++)
      for (int j = 0; j < N; j++) dvalues[p] += (double)(x[r * N + j] * b[colind[p] * N + j]);
}

static void compare(const float *got, const double *expected, int64_t count) {
  for (int64_t i = 0; i < count; i++) assert_true(fabs((double)got[i] - expected[i]) < 1e-4);
}

/* Every element is written and is a number that the operands can give. */
static void is_written(const float *got, int64_t count) {
  for (int64_t i = 0; got && i < count; i++) assert_true(fabs((double)got[i]) < 1e6);
}

static const struct {
  int kind;
  wlm_reduce reduce;
  int transpose;
  wlm_sample sample;
} cases[] = {{SPMM, WLM_SUM, 0, WLM_SAMPLE_NONE},
             {SPMM, WLM_MEAN, 0, WLM_SAMPLE_NONE},
             {SPMM, WLM_SUM, 1, WLM_SAMPLE_NONE},
             {SPMM, WLM_SUM, 0, WLM_SAMPLE_FASTRAND},
             {SPMM, WLM_SUM, 1, WLM_SAMPLE_FASTRAND},
             {BACKWARD, WLM_MAX, 0, WLM_SAMPLE_NONE},
             {BACKWARD, WLM_MAX, 1, WLM_SAMPLE_NONE},
             {EDGES, WLM_SUM, 0, WLM_SAMPLE_NONE},
             {EDGES, WLM_MEAN, 0, WLM_SAMPLE_FASTRAND},
             {ATTENTION, WLM_SUM, 0, WLM_SAMPLE_NONE},
             {ATTENTION_GRADIENT, WLM_SUM, 1, WLM_SAMPLE_NONE}};

static void run(size_t number, const wlm_csr *csr, test_random *random) {
  const int kind = cases[number].kind, transpose = cases[number].transpose, rows = transpose ? COLS : ROWS;
  const int is_exact = cases[number].sample == WLM_SAMPLE_NONE && cases[number].reduce == WLM_SUM && !transpose;
  static double expected[NNZ > ROWS * N ? NNZ : ROWS * N];
  wlm_problem problem = PROBLEM(.n = N, .reduce = cases[number].reduce, .transpose = transpose,
                                .sampling.sample = cases[number].sample, .sampling.width = 32);
  wlm_attention_operands attention = WLM_ATTENTION_OPERANDS_INIT;
  const float *b = drawn(random, (transpose ? ROWS : COLS) * N), *x = drawn(random, ROWS * N);
  float *c = guarded_floats(rows * N), *dvalues = guarded_floats(NNZ), *db = guarded_floats(COLS * N);
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c);
  switch (kind) {
    case SPMM:
      assert_status(WLM_OK, wlm_spmm(bare_host, csr, &problem, &args));
      if (is_exact) expect_sums(csr, b, expected);
      break;
    case BACKWARD:
      problem.want_argmax = 1;
      args.argmax = guarded((size_t)rows * N * sizeof(int32_t));
      assert_status(WLM_OK, wlm_spmm(bare_host, csr, &problem, &args));
      problem.operation = WLM_ARGMAX_GRADIENT;
      args.x = drawn(random, rows * N);
      args.argmax_db = guarded_floats((transpose ? ROWS : COLS) * N);
      args.argmax_dvalues = dvalues;
      assert_status(WLM_OK, wlm_spmm(bare_host, csr, &problem, &args));
      is_written(args.argmax_db, (transpose ? ROWS : COLS) * N);
      is_written(dvalues, NNZ);
      break;
    case EDGES:
      problem.operation = WLM_SDDMM;
      args.x = x;
      args.dvalues = dvalues;
      assert_status(WLM_OK, wlm_spmm(bare_host, csr, &problem, &args));
      is_written(dvalues, NNZ);
      if (is_exact) expect_edges(csr, x, b, expected);
      if (is_exact) compare(dvalues, expected, NNZ);
      return;
    case ATTENTION:
      problem.operation = WLM_ATTENTION;
      problem.score = WLM_SCORE_EDGE;
      assert_status(WLM_OK, wlm_spmm(bare_host, csr, &problem, &args));
      is_written(c, ROWS * N);
      return;
    default:
      problem.operation = WLM_ATTENTION;
      problem.score = WLM_SCORE_EDGE;
      args.c = NULL;
      args.b = drawn(random, COLS * N);
      args.x = x;
      attention.softmax = drawn(random, 2 * ROWS);
      attention.delta = drawn(random, ROWS);
      args.attention = &attention;
      attention.dscores = dvalues;
      args.db = db;
      assert_status(WLM_OK, wlm_spmm(bare_host, csr, &problem, &args));
      is_written(db, COLS * N);
      is_written(dvalues, NNZ);
      return;
  }
  is_written(c, rows * N);
  if (is_exact && kind == SPMM) compare(c, expected, rows * N);
}

/* For one-call products, which do not check the matrix. */
TEST(edges_out_of_range_stay_inside) {
  test_random random = {11};
  const wlm_csr csr = convert_badly(&random);
  wlm_matrix *matrix;
  assert_true(((const int32_t *)csr.rowptr)[ROWS] < NNZ);
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run(i, &csr, &random);
}

GROUP(bare_host_begin, bare_host_end)
