#include "support/attention_check.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/reference/attention.h"
#include "core/reference/reference.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/shapes.h"

enum { GUARD = 64 }; /* elements before and after a result that must not be written */

/* The arrays of a call. Results come with guards. */
enum {
  ROWPTR,
  COLIND,
  VALUES,
  ORDER,
  B,
  X,
  LEFT,
  RIGHT,
  LSE,
  DELTA,
  C,
  DVALUES,
  DRIGHT,
  DATT,
  DK,
  BIAS,
  Q,
  K,
  ATT,
  WORKSPACE,
  PREPARED,
  ARRAYS
};

typedef struct array {
  wlm_type type;
  int64_t count; /* without guards */
  int is_result;
  void *host, *device, *after, *first;
} array;

typedef struct operands {
  const char *shape;
  wlmi_csr_host a; /* op(A); values are the terms of edges, in its order */
  int64_t rowless; /* edges behind the last row, which take no part */
  int64_t *order;  /* of the gradient: where A has each edge */
  wlmi_spec spec;
  wlm_execute_args call;
  double *left, *right, *lse, *delta, *att;
  array arrays[ARRAYS];
} operands;

static int is_gradient(const operands *o) { return o->spec.problem.transpose; }
static int is_rows(const operands *o) { return o->spec.problem.operation == WLM_ATTENTION_ROWS; }
static int is_sum(const operands *o) { return wlmi_score_is_sum(o->spec.problem.score); }
static int is_dot(const operands *o) { return o->spec.problem.score == WLM_SCORE_DOT; }

/* Short binary fractions: their sums are exact, so that no rounding decides on which side of 0 a score lies. */
static double draw_value(test_random *random) {
  const double value = (double)(8 + test_draw(random, 17)) / 16;
  return test_draw(random, 2) ? value : -value;
}

static size_t bytes(const array *x) {
  return (size_t)(x->count + (x->is_result ? 2 * GUARD : 0)) * wlmi_type_size(x->type);
}

static wlm_status make_array(operands *o, int which, wlm_type type, int64_t count, int is_result) {
  array *x = &o->arrays[which];
  wlm_status status;
  *x = (array){.type = type, .count = count, .is_result = is_result};
  WLM_TRY(wlmi_alloc_array(1, bytes(x) + 1, "operand", &x->host));
  memset(x->host, 0xff, bytes(x));
  if (!is_result) goto done;
  WLM_TRY(wlmi_alloc_array(1, bytes(x) + 1, "operand", &x->after));
  WLM_TRY(wlmi_alloc_array(1, bytes(x) + 1, "operand", &x->first));
done:
  return status;
}

/* rows x ld with NaN where no edge points and behind n. */
static wlm_status dense(operands *o, test_random *random, int which, int64_t rows, int64_t stride,
                        const char *is_read) {
  wlm_status status = make_array(o, which, o->spec.problem.dense_type, rows * stride, 0);
  array *x = &o->arrays[which];
  for (int64_t i = 0; status == WLM_OK && i < x->count; i++)
    if (is_read[i / stride] && i % stride < o->spec.problem.n)
      wlmi_element_put(x->type, x->host, i, draw_value(random));
  return status;
}

/* q and k of a score, whose rows are those and the columns of A, and att. Some rows of q have a large element, so their
 * scores are large. */
static wlm_status make_sides(operands *o, test_random *random, int64_t rows, int64_t cols, int wide,
                             const char *is_read, const char *is_read_of_k) {
  const wlm_problem *p = &o->spec.problem;
  const wlm_type type = wlmi_accumulator_type(p->dense_type);
  wlm_status status = WLM_OK;
  if (!is_sum(o)) return WLM_OK;
  WLM_TRY(dense(o, random, Q, rows, o->call.ldt, is_read));
  for (int64_t row = 0; wide && row < rows; row++)
    if (is_read[row] && !test_draw(random, 5))
      wlmi_element_put(p->dense_type, o->arrays[Q].host, row * o->call.ldt + (int64_t)test_draw(random, (uint64_t)p->n),
                       test_draw(random, 2) ? 1e4 : -1e4);
  if (is_dot(o)) {
    WLM_TRY(dense(o, random, K, cols, o->call.ldt, is_read_of_k));
    goto done;
  }
  WLM_TRY(wlmi_alloc_array(p->n, sizeof *o->att, "att", (void **)&o->att));
  WLM_TRY(make_array(o, ATT, type, p->n, 0));
  for (int64_t j = 0; j < p->n; j++) {
    o->att[j] = draw_value(random);
    wlmi_element_put(type, o->arrays[ATT].host, j, o->att[j]);
  }
done:
  return status;
}

