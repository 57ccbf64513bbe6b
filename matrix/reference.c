/* Row by row, in blocks of columns that fit in registers and cache: each edge makes a block of messages, the
 * reduction takes them in, and the epilogue finishes the block. The denominators of the error run through the
 * same reduction beside it, over absolute values. Speed matters little here; obvious correctness does. */
#include "matrix/reference.h"

#include <float.h>
#include <math.h>

#include "common/sampling.h"
#include "common/spec.h"

enum { BLOCK = 64 };

typedef struct edges {
  int64_t start, degree, kept, stride, shift; /* the row's edges and which of them are used */
} edges;

static wlm_status check_problem(const wlm_problem *p, const float *c_old) {
  const char *field = p->reduce == WLM_CUSTOM || p->custom ? "custom"
                      : p->dense_type != WLM_F32           ? "dense_type other than f32"
                      : p->transpose                       ? "transpose"
                      : p->heads != 1                      ? "heads other than 1"
                      : p->batch != 1                      ? "batch other than 1"
                      : p->bias                            ? "bias"
                                                           : NULL;
  if (field) return wlm_fail(WLM_ERR_UNSUPPORTED, "the float64 reference does not know wlm_problem.%s", field);
  if (!wlm_message_name(p->message) || !wlm_reduce_name(p->reduce) || !wlm_sample_name(p->sample) || p->n < 0)
    return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_problem: a field has a value that is not in its range");
  if (p->beta != 0.0 && !c_old) return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "beta is not 0 and C was not given");
  return WLM_OK;
}

static edges edges_of(const wlm_csr_host *a, const wlm_problem *p, int64_t row) {
  edges e = {a->rowptr[row], a->rowptr[row + 1] - a->rowptr[row], 0, 1, 0};
  e.kept = wlm_sample_kept(p->sample, e.degree, p->sample_width);
  if (e.kept < e.degree) {
    e.stride = wlm_sample_stride(p->sample, e.degree);
    e.shift = wlm_sample_shift(p->seed, row, e.degree);
  }
  return e;
}

static int64_t edge_at(const edges *e, wlm_sample sample, int64_t k) {
  return e->start + (e->kept < e->degree ? wlm_sample_position(sample, e->degree, k, e->stride, e->shift) : k);
}

/* One loop an operator, so that the choice is made once an edge. */
#define EACH(expression)                \
  for (int j = 0; j < width; j++) {     \
    double y = (double)b[j];            \
    (void)y, message[j] = (expression); \
  }                                     \
  break
static void make_messages(wlm_message op, double x, const float *b, int width, double *message) {
  switch (op) {
    case WLM_MUL: EACH(x * y);
    case WLM_COPY_B: EACH(y);
    case WLM_COPY_A: EACH(x);
    case WLM_ADD: EACH(x + y);
    case WLM_SUB: EACH(y - x);
    case WLM_RSUB: EACH(x - y);
    case WLM_DIV: EACH(y / x);
    case WLM_RDIV: EACH(x / y);
  }
}
#undef EACH

static double identity_of(wlm_reduce reduce) {
  switch (reduce) {
    case WLM_MAX: return -INFINITY;
    case WLM_MIN: return INFINITY;
    case WLM_PROD: return 1.0;
    default: return 0.0;
  }
}

/* max and min: a NaN in the accumulator stays, a NaN that comes is taken. */
static double reduce_one(wlm_reduce reduce, double acc, double x) {
  switch (reduce) {
    case WLM_MAX: return isnan(acc) || acc >= x ? acc : x;
    case WLM_MIN: return isnan(acc) || acc <= x ? acc : x;
    case WLM_PROD: return acc * x;
    default: return acc + x;
  }
}

/* What is done to the reduced value before alpha: mean, and the norms of sampling. */
static double factor_of(const wlm_problem *p, const edges *e) {
  double factor = 1.0;
  if (e->kept == 0) return factor;
  if (p->reduce == WLM_MEAN) factor /= (double)e->kept;
  if (p->sample != WLM_SAMPLE_NONE && p->sample_norm == WLM_NORM_KEPT) factor /= (double)e->kept;
  if (p->sample != WLM_SAMPLE_NONE && p->sample_norm == WLM_NORM_UNBIASED)
    factor *= (double)e->degree / (double)e->kept;
  return factor;
}

