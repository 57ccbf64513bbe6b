/* Computes row by row, in blocks of columns that fit in registers and cache: each edge gives a block of messages, the
 * reduction adds them, and the epilogue finishes the block. The denominators of the error go through the same reduction
 * over absolute values. The code is meant to be obviously correct rather than fast. */
#include "core/reference/reference.h"

#include <math.h>

#include "core/problem/element.h"
#include "core/problem/operator.h"
#include "core/problem/sampling.h"
#include "core/problem/spec.h"
#include "core/reference/evaluate.h"

/* The problem's user-defined expressions, parsed. */
typedef struct expressions {
  wlmi_operator op;
  wlmi_expression activation;
  double weight; /* factor of an error's denominator: larger for operators that round more often than built-in ones */
} expressions;

/* A row of the product, in blocks of columns. */
typedef struct walk {
  const wlmi_csr_host *a;
  const wlm_problem *problem;
  const void *b;
  int64_t ldb;
} walk;

/* The row's edges and which of them are used: those of a sample, which takes `kept` edges. On the transpose of a
 * sampled matrix nothing is sampled again, and an edge that was sampled n times counts as n. */
typedef struct edges {
  wlmi_row_sample sample;
  int64_t start, kept;
} edges;

static int more_than_one(const wlmi_expression *e) {
  int roundings = wlmi_expression_roundings(e);
  return roundings > 1 ? roundings - 1 : 0;
}

/* The tolerance covers a product, one addition per edge and an epilogue. It grows by as much again for every eight
 * further operations, and for each operation of reduce beyond the first, because that is done for each edge. */
static double weight_of(const expressions *e) {
  const int once = more_than_one(&e->op.parts[WLMI_PART_MESSAGE]) +
                   wlmi_expression_roundings(&e->op.parts[WLMI_PART_FINISH]) +
                   wlmi_expression_roundings(&e->activation);
  return 1 + once / 8.0 + more_than_one(&e->op.parts[WLMI_PART_REDUCE]) +
         more_than_one(&e->op.parts[WLMI_PART_COMBINE]);
}

static void expressions_release(expressions *e) {
  wlmi_operator_release(&e->op);
  wlmi_expression_release(&e->activation);
}

static wlm_status expressions_make(const wlm_problem *p, expressions *e) {
  wlm_status status = WLM_OK;
  *e = (expressions){0};
  if (p->custom) WLM_TRY(wlmi_operator_parse(p->custom, &e->op));
  if (p->epilogue.activation) WLM_TRY(wlmi_activation_parse(p->epilogue.activation, &e->activation));
  e->weight = weight_of(e);
done:
  if (status != WLM_OK) expressions_release(e);
  return status;
}

static int64_t times_of(const wlmi_csr_host *a, int64_t edge) { return a->shares ? a->shares[edge].times : 1; }

static edges edges_of(const wlmi_csr_host *a, const wlm_problem *p, uint64_t seed, int64_t row) {
  const wlm_sampling none = {WLM_SAMPLE_NONE, WLM_NORM_NONE, 0};
  const int64_t start = a->rowptr[row], degree = a->rowptr[row + 1] - start;
  edges e = {wlmi_row_sample_of(a->shares ? &none : &p->sampling, seed, row, degree), start, 0};
  for (int64_t k = 0; k < e.sample.kept; k++) e.kept += times_of(a, start + k);
  return e;
}

static int64_t edge_at(const edges *e, int64_t k) { return e->start + wlmi_sample_position(&e->sample, k); }

/* The edge's values for the columns of a block. */
static void values_of(const walk *w, int64_t edge, wlmi_columns at, double *x) {
  const int64_t heads = w->problem->heads, head_width = w->problem->n / heads;
  int64_t place = edge * heads + at.first / head_width, left = head_width - at.first % head_width;
  for (int j = 0; j < at.count; j++) {
    x[j] = wlmi_csr_value(w->a, place);
    if (!--left) place++, left = head_width;
  }
}

/* The row of B that the edge names. */
static void dense_of(const walk *w, int64_t edge, wlmi_columns at, double *x) {
  wlmi_elements_read(w->problem->dense_type, w->b, w->a->colind[edge] * w->ldb + at.first, at.count, x);
}

/* One loop for each operator, so the operator is decoded once per edge. */
#define EACH(expression)            \
  for (int j = 0; j < width; j++) { \
    double x = a[j], y = b[j];      \
    (void)x, (void)y;               \
    message[j] = (expression);      \
  }                                 \
  break