/* Terms of rows or columns: some far above and below the others, and some by about as much as scores may be above the
 * base of their row. */
static wlm_status draw_terms(operands *o, test_random *random, int which, int64_t rows, int wide, double **to) {
  const wlm_type type = wlmi_accumulator_type(o->spec.problem.dense_type);
  const int64_t heads = o->spec.problem.heads, count = rows * heads;
  const int64_t stride = (which == LEFT || which == RIGHT) && !is_sum(o) ? o->call.ldt : heads;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(count, sizeof **to, "terms", (void **)to));
  WLM_TRY(make_array(o, which, type, rows * stride, which == LSE && !is_gradient(o)));
  for (int64_t i = 0; i < count; i++) {
    (*to)[i] = draw_value(random);
    const double apart = test_draw(random, 2) ? 1e4 : (double)(4 + test_draw(random, 9));
    if (wide && !test_draw(random, 3)) (*to)[i] += test_draw(random, 2) ? apart : -apart;
    if (!o->arrays[which].is_result)
      wlmi_element_put(type, o->arrays[which].host, i / heads * stride + i % heads, (*to)[i]);
  }
done:
  return status;
}

static wlm_status make_pattern(operands *o, test_random *random) {
  const int wide[] = {o->spec.rowptr_type == WLM_I64, o->spec.colind_type == WLM_I64};
  const int64_t counts[] = {o->a.rows + 1, o->a.nnz + o->rowless};
  wlm_status status = WLM_OK;
  for (int which = ROWPTR; which <= COLIND; which++) {
    WLM_TRY(make_array(o, which, wide[which] ? WLM_F64 : WLM_F32, counts[which], 0));
    for (int64_t i = 0; i < counts[which]; i++) {
      const int64_t value = which == ROWPTR ? o->a.rowptr[i] : i < o->a.nnz ? o->a.colind[i] : 0;
      if (wide[which])
        ((int64_t *)o->arrays[which].host)[i] = value;
      else
        ((int32_t *)o->arrays[which].host)[i] = (int32_t)value;
    }
  }
  WLM_TRY(wlmi_alloc_array(o->a.nnz, sizeof *o->order, "order", (void **)&o->order));
  for (int64_t q = 0; q < o->a.nnz; q++) {
    const int64_t other = is_gradient(o) ? (int64_t)test_draw(random, (uint64_t)q + 1) : q;
    o->order[q] = o->order[other];
    o->order[other] = q;
  }
  WLM_TRY(make_array(o, ORDER, wide[0] ? WLM_F64 : WLM_F32, o->a.nnz, 0));
  for (int64_t q = 0; q < o->a.nnz; q++)
    if (wide[0])
      ((int64_t *)o->arrays[ORDER].host)[q] = o->order[q];
    else
      ((int32_t *)o->arrays[ORDER].host)[q] = (int32_t)o->order[q];
done:
  return status;
}

