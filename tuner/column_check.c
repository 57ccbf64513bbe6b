/* A check after Freivalds ("Fast probabilistic algorithms", 1979). With a random sign r_i for each row i
 *
 *   sum_i r_i C[i,j]  =  sum_k w_k B[k,j],   w_k = sum over the edges (i, k) of r_i a
 *
 * costs O(nnz + K N + M N) instead of the O(nnz N) of the product. It holds for sum and mean of every message that is
 * linear in b, u(a) b + v(a). Without the signs it would be the plain column sum, which does not notice exchanged rows
 * and in which roundings in one direction add up. With them the errors e_i of the rows add up to a sum with mean 0 and
 * standard deviation sqrt(sum e_i^2), since the signs are independent of the errors. Each e_i may be tolerance(d_i)
 * S_i, with S_i = sum |u| + |v| >= sum |a b| because |b| <= 1; roundings stay several times below that. So the sum may
 * be off by sqrt(sum (tolerance(d_i) S_i)^2). A row that was not written (NaN), written twice or has values of another
 * row is far outside, unless it is a short row among millions of long ones. */
#include "tuner/column_check.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"

struct wlmi_column_check {
  int64_t n;
  wlm_type type; /* of C */
  uint64_t seed;
  double tolerance;
  double *expected, *sums; /* n each */
};

/* Writes the message as slope * b + offset; returns 0 if it is not linear in b. */
static int linear_form(wlm_message message, double a, double *slope, double *offset) {
  *slope = 1;
  *offset = 0;
  switch (message) {
    case WLM_MUL: *slope = a; return 1;
    case WLM_COPY_B: return 1;
    case WLM_COPY_A: *slope = 0, *offset = a; return 1;
    case WLM_ADD: *offset = a; return 1;
    case WLM_SUB: *offset = -a; return 1;
    case WLM_RSUB: *slope = -1, *offset = a; return 1;
    case WLM_DIV: *slope = 1 / a; return 1;
    case WLM_RDIV: return 0;
  }
  return 0;
}

static double sign_of(uint64_t seed, int64_t row) { return wlmi_sample_hash(~seed, row) >> 63 ? -1.0 : 1.0; }

/* Adds the edges of one row to the weights of the rows of B; also returns the row's offset and its S. */
static void add_row(const wlmi_operands *operands, int64_t row, double sign, double *weights, double *offsets,
                    double *scale) {
  const wlmi_csr_host *a = &operands->a;
  const wlm_problem *p = &operands->spec.problem;
  const wlm_execute_args *call = &operands->call;
  const int64_t begin = a->rowptr[row], degree = a->rowptr[row + 1] - begin;
  const wlm_sample sample = a->shares ? WLM_SAMPLE_NONE : p->sampling.sample; /* of this row */
  const int64_t kept = wlmi_sample_kept(sample, degree, p->sampling.width), used = wlmi_edges_of_row(a, p, row);
  const int64_t stride = wlmi_sample_stride(sample, degree), shift = wlmi_sample_shift(call->seed, row, degree);
  double of_row = call->alpha;
  if (p->reduce == WLM_MEAN && used) of_row /= (double)used;
  if (sample != WLM_SAMPLE_NONE && p->sampling.norm == WLM_NORM_KEPT && kept) of_row /= (double)kept;
  if (sample != WLM_SAMPLE_NONE && p->sampling.norm == WLM_NORM_UNBIASED && kept)
    of_row *= (double)degree / (double)kept;
  *offsets = *scale = 0;
  for (int64_t k = 0; k < kept; k++) {
    const int64_t at = begin + (kept < degree ? wlmi_sample_position(sample, degree, k, stride, shift) : k);
    const double factor = a->shares ? of_row * (double)a->shares[at].times * a->shares[at].factor : of_row;
    double slope, offset;
    if (a->shares && !a->shares[at].times) continue;
    linear_form(p->message, wlmi_csr_value(a, at), &slope, &offset);
    *offsets += sign * factor * offset;
    *scale += fabs(factor) * (fabs(slope) + fabs(offset));
#pragma omp atomic
    weights[a->colind[at]] += sign * factor * slope;
  }
}

/* Rows of B or C, of which the first is row `first` of it. */
typedef struct block {
  const void *x;
  int64_t first, rows, ld;
} block;

/* to[j] += sum over the rows of weight(row) x[row, j], in parallel with one partial sum per thread. Without weights a
 * row has `scale` times its sign. */