/* The denominators of max and min are the largest absolute message, those of all others the same reduction. */
static wlm_reduce scale_reduce(wlm_reduce reduce) { return reduce == WLM_MIN ? WLM_MAX : reduce; }

static void reduce_block(const wlm_csr_host *a, const wlm_problem *p, const edges *e, const float *b, int64_t ldb,
                         int width, double *acc, double *size) {
  double message[BLOCK];
  wlm_reduce size_reduce = scale_reduce(p->reduce);
  for (int j = 0; j < width; j++) acc[j] = identity_of(p->reduce);
  for (int j = 0; j < width; j++) size[j] = p->reduce == WLM_PROD ? 1.0 : 0.0;
  for (int64_t k = 0; k < e->kept; k++) {
    int64_t at = edge_at(e, p->sample, k);
    double x = a->values ? (double)a->values[at] : 1.0;
    make_messages(p->message, x, b + a->colind[at] * ldb, width, message);
    for (int j = 0; j < width; j++) acc[j] = reduce_one(p->reduce, acc[j], message[j]);
    for (int j = 0; j < width; j++) size[j] = reduce_one(size_reduce, size[j], fabs(message[j]));
  }
  if (e->kept == 0 && p->empty == WLM_EMPTY_ZERO && p->reduce != WLM_PROD)
    for (int j = 0; j < width; j++) acc[j] = 0.0;
}

wlm_status wlm_reference_rows(const wlm_csr_host *a, const wlm_problem *p, const float *b, const float *c_old,
                              const int64_t *row_ids, int64_t row_count, double *c, double *scale) {
  int64_t ldb = p->ldb ? p->ldb : p->n, ldc = p->ldc ? p->ldc : p->n;
  wlm_status status = check_problem(p, c_old);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < row_count; i++)
    if ((row_ids ? row_ids[i] : i) < 0 || (row_ids ? row_ids[i] : i) >= a->rows)
      return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "row %lld of a matrix of %lld rows",
                      (long long)(row_ids ? row_ids[i] : i), (long long)a->rows);
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < row_count; i++) {
    int64_t row = row_ids ? row_ids[i] : i;
    edges e = edges_of(a, p, row);
    double factor = factor_of(p, &e), acc[BLOCK], size[BLOCK];
    for (int64_t first = 0; first < p->n; first += BLOCK) {
      int width = (int)(p->n - first < BLOCK ? p->n - first : BLOCK);
      reduce_block(a, p, &e, b + first, ldb, width, acc, size);
      for (int j = 0; j < width; j++) {
        int64_t at = i * p->n + first + j;
        double old = p->beta != 0.0 ? p->beta * (double)c_old[row * ldc + first + j] : 0.0;
        c[at] = p->alpha * (factor * acc[j]);
        if (p->beta != 0.0) c[at] += old;
        if (scale) scale[at] = fabs(p->alpha) * (factor * size[j]) + fabs(old);
      }
    }
  }
  return WLM_OK;
}

/* What float cannot tell from 0 cannot count against a kernel: hence the least denominator. */
static double error_of(double c, double reference, double scale) {
  if (isnan(c) || isnan(reference)) return isnan(c) && isnan(reference) ? 0.0 : INFINITY;
  if (isinf(c)) return c == (double)(float)reference ? 0.0 : INFINITY;
  if (isinf(reference)) return INFINITY;
  double difference = fabs(c - reference);
  if (!(scale > 0.0) || isinf(scale)) return difference;
  return difference / (scale < (double)FLT_MIN ? (double)FLT_MIN : scale);
}

double wlm_reference_error(const float *c, int64_t ldc, const int64_t *row_ids, int64_t row_count, int64_t n,
                           const double *reference, const double *scale) {
  double worst = 0.0;
#pragma omp parallel for reduction(max : worst)
  for (int64_t i = 0; i < row_count; i++)
    for (int64_t j = 0; j < n; j++) {
      double got = (double)c[(row_ids ? row_ids[i] : i) * ldc + j];
      double error = error_of(got, reference[i * n + j], scale ? scale[i * n + j] : 0.0);
      if (error > worst) worst = error;
    }
  return worst;
}