/* Masks some edges, and all of some rows. */
static wlm_status make_values(operands *o, test_random *random) {
  const int64_t heads = o->spec.problem.heads;
  wlm_status status = WLM_OK;
  if (!o->spec.has_values) return WLM_OK;
  WLM_TRY(wlmi_alloc_array(o->a.nnz * heads, sizeof(float), "values", (void **)&o->a.values));
  WLM_TRY(make_array(o, VALUES, o->spec.value_type, (o->a.nnz + o->rowless) * heads, 0));
  for (int64_t row = 0; row < o->a.rows; row++) {
    const int masked = !test_draw(random, 7);
    for (int64_t i = o->a.rowptr[row] * heads; i < o->a.rowptr[row + 1] * heads; i++) {
      o->a.values[i] = !is_rows(o) && (masked || !test_draw(random, 6)) ? -INFINITY : (float)draw_value(random);
      wlmi_element_put(o->spec.value_type, o->arrays[VALUES].host, o->order[i / heads] * heads + i % heads,
                       (double)o->a.values[i]);
    }
  }
done:
  return status;
}

/* The score of an edge of A^T and a head before it is used: row i of A, column k, and its place among the values. */
static double score_of(const operands *o, int64_t i, int64_t k, int64_t place) {
  const wlm_problem *p = &o->spec.problem;
  const int64_t head = place % p->heads, width = p->n / p->heads;
  const double edge = o->a.values ? (double)o->a.values[place] : 0;
  double sum = edge;
  if (p->score == WLM_SCORE_EDGE) return edge;
  if (p->score == WLM_SCORE_GAT) {
    const double z = o->left[i * p->heads + head] + o->right[k * p->heads + head] + edge;
    return z > 0 ? z : o->call.slope * z;
  }
  for (int64_t j = head * width; j < (head + 1) * width; j++) {
    if (is_dot(o)) {
      sum += o->call.scale * wlmi_element_get(p->dense_type, o->arrays[Q].host, i * o->call.ldt + j) *
             wlmi_element_get(p->dense_type, o->arrays[K].host, k * o->call.ldt + j);
      continue;
    }
    const double z = wlmi_element_get(p->dense_type, o->arrays[Q].host, i * o->call.ldt + j) +
                     wlmi_element_get(p->dense_type, o->arrays[B].host, k * o->call.ldb + j);
    sum += o->att[j] * (z > 0 ? z : o->call.slope * z);
  }
  return sum;
}

/* The gradient's lse is that of the edges of A, whatever rounding made of it. */
static void fill_lse(operands *o) {
  const wlm_problem *p = &o->spec.problem;
  const wlmi_csr_host *a = &o->a;
  array *x = &o->arrays[LSE];
  for (int64_t i = 0; i < x->count; i++) o->lse[i] = -INFINITY;
  for (int64_t row = 0; row < a->rows; row++)
    for (int64_t e = a->rowptr[row] * p->heads; e < a->rowptr[row + 1] * p->heads; e++) {
      const int64_t i = a->colind[e / p->heads] * p->heads + e % p->heads;
      const double s = score_of(o, a->colind[e / p->heads], row, e);
      const double most = fmax(o->lse[i], s);
      o->lse[i] = isinf(most) ? most : most + log(exp(o->lse[i] - most) + exp(s - most));
    }
  for (int64_t i = 0; i < x->count; i++) {
    wlmi_element_put(x->type, x->host, i, o->lse[i]);
    o->lse[i] = wlmi_element_get(x->type, x->host, i);
  }
}

static wlm_status mark_read(const operands *o, char **columns, char **rows) {
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(o->a.cols, 1, "columns", (void **)columns));
  WLM_TRY(wlmi_alloc_array(o->a.rows, 1, "rows", (void **)rows));
  memset(*columns, 0, (size_t)o->a.cols);
  for (int64_t p = 0; p < o->a.nnz; p++) (*columns)[o->a.colind[p]] = 1;
  for (int64_t row = 0; row < o->a.rows; row++) (*rows)[row] = o->a.rowptr[row + 1] > o->a.rowptr[row];
done:
  return status;
}