static void make_messages(wlm_message op, const double *a, const double *b, int width, double *message) {
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

/* max and min propagate NaN from the accumulator and from the message. */
static double reduce_one(wlm_reduce reduce, double acc, double x) {
  switch (reduce) {
    case WLM_MAX: return isnan(acc) || acc >= x ? acc : x;
    case WLM_MIN: return isnan(acc) || acc <= x ? acc : x;
    case WLM_PROD: return acc * x;
    default: return acc + x;
  }
}

/* The factor of the reduced value before alpha: of mean, and of the norm of this row's sampling. */
static double factor_of(const walk *w, const edges *e) {
  const wlm_problem *p = w->problem;
  const int is_sampled = p->sampling.sample != WLM_SAMPLE_NONE && !w->a->shares; /* shares have their own factors */
  const wlm_sample_norm norm = is_sampled ? p->sampling.norm : WLM_NORM_NONE;
  double factor = 1.0;
  if (e->kept == 0) return factor;
  if (p->reduce == WLM_MEAN) factor /= (double)e->kept;
  if (norm == WLM_NORM_KEPT) factor /= (double)e->kept;
  if (norm == WLM_NORM_UNBIASED) factor *= (double)e->sample.degree / (double)e->kept;
  return factor;
}

/* The denominator of max and min is the largest absolute message; all others use their own reduction. */
static wlm_reduce scale_reduce(wlm_reduce reduce) { return reduce == WLM_MIN ? WLM_MAX : reduce; }

/* `positions` may be NULL. */
static void reduce_block(const walk *w, const edges *e, wlmi_columns at, wlmi_column_block *to, int64_t *positions) {
  const wlm_problem *p = w->problem;
  const wlmi_csr_host *a = w->a;
  double *const acc = to->value, *const size = to->size;
  double message[WLMI_BLOCK], edge[WLMI_BLOCK], dense[WLMI_BLOCK], best[WLMI_BLOCK] = {0};
  wlm_reduce size_reduce = scale_reduce(p->reduce);
  for (int j = 0; j < at.count; j++) acc[j] = identity_of(p->reduce);
  for (int j = 0; j < at.count; j++) size[j] = p->reduce == WLM_PROD ? 1.0 : 0.0;
  for (int j = 0; positions && j < at.count; j++) positions[j] = -1;
  for (int64_t k = 0; k < e->sample.kept; k++) {
    const int64_t here = edge_at(e, k), times = times_of(a, here);
    if (!times) continue;
    dense_of(w, here, at, dense);
    values_of(w, here, at, edge);
    make_messages(p->message, edge, dense, at.count, message);
    for (int j = 0; positions && j < at.count; j++) {
      const double x = wlmi_element_round(wlmi_accumulator_type(p->dense_type), message[j]);
      if (wlmi_wins(p->reduce == WLM_MAX, x, here, best[j], positions[j])) best[j] = x, positions[j] = here;
    }
    for (int j = 0; a->shares && j < at.count; j++) message[j] *= a->shares[here].factor;
    for (int64_t t = 0; t < times; t++) {
      for (int j = 0; j < at.count; j++) acc[j] = reduce_one(p->reduce, acc[j], message[j]);
      for (int j = 0; j < at.count; j++) size[j] = reduce_one(size_reduce, size[j], fabs(message[j]));
    }
  }
  if (e->kept == 0 && p->empty == WLM_EMPTY_ZERO && p->reduce != WLM_PROD)
    for (int j = 0; j < at.count; j++) acc[j] = 0.0;
}

/* The relative error that the accumulator may have in a row of this many edges (tuner/verify.c gives the reason). */
static double step_of(const wlm_problem *p, const edges *e) {
  return wlmi_element_unit(wlmi_accumulator_type(p->dense_type)) * (8 + 2 * sqrt((double)e->kept));
}

/* The same for a user-defined operator. If messages do not depend on B, many are equal, and then their errors add up.
 */
static void reduce_custom(const walk *w, const expressions *x, const edges *e, wlmi_columns at,
                          wlmi_column_block *value) {
  const wlm_problem *p = w->problem;
  const wlmi_expression *own_message = wlmi_operator_part(&x->op, WLMI_PART_MESSAGE);
  const wlmi_expression *finish = wlmi_operator_part(&x->op, WLMI_PART_FINISH);
  const int uses_b = own_message ? wlmi_expression_uses(own_message, WLMI_OPERAND_B) : p->message != WLM_COPY_A;
  const double step = step_of(p, e), factor = uses_b || e->kept < 2 ? 1.0 : sqrt((double)e->kept);
  const int width = at.count;
  wlmi_column_block edge, dense, message, degree;
  const wlmi_column_block *const operands[WLMI_OPERANDS] = {&edge, &dense, value, &message, &degree};
  wlmi_evaluate(&x->op.parts[WLMI_PART_INIT], operands, 0, width, step, value);
  for (int64_t k = 0; k < e->sample.kept; k++) {
    const int64_t here = edge_at(e, k), times = times_of(w->a, here);
    if (!times) continue;
    values_of(w, here, at, edge.value);
    for (int j = 0; j < width; j++) edge.size[j] = isinf(edge.value[j]) ? 0.0 : fabs(edge.value[j]);
    dense_of(w, here, at, dense.value);
    for (int j = 0; j < width; j++) dense.size[j] = fabs(dense.value[j]);
    if (own_message) {
      wlmi_evaluate(own_message, operands, 0, width, step, &message);
    } else {
      make_messages(p->message, edge.value, dense.value, width, message.value);
      for (int j = 0; j < width; j++) message.size[j] = fabs(message.value[j]);
    }
    for (int64_t t = 0; t < times; t++) wlmi_evaluate(&x->op.parts[WLMI_PART_REDUCE], operands, 0, width, step, value);
  }
  wlmi_block_fill(&degree, width, (double)e->kept);
  if (finish && e->kept) wlmi_evaluate(finish, operands, 0, width, step, value);
  for (int j = 0; j < width; j++) value->size[j] *= factor;
}

void wlmi_reference_finish(const wlm_problem *p, const wlm_execute_args *call, int64_t row, int64_t first,
                           int64_t count, double *value, double *size) {
  const int64_t ldc = call->ldc ? call->ldc : p->n;
  for (int64_t j = 0; j < count; j++) {
    const double old =
        call->beta != 0 ? call->beta * wlmi_element_get(p->dense_type, call->c, row * ldc + first + j) : 0;
    const double bias = p->epilogue.bias ? wlmi_element_get(p->dense_type, call->bias, first + j) : 0;
    value[j] = call->alpha * value[j] + old + bias;
    if (size) size[j] = fabs(call->alpha) * size[j] + fabs(old) + fabs(bias);
  }
}

static void compute_block(const walk *w, const wlm_execute_args *call, const expressions *x, const edges *e,
                          int64_t row, wlmi_columns at, wlmi_column_block *to, int64_t *positions) {
  const wlm_problem *p = w->problem;
  const wlmi_column_block *const operands[WLMI_OPERANDS] = {[WLMI_OPERAND_X] = to};
  const double factor = factor_of(w, e);
  if (p->custom)
    reduce_custom(w, x, e, at, to);
  else
    reduce_block(w, e, at, to, positions);
  for (int j = 0; j < at.count; j++) to->value[j] *= factor, to->size[j] *= factor;
  wlmi_reference_finish(p, call, row, at.first, at.count, to->value, to->size);
  if (p->epilogue.activation) wlmi_evaluate(&x->activation, operands, 0, at.count, step_of(p, e), to);
}

wlm_status wlmi_reference_rows(const wlmi_csr_host *a, const wlm_problem *problem, const wlm_execute_args *call,
                               const int64_t *row_ids, int64_t row_count, const wlmi_reference_result *result) {
  const wlm_problem *p = problem;
  const walk w = {a, p, call->b, call->ldb ? call->ldb : p->n};
  const int64_t blocks = (p->n + WLMI_BLOCK - 1) / WLMI_BLOCK;
  expressions x;
  WLM_CHECK(expressions_make(p, &x));
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t k = 0; k < row_count * blocks; k++) { /* a block is a task, as a row may have most of the edges */
    const int64_t i = k / blocks, first = k % blocks * WLMI_BLOCK, row = row_ids ? row_ids[i] : i;
    const edges e = edges_of(a, p, call->seed, row);
    const wlmi_columns at = {first, (int)(p->n - first < WLMI_BLOCK ? p->n - first : WLMI_BLOCK)};
    const int64_t to = i * p->n + first;
    wlmi_column_block block;
    compute_block(&w, call, &x, &e, row, at, &block, result->positions ? result->positions + to : NULL);
    for (int j = 0; j < at.count; j++) {
      if (result->value) result->value[to + j] = block.value[j];
      if (result->scale) result->scale[to + j] = x.weight * block.size[j];
    }
  }
  expressions_release(&x);
  return WLM_OK;
}