static void add_rows(const wlmi_column_check *check, block b, const double *weights, double scale, double *to) {
  const int64_t n = check->n;
#pragma omp parallel
  {
    double *own = wlmi_alloc_zero(2 * (size_t)n, sizeof *own), *read = own ? own + n : NULL;
    const int64_t width = own ? n : 0;
#pragma omp for schedule(static)
    for (int64_t row = 0; row < b.rows; row++) {
      const double weight = weights ? weights[row] : scale * sign_of(check->seed, b.first + row);
      if (own) wlmi_elements_read(check->type, b.x, row * b.ld, n, read);
      for (int64_t j = 0; j < width; j++) own[j] += weight * read[j];
    }
#pragma omp critical
    for (int64_t j = 0; j < n; j++) to[j] += own ? own[j] : NAN; /* a check that ran out of memory must not pass */
    wlmi_free(own);
  }
}

static wlm_status expect(wlmi_column_check *check, const wlmi_operands *operands,
                         double (*row_tolerance)(const wlm_problem *problem, int64_t edges)) {
  const wlmi_csr_host *a = &operands->a;
  const wlm_problem *p = &operands->spec.problem;
  const wlm_execute_args *call = &operands->call;
  double offset = 0, squares = 0;
  double *weights = wlmi_alloc_zero((size_t)(a->cols ? a->cols : 1), sizeof *weights);
  if (!weights) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "weights of %lld rows of B", (long long)a->cols);
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : offset, squares)
  for (int64_t row = 0; row < a->rows; row++) {
    double row_offset, row_scale;
    add_row(operands, row, sign_of(check->seed, row), weights, &row_offset, &row_scale);
    const double error = row_tolerance(p, wlmi_edges_of_row(a, p, row)) * (row_scale + fabs(call->beta));
    offset += row_offset;
    squares += error * error;
  }
  for (int64_t j = 0; j < check->n; j++) check->expected[j] = offset;
  add_rows(check, (block){operands->host.b, 0, a->cols, call->ldb}, weights, 0, check->expected);
  if (operands->host.c)
    add_rows(check, (block){operands->host.c, 0, a->rows, call->ldc}, NULL, call->beta, check->expected);
  check->tolerance = sqrt(squares);
  wlmi_free(weights);
  return WLM_OK;
}

wlm_status wlmi_column_check_create(const wlmi_operands *operands, uint64_t seed,
                                    double (*row_tolerance)(const wlm_problem *problem, int64_t edges),
                                    wlmi_column_check **out) {
  const wlm_problem *p = &operands->spec.problem;
  double slope, offset;
  wlm_status status;
  wlmi_column_check *check = NULL;
  *out = NULL;
  if (p->epilogue.bias || p->epilogue.activation || p->operation != WLM_SPMM || p->heads > 1) return WLM_OK;
  if ((p->reduce != WLM_SUM && p->reduce != WLM_MEAN) || !linear_form(p->message, 1, &slope, &offset)) return WLM_OK;
  check = wlmi_alloc_zero(1, sizeof *check);
  if (!check) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a column check");
  *check = (wlmi_column_check){.n = p->n, .type = p->dense_type, .seed = seed};
  WLM_TRY(wlmi_alloc_array(p->n, sizeof *check->expected, "column sums", (void **)&check->expected));
  WLM_TRY(wlmi_alloc_array(p->n, sizeof *check->sums, "column sums", (void **)&check->sums));
  WLM_TRY(expect(check, operands, row_tolerance));
  *out = check;
  check = NULL;
done:
  wlmi_column_check_destroy(check);
  return status;
}

void wlmi_column_check_destroy(wlmi_column_check *check) {
  if (!check) return;
  wlmi_free(check->expected);
  wlmi_free(check->sums);
  wlmi_free(check);
}

void wlmi_column_check_begin(wlmi_column_check *check) {
  memset(check->sums, 0, (size_t)check->n * sizeof *check->sums);
}

void wlmi_column_check_add(wlmi_column_check *check, int64_t first_row, int64_t rows, const void *c, int64_t ldc) {
  add_rows(check, (block){c, first_row, rows, ldc}, NULL, 1, check->sums);
}

wlm_status wlmi_column_check_finish(const wlmi_column_check *check, double leeway) {
  const double allowed = leeway * check->tolerance;
  double worst = 0;
  int64_t column = -1, wrong = 0;
  for (int64_t j = 0; j < check->n; j++) {
    if (!isfinite(check->expected[j])) continue; /* a sum with infinities cannot be checked */
    const double off = fabs(check->sums[j] - check->expected[j]);
    if (off <= allowed) continue;
    wrong++;
    if (column >= 0 && !(off > worst)) continue;
    worst = off;
    column = j;
  }
  if (!wrong) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH,
                   "the sum over all rows (with random signs) of column %lld differs from float64 by %.3g, where %.3g "
                   "is allowed; %lld of %lld columns are wrong",
                   (long long)column, worst, allowed, (long long)wrong, (long long)check->n);
}