static wlm_status operands_make(const kernel_check *check, int64_t step, int shape, test_random *random, operands *o) {
  static const struct {
    double alpha, beta;
    int64_t more_b, more_c;
  } calls[] = {{1, 0, 0, 0}, {1.5, 0, 3, 0}, {-2, 0.5, 0, 5}, {1, 1, 8, 4}};
  uint64_t call = test_draw(random, sizeof calls / sizeof *calls);
  const int wide = (int)test_draw(random, 2);
  char *columns = NULL, *rows = NULL;
  wlm_status status;
  *o = (operands){.shape = test_shape_name(shape), .spec = *check->spec, .call = WLM_EXECUTE_ARGS_INIT};
  const wlm_problem *p = &o->spec.problem;
  const wlm_type sums = wlmi_accumulator_type(p->dense_type);
  if (!is_gradient(o) && !is_rows(o)) {
    o->call.alpha = calls[call].alpha;
    o->call.beta = calls[call].beta;
  }
  o->call.seed = 1 + test_draw(random, 1 << 30);
  o->call.dropout = p->dropout ? 0.375 : 0;
  o->call.ldt = (is_sum(o) ? p->n : p->heads) + (int64_t)test_draw(random, 3);
  o->call.slope = test_draw(random, 3) ? 0.25 : 1.5;
  o->call.scale = is_dot(o) ? 0.75 : 1;
  o->call.ldb = p->n + calls[call].more_b;
  o->call.ldc = p->n + calls[call].more_c;
  WLM_TRY(test_shape_make(shape, step, 577, random, &o->a));
  if (!is_gradient(o) && o->a.rows && o->a.cols && test_draw(random, 2))
    o->rowless = 1 + (int64_t)test_draw(random, 3 * (uint64_t)step);
  WLM_TRY(make_pattern(o, random));
  WLM_TRY(make_values(o, random));
  WLM_TRY(mark_read(o, &columns, &rows));
  const int64_t a_rows = is_gradient(o) ? o->a.cols : o->a.rows, a_cols = is_gradient(o) ? o->a.rows : o->a.cols;
  WLM_TRY(dense(o, random, B, a_cols, o->call.ldb, is_gradient(o) ? rows : columns));
  WLM_TRY(dense(o, random, X, a_rows, o->call.ldc, is_gradient(o) ? columns : rows));
  WLM_TRY(draw_terms(o, random, LEFT, a_rows, wide, &o->left));
  WLM_TRY(draw_terms(o, random, RIGHT, a_cols, 0, &o->right));
  WLM_TRY(draw_terms(o, random, LSE, a_rows, 0, &o->lse));
  WLM_TRY(draw_terms(o, random, DELTA, a_rows, 0, &o->delta));
  WLM_TRY(
      make_sides(o, random, a_rows, a_cols, wide, is_gradient(o) ? columns : rows, is_gradient(o) ? rows : columns));
  if (is_gradient(o)) fill_lse(o);
  WLM_TRY(make_array(o, C, p->dense_type, o->a.rows * (is_gradient(o) ? o->call.ldb : o->call.ldc), 1));
  for (int64_t i = 0; i < o->arrays[C].count && o->call.beta != 0; i++)
    if (i % o->call.ldc < p->n) wlmi_element_put(p->dense_type, o->arrays[C].host, GUARD + i, draw_value(random));
  WLM_TRY(make_array(o, DVALUES, sums, is_gradient(o) ? o->a.nnz * p->heads : 0, 1));
  WLM_TRY(make_array(o, DRIGHT, sums, is_gradient(o) ? o->a.rows * p->heads : 0, 1));
  WLM_TRY(make_array(o, DATT, sums, is_rows(o) ? o->a.rows * p->n : 0, 1));
  WLM_TRY(make_array(o, DK, p->dense_type, is_dot(o) && is_gradient(o) ? o->a.rows * p->n : 0, 1));
  WLM_TRY(make_array(o, BIAS, p->dense_type, p->n, 0));
  for (int64_t j = 0; j < p->n; j++) wlmi_element_put(p->dense_type, o->arrays[BIAS].host, j, draw_value(random));
done:
  wlmi_free(columns);
  wlmi_free(rows);
  return status;
}

static void operands_release(wlmi_device *device, operands *o) {
  for (int i = 0; i < ARRAYS; i++) {
    wlmi_free(o->arrays[i].host);
    wlmi_free(o->arrays[i].after);
    wlmi_free(o->arrays[i].first);
    if (o->arrays[i].device) device->ops->release(device, o->arrays[i].device);
  }
  wlmi_csr_host_release(&o->a);
  wlmi_free(o->order);
  wlmi_free(o->left);
  wlmi_free(o->right);
  wlmi_free(o->lse);
  wlmi_free(o->delta);
  wlmi_free(o->att);
}