int wlmi_wins(int is_max, double x, int64_t position, double best, int64_t best_position) {
  if (best_position < 0) return 1;
  if (isnan(x) || isnan(best)) return isnan(x) && (!isnan(best) || position < best_position);
  return x == best ? position < best_position : is_max == (x > best);
}

/* Values that the type rounds to 0 must not count as errors, hence the least denominator. The same holds for the step
 * from the type's largest number to infinity, as far as rounding decides it. */
static double error_of(wlm_type type, double c, double reference, double scale) {
  const double least = wlmi_element_least(type);
  if (isnan(c) || isnan(reference)) return isnan(c) && isnan(reference) ? 0.0 : INFINITY;
  if (isinf(c)) return c == wlmi_element_round(type, reference * (1 + wlmi_element_unit(type))) ? 0.0 : INFINITY;
  if (isinf(reference)) return INFINITY;
  double difference = fabs(c - reference);
  if (isinf(scale)) return difference / fmax(1.0, fabs(reference)); /* max or min left out an infinite message */
  if (!(scale > 0.0)) return difference;
  return difference / (scale < least ? least : scale);
}

double wlmi_reference_error(wlm_type type, const void *c, int64_t ldc, const int64_t *row_ids, int64_t row_count,
                            int64_t n, const double *reference, const double *scale) {
  double worst = 0.0;
#pragma omp parallel for reduction(max : worst)
  for (int64_t i = 0; i < row_count; i++)
    for (int64_t j = 0; j < n; j++) {
      double got = wlmi_element_get(type, c, (row_ids ? row_ids[i] : i) * ldc + j);
      double error = error_of(type, got, reference[i * n + j], scale ? scale[i * n + j] : 0.0);
      if (error > worst) worst = error;
    }
  return worst;
}