/* ---- on the device -------------------------------------------------------------------------------- */

static void *on_device(const operands *o, int which) {
  const array *x = &o->arrays[which];
  return (char *)x->device + (x->is_result ? GUARD * wlmi_type_size(x->type) : 0);
}

static void *on_host(const operands *o, int which, void *from) {
  const array *x = &o->arrays[which];
  return (char *)from + (x->is_result ? GUARD * wlmi_type_size(x->type) : 0);
}

static wlm_status put(wlmi_device *device, array *x) {
  wlm_status status = WLM_OK;
  if (!x->host) return WLM_OK;
  if (!x->device) WLM_TRY(device->ops->allocate(device, bytes(x) + 1, &x->device));
  if (bytes(x)) WLM_TRY(device->ops->copy_in(device, x->device, x->host, bytes(x)));
done:
  return status;
}

static wlm_status put_poison(wlmi_device *device, size_t size, array *x) {
  if (!size) return WLM_OK;
  const wlm_status status = x->device ? WLM_OK : device->ops->allocate(device, size, &x->device);
  return status == WLM_OK ? device->ops->fill(device, x->device, 0xff, size) : status;
}

static wlm_status run(const kernel_check *check, const wlmi_program *program, void *const kernels[WLM_MAX_PASSES],
                      operands *o, int number) {
  wlmi_device *device = check->device;
  wlm_plan plan = {0};
  wlm_execute_args call = o->call;
  wlm_csr csr = WLM_CSR_INIT;
  wlm_status status = WLM_OK;
  for (int i = 0; i < WORKSPACE; i++) WLM_TRY(put(device, &o->arrays[i]));
  csr.rows = o->a.rows;
  csr.cols = o->a.cols;
  csr.nnz = o->a.nnz + o->rowless;
  csr.rowptr = o->arrays[ROWPTR].device;
  csr.colind = o->arrays[COLIND].device;
  csr.values = o->arrays[VALUES].device;
  csr.rowptr_type = o->spec.rowptr_type;
  csr.colind_type = o->spec.colind_type;
  csr.value_type = o->spec.value_type;
  WLM_TRY(bare_plan_fill(&plan, device, program, kernels, &csr, &o->spec));
  plan.bound.args.order = is_gradient(o) ? o->arrays[ORDER].device : NULL;
  WLM_TRY(put_poison(device, wlm_plan_workspace_size(&plan), &o->arrays[WORKSPACE]));
  WLM_TRY(put_poison(device, wlm_plan_prepared_size(&plan), &o->arrays[PREPARED]));
  if (check->before_run) check->before_run(check->user, number);
  if (wlm_plan_prepared_size(&plan)) WLM_TRY(wlm_plan_prepare(&plan, o->arrays[PREPARED].device, NULL));
  call.b = on_device(o, B);
  call.left = on_device(o, LEFT);
  call.right = on_device(o, RIGHT);
  if (!is_rows(o)) call.lse = on_device(o, LSE);
  call.q = o->arrays[Q].device;
  call.att = o->arrays[ATT].device;
  call.k = o->arrays[K].device;
  if (is_rows(o)) call.datt = on_device(o, DATT);
  call.bias = on_device(o, BIAS);
  call.workspace = o->arrays[WORKSPACE].device;
  if (is_gradient(o)) {
    call.x = on_device(o, X);
    call.db = on_device(o, C);
    call.delta = on_device(o, DELTA);
    call.dvalues = on_device(o, DVALUES);
    if (is_dot(o))
      call.dk = on_device(o, DK);
    else
      call.dright = on_device(o, DRIGHT);
  } else {
    call.c = on_device(o, C);
  }
  WLM_TRY(test_execute_args(&plan, call));
  WLM_TRY(device->ops->synchronize(device, NULL));
  for (int i = 0; i < WORKSPACE; i++)
    if (o->arrays[i].is_result && o->arrays[i].device)
      WLM_TRY(device->ops->copy_out(device, o->arrays[i].after, o->arrays[i].device, bytes(&o->arrays[i])));
done:
  return status;
}

/* ---- comparing ------------------------------------------------------------------------------------ */

static wlm_status compare(const wlmi_program *program, const operands *o, int which, const char *name, int64_t rows,
                          int64_t columns, int64_t stride, const double *expected, const double *scale) {
  const array *x = &o->arrays[which];
  const wlm_problem *p = &o->spec.problem;
  const wlm_type sums = wlmi_accumulator_type(p->dense_type);
  const size_t element = wlmi_type_size(x->type), guard = GUARD * element;
  int64_t longest = 0;
  for (int64_t row = 0; row < o->a.rows; row++)
    if (o->a.rowptr[row + 1] - o->a.rowptr[row] > longest) longest = o->a.rowptr[row + 1] - o->a.rowptr[row];
  const double allowed = (8 + 2 * sqrt((double)(longest + p->n))) * wlmi_element_unit(sums) +
                         (x->type == sums ? 0 : wlmi_element_unit(x->type));
  const char *before = x->host, *after = x->after;
  int outside = memcmp(before, after, guard) || memcmp(before + bytes(x) - guard, after + bytes(x) - guard, guard);
  for (int64_t i = 0; i < rows * stride; i++)
    if (i % stride >= columns)
      outside |= memcmp(before + guard + (size_t)i * element, after + guard + (size_t)i * element, element) != 0;
  if (outside) return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: writes outside of %s", program->variant, o->shape, name);
  const double worst = wlmi_reference_error(x->type, after + guard, stride, NULL, rows, columns, expected, scale);
  if (worst <= allowed) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s, alpha %g, beta %g: %s: max_rel_err %.3g, allowed %.3g", program->variant,
                   o->shape, o->call.alpha, o->call.beta, name, worst, allowed);
}

typedef struct results {
  double *c, *c_scale, *sums, *sums_scale, *edges, *edges_scale, *more, *more_scale; /* more: datt or dk */
} results;

static wlm_status results_make(const operands *o, results *r) {
  const wlm_problem *p = &o->spec.problem;
  wlm_execute_args call = o->call;
  wlm_status status;
  double **const all[] = {&r->c,     &r->c_scale,     &r->sums, &r->sums_scale,
                          &r->edges, &r->edges_scale, &r->more, &r->more_scale};
  const int64_t counts[] = {o->a.rows * p->n, o->a.rows * p->heads, o->a.nnz * p->heads,
                            is_rows(o) || (is_dot(o) && is_gradient(o)) ? o->a.rows * p->n : 0};
  for (int i = 0; i < 8; i++) WLM_TRY(wlmi_alloc_array(counts[i / 2], sizeof **all[i], "reference", (void **)all[i]));
  call.b = o->arrays[B].host;
  call.x = o->arrays[X].host;
  call.left = o->arrays[LEFT].host;
  call.right = o->arrays[RIGHT].host;
  call.lse = o->arrays[LSE].host;
  call.delta = o->arrays[DELTA].host;
  call.q = o->arrays[Q].host;
  call.k = o->arrays[K].host;
  call.att = o->arrays[ATT].host;
  call.bias = o->arrays[BIAS].host;
  call.c = on_host(o, C, o->arrays[C].host);
  wlmi_reference_result to[WLM_MAX_RESULTS] = {{r->c, r->c_scale, NULL}};
  const wlmi_reference_result sums = {r->sums, r->sums_scale, NULL}, more = {r->more, r->more_scale, NULL};
  const wlmi_attention_walk walk = {&o->a, p, &call, o->order};
  if (is_gradient(o)) {
    to[WLM_RESULT_OF_DVALUES] = (wlmi_reference_result){r->edges, r->edges_scale, NULL};
    to[is_dot(o) ? WLM_RESULT_OF_DK : WLM_RESULT_OF_DRIGHT] = is_dot(o) ? more : sums;
  } else {
    to[is_rows(o) ? WLM_RESULT_OF_DATT : WLM_RESULT_OF_LSE] = is_rows(o) ? more : sums;
  }
  status = wlmi_reference_attention(&walk, NULL, o->a.rows, o->a.rowptr, to);
done:
  return status;
}

/* From op(A)'s order to that of A. */
static wlm_status reorder(const operands *o, double *edges) {
  const int64_t heads = o->spec.problem.heads, count = o->a.nnz * heads;
  double *copy = NULL;
  const wlm_status status = wlmi_alloc_array(count, sizeof *copy, "reference", (void **)&copy);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < count; i++) copy[o->order[i / heads] * heads + i % heads] = edges[i];
  memcpy(edges, copy, (size_t)count * sizeof *copy);
  wlmi_free(copy);
  return WLM_OK;
}

static wlm_status check_shape(const kernel_check *check, const wlmi_program *program,
                              void *const kernels[WLM_MAX_PASSES], int64_t step, int shape, test_random *random) {
  operands o = {0};
  results r = {0};
  wlm_status status;
  WLM_TRY(operands_make(check, step, shape, random, &o));
  WLM_TRY(results_make(&o, &r));
  if (is_gradient(&o)) {
    WLM_TRY(reorder(&o, r.edges));
    WLM_TRY(reorder(&o, r.edges_scale));
  }
  const wlm_problem *p = &o.spec.problem;
  for (int number = 0; number < check->runs; number++) {
    WLM_TRY(run(check, program, kernels, &o, number));
    WLM_TRY(compare(program, &o, C, is_gradient(&o) ? "db" : "C", o.a.rows, p->n,
                    is_gradient(&o) ? o.call.ldb : o.call.ldc, r.c, r.c_scale));
    if (is_rows(&o))
      WLM_TRY(compare(program, &o, DATT, "datt", o.a.rows, p->n, p->n, r.more, r.more_scale));
    else if (is_gradient(&o) && is_dot(&o))
      WLM_TRY(compare(program, &o, DK, "dk", o.a.rows, p->n, p->n, r.more, r.more_scale));
    else
      WLM_TRY(compare(program, &o, is_gradient(&o) ? DRIGHT : LSE, is_gradient(&o) ? "dright" : "lse", o.a.rows,
                      p->heads, p->heads, r.sums, r.sums_scale));
    if (is_gradient(&o))
      WLM_TRY(compare(program, &o, DVALUES, "dvalues", o.a.nnz, p->heads, p->heads, r.edges, r.edges_scale));
    for (int i = 0; i < WORKSPACE; i++) {
      array *x = &o.arrays[i];
      if (!x->is_result) continue;
      if (!number) memcpy(x->first, x->after, bytes(x));
      if (memcmp(x->first, x->after, bytes(x)))
        WLM_TRY(wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: run %d gives other bits than the first", program->variant, o.shape,
                          number));
    }
  }
done:
  operands_release(check->device, &o);
  wlmi_free(r.c);
  wlmi_free(r.c_scale);
  wlmi_free(r.sums);
  wlmi_free(r.sums_scale);
  wlmi_free(r.edges);
  wlmi_free(r.edges_scale);
  wlmi_free(r.more);
  wlmi_free(r.more_scale);
  return status;
}

wlm_status attention_check_program(const kernel_check *check, const wlmi_program *program,
                                   void *const kernels[WLM_MAX_PASSES]) {
  const wlmi_pass *pass = wlmi_program_first_execute(program);
  const int64_t step = pass->units == WLM_UNITS_NNZ || pass->units == WLM_UNITS_ROWS_NNZ ? pass->units_per_block : 32;
  test_random random = {check->seed * 0x9E3779B97F4A7C15u | 1};
  wlm_status status = WLM_OK;
  for (int shape = 0; shape < test_shape_count() && status == WLM_OK; shape++)
    status = check_shape(check, program, kernels, step < 500 ? step : 500, shape, &random);
  return status;
}
