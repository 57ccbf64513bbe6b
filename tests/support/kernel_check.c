#include "support/kernel_check.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/csr/shares.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"
#include "core/reference/reference.h"
#include "runtime/dispatch/plan.h"
#include "support/arrays_check.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/own.h"
#include "support/position_check.h"
#include "support/shapes.h"

enum { GUARD = 64, NO_COLUMNS = -1 }; /* elements before and after C, which must stay unchanged */

typedef struct loaded {
  const kernel_check *check;
  const wlmi_program *program;
  void *kernels[WLMI_MAX_PASSES];
} loaded;

typedef struct operands {
  const char *shape;
  wlmi_csr_host a;
  int32_t *rowptr32, *a_rowptr32;
  int64_t *colind64;
  void *order;          /* of a transpose: the position of each value, in rowptr's type */
  wlmi_csr_host walked; /* of a transpose whose kernel walks A: A itself, with its values in `values` */
  int walks_a;          /* the program walks `walked` instead of op(A) */
  void *values;         /* of the matrix's type; NULL = no values */
  int64_t rowless;      /* edges behind the last row */
  wlmi_spec spec;
  wlm_execute_args call;
  /* Of the dense type. B and C begin at these elements; C has GUARD elements on both sides. */
  char *b, *c, *c_after, *bias;
  int64_t b_count, c_count, b_first, c_first;
  int arg_shift; /* the offset of the argmax indices, in elements */
} operands;

/* The operands on the device. */
typedef struct device_copy {
  wlm_csr csr;
  void *order, *a_rowptr;
  void *rowptr, *colind, *values, *b, *c, *bias, *workspace, *prepared;
  position_check positions; /* only if the problem has argmax indices */
} device_copy;

static size_t element_size(const operands *o) { return wlmi_type_size(o->spec.problem.dense_type); }
static char *at(const operands *o, char *elements, int64_t index) { return elements + (size_t)index * element_size(o); }

/* ---- operands ---------------------------------------------------------------------------------- */

/* Draws a value. Values are far from 0, so that quotients stay in range, and short binary fractions, so that most
 * long sums are exact and a missing edge shows. For prod they are positive and close together, all messages above 1
 * or all below, so that no partial product leaves the range of float. In f64 they have digits that float lacks. */
static void put_value(test_random *random, wlm_reduce reduce, int is_a, wlm_type type, void *to, int64_t index) {
  double value = (double)(8 + test_draw(random, 17)) / 16;
  if (type == WLM_F64) value += (double)test_draw(random, 16) * 0x1p-36;
  if (test_draw(random, 2)) value = -value;
  if (reduce == WLM_PROD)
    value = (double)(is_a ? test_draw_between(random, 0.7f, 0.8f) : test_draw_between(random, 1.45f, 1.55f));
  wlmi_element_put(type, to, index, value);
}

static int64_t step_of(const wlmi_program *program) {
  const wlmi_pass *pass = wlmi_program_first_execute(program);
  return pass->units == WLMI_UNITS_NNZ || pass->units == WLMI_UNITS_ROWS_NNZ ? pass->units_per_block : 32;
}

/* The length of the longest row: more than S, more than the stride of fastrand (577) if S is smaller, and long
 * enough that merge_path's carry pass, which adds 8 tiles of 128 items at a time, needs more than one step. */
static int64_t longest_of(const wlmi_spec *spec, int64_t step) {
  int64_t longest = 2 * step + step / 2 > 2200 ? 2 * step + step / 2 : 2200;
  if (spec->problem.sampling.sample != WLM_SAMPLE_NONE && longest <= spec->problem.sampling.width)
    longest = spec->problem.sampling.width + 70;
  return longest;
}

static wlm_status fill_b(operands *o, test_random *random, int special) {
  const wlm_problem *p = &o->spec.problem;
  o->b_count =
      o->b_first + (o->a.cols && p->n ? (o->a.cols - 1) * o->call.ldb + p->n : 0); /* no padding behind the last row */
  wlm_status status = wlmi_alloc_array(o->b_count, element_size(o), "B", (void **)&o->b);
  if (status != WLM_OK) return status;
  static const double strange[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
  /* A partial product may overflow in float but not in double, so prod gets NaN only. */
  const uint64_t kinds = special && p->reduce == WLM_PROD ? 1 : 3;
  for (int64_t i = 0; i < o->b_count; i++) {
    const int64_t k = i - o->b_first;
    int unused = k < 0 || test_column_is_unreferenced(k / o->call.ldb) || k % o->call.ldb >= p->n ||
                 (special && !test_draw(random, 40));
    if (unused)
      wlmi_element_put(p->dense_type, o->b, i, strange[test_draw(random, kinds)]);
    else
      put_value(random, p->reduce, 0, p->dense_type, o->b, i);
  }
  return WLM_OK;
}

/* Whether the element lies in C's rows x n. */
static int is_inside(const operands *o, int64_t index) {
  const wlm_problem *p = &o->spec.problem;
  const int64_t k = index - o->c_first;
  return k >= 0 && k < o->a.rows * o->call.ldc && k % o->call.ldc < p->n;
}

/* A NaN in every type, with bits that differ from the device's own fill pattern. */
static void poison(unsigned char *to, size_t size) {
  memset(to, 0xff, size);
  *to = 0xa5;
}

static wlm_status fill_c(operands *o, test_random *random) {
  const wlm_problem *p = &o->spec.problem;
  o->c_count = o->a.rows * o->call.ldc + 2 * GUARD;
  WLM_CHECK(wlmi_alloc_array(o->c_count, element_size(o), "C", (void **)&o->c));
  WLM_CHECK(wlmi_alloc_array(o->c_count, element_size(o), "C", (void **)&o->c_after));
  for (int64_t i = 0; i < o->c_count; i++)
    if (is_inside(o, i) && o->call.beta != 0)
      put_value(random, p->reduce, 0, p->dense_type, o->c, i);
    else
      poison((unsigned char *)at(o, o->c, i), element_size(o));
  return WLM_OK;
}

/* Fills the values for the device and for the reference. A NaN in one head's value affects only that head's columns. */
static wlm_status fill_values(operands *o, test_random *random, int special) {
  const wlm_type type = o->spec.value_type;
  wlmi_csr_host *a = &o->a;
  const int64_t heads = o->spec.problem.heads, count = a->nnz * heads;
  if (!o->spec.has_values) return WLM_OK;
  WLM_CHECK(wlmi_alloc_array(count, wlmi_type_size(type), "values", &o->values));
  for (int64_t i = 0; i < count; i++) put_value(random, o->spec.problem.reduce, 1, type, o->values, i);
  if (special && heads > 1)
    for (int64_t i = 0; i < count; i++)
      if (!test_draw(random, 40)) wlmi_element_put(type, o->values, i, (double)NAN);
  if (type == WLM_F64) {
    WLM_CHECK(wlmi_alloc_array(count, sizeof *a->wide, "values", (void **)&a->wide));
    wlmi_elements_read(type, o->values, 0, count, a->wide);
  } else {
    WLM_CHECK(wlmi_alloc_array(count, sizeof *a->values, "values", (void **)&a->values));
    for (int64_t i = 0; i < count; i++) a->values[i] = (float)wlmi_element_get(type, o->values, i);
  }
  return WLM_OK;
}

/* Makes the pattern of A from its transpose op(A), with unsorted columns. `order` gives the sequence in which the
 * edges of op(A) are inserted; on return order[q] is the position of edge q in A. */
static wlm_status make_walked(operands *o, int64_t *order) {
  const wlmi_csr_host *a = &o->a;
  wlmi_csr_host *walked = &o->walked;
  WLM_FREED int64_t *row_of = NULL, *next = NULL;
  WLM_CHECK(wlmi_alloc_array(a->nnz, sizeof *row_of, "rows", (void **)&row_of));
  WLM_CHECK(wlmi_alloc_array(a->cols + 1, sizeof *next, "rowptr", (void **)&next));
  WLM_CHECK(wlmi_alloc_array(a->cols + 1, sizeof *walked->rowptr, "rowptr", (void **)&walked->rowptr));
  WLM_CHECK(wlmi_alloc_array(a->nnz, sizeof *walked->colind, "colind", (void **)&walked->colind));
  walked->rows = a->cols;
  walked->cols = a->rows;
  walked->nnz = a->nnz;
  memset(walked->rowptr, 0, (size_t)(a->cols + 1) * sizeof *walked->rowptr);
  for (int64_t p = 0; p < a->nnz; p++) walked->rowptr[a->colind[p] + 1]++;
  for (int64_t row = 0; row < a->cols; row++) walked->rowptr[row + 1] += walked->rowptr[row];
  for (int64_t row = 0; row <= a->cols; row++) next[row] = walked->rowptr[row];
  for (int64_t row = 0; row < a->rows; row++)
    for (int64_t p = a->rowptr[row]; p < a->rowptr[row + 1]; p++) row_of[p] = row;
  for (int64_t i = 0; i < a->nnz; i++) walked->colind[next[a->colind[order[i]]]++] = (int32_t)row_of[order[i]];
  for (int64_t row = 0; row <= a->cols; row++) next[row] = walked->rowptr[row];
  for (int64_t i = 0; i < a->nnz; i++) row_of[order[i]] = next[a->colind[order[i]]]++;
  memcpy(order, row_of, (size_t)a->nnz * sizeof *order);
  return WLM_OK;
}

/* Gives half of the edges one column of op(A), which is a row of A. If A is sampled and large enough, another column
 * gets 2 * 577 edges, of which published fastrand takes a few repeatedly. */
static void make_hub(wlmi_csr_host *a, test_random *random, int sampled) {
  const int64_t repeating = 2 * WLMI_FASTRAND_STRIDE;
  for (int64_t p = 0; p < a->nnz; p++)
    if (test_draw(random, 2)) a->colind[p] = 0;
  if (!sampled || a->cols < 2 || a->nnz < repeating + repeating / 2) return;
  for (int64_t p = 0; p < a->nnz; p++)
    if (a->colind[p] == 1) a->colind[p] = 0;
  for (int64_t i = 0; i < repeating; i++) a->colind[a->nnz * i / repeating] = 1;
}

/* The share of each edge of op(A), from the sampled rows of A. Edge q is edge order[q] of A. */
static wlm_status make_shares(operands *o, const int64_t *order) {
  WLM_FREED wlmi_edge_share *shares = NULL;
  WLM_CHECK(wlmi_sample_shares(&o->walked, &o->spec.problem, o->call.seed, &shares));
  WLM_CHECK(wlmi_alloc_array(o->a.nnz, sizeof *o->a.shares, "shares", (void **)&o->a.shares));
  for (int64_t q = 0; q < o->a.nnz; q++) o->a.shares[q] = shares[order[q]];
  return WLM_OK;
}

/* For a transposed problem: puts the values into another order than the edges. The reference gets the values in the
 * order of the edges and computes an ordinary product. */
static wlm_status shuffle_values(operands *o, test_random *random) {
  const int64_t nnz = o->a.nnz;
  const int sampled = o->spec.problem.sampling.sample != WLM_SAMPLE_NONE;
  const int wide = o->spec.rowptr_type == WLM_I64;
  char *old = o->values, *shuffled = NULL;
  WLM_FREED int64_t *order = NULL;
  if (!o->spec.problem.transpose) return WLM_OK;
  o->spec.problem.transpose = 0;
  WLM_CHECK(wlmi_alloc_array(nnz, sizeof *order, "order", (void **)&order));
  for (int64_t q = 0; q < nnz; q++) {
    const int64_t other = (int64_t)test_draw(random, (uint64_t)q + 1);
    order[q] = order[other];
    order[other] = q;
  }
  if (o->walks_a || sampled) WLM_CHECK(make_walked(o, order));
  if (sampled) WLM_CHECK(make_shares(o, order));
  if (!o->walks_a) WLM_CHECK(wlmi_alloc_array(nnz, wlmi_index_size(o->spec.rowptr_type), "order", &o->order));
  for (int64_t q = 0; o->order && q < nnz; q++)
    if (wide)
      ((int64_t *)o->order)[q] = order[q];
    else
      ((int32_t *)o->order)[q] = (int32_t)order[q];
  if (!old || !nnz) return WLM_OK;
  const size_t each = wlmi_type_size(o->spec.value_type) * (size_t)o->spec.problem.heads;
  WLM_CHECK(wlmi_alloc_array(nnz, each, "values", (void **)&shuffled));
  for (int64_t q = 0; q < nnz; q++) memcpy(shuffled + (size_t)order[q] * each, old + (size_t)q * each, each);
  wlmi_free(old);
  o->values = shuffled;
  return WLM_OK;
}

static const wlmi_csr_host *seen_by_kernels(const operands *o) { return o->walks_a ? &o->walked : &o->a; }

static wlm_status copy_narrow(const int64_t *from, int64_t count, int32_t **to) {
  const wlm_status status = wlmi_alloc_array(count, sizeof **to, "rowptr", (void **)to);
  for (int64_t i = 0; status == WLM_OK && i < count; i++) (*to)[i] = (int32_t)from[i];
  return status;
}

static wlm_status operands_make(const loaded *l, int number, test_random *random, operands *o) {
  /* |alpha| >= 1, so that no sum that overflows in float becomes finite by alpha. */
  static const struct {
    double alpha, beta;
    int64_t more_b, more_c, first_b, first_c;
    int arg_shift;
  } calls[] = {{1, 0, 0, 0, 0, 0, 0}, {1.5, 0, 3, 0, 0, 0, 0}, {-2, 0.5, 0, 5, 0, 1, 0}, {1, 1, 8, 8, 0, 0, 0},
               {1, 0, 8, 0, 1, 0, 0}, {1.5, 0, 0, 3, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 1}};
  int shape = number == NO_COLUMNS ? 0 : number % test_shape_count();
  int64_t step = step_of(l->program);
  *o = (operands){.shape = number == NO_COLUMNS ? "N = 0" : test_shape_name(shape),
                  .spec = *l->check->spec,
                  .call = WLM_EXECUTE_ARGS_INIT};
  wlm_problem *p = &o->spec.problem;
  uint64_t call = test_draw(random, sizeof calls / sizeof *calls - !p->want_argmax);
  o->call.alpha = calls[call].alpha;
  o->call.beta = calls[call].beta;
  o->call.ldb = p->n + calls[call].more_b;
  o->call.ldc = p->n + calls[call].more_c;
  o->b_first = calls[call].first_b;
  o->c_first = GUARD + calls[call].first_c;
  o->arg_shift = calls[call].arg_shift;
  if (number == NO_COLUMNS) p->n = 0;
  o->call.seed = p->sampling.sample == WLM_SAMPLE_NONE || test_draw(random, 2) ? 0 : test_draw(random, 1 << 30) << 20;
  WLM_CHECK(test_shape_make(shape, step, longest_of(&o->spec, step), random, &o->a));
  o->walks_a = l->program->walks_a;
  const int sampled = p->transpose && p->sampling.sample != WLM_SAMPLE_NONE;
  if (o->walks_a || sampled) make_hub(&o->a, random, sampled);
  WLM_CHECK(fill_values(o, random, number >= test_shape_count()));
  WLM_CHECK(shuffle_values(o, random));
  const wlmi_csr_host *seen = seen_by_kernels(o);
  if (!o->walks_a && seen->rows && seen->cols && test_draw(random, 2))
    o->rowless = 1 + (int64_t)test_draw(random, 3 * (uint64_t)step);
  WLM_CHECK(copy_narrow(seen->rowptr, seen->rows + 1, &o->rowptr32));
  if (o->walked.rowptr) WLM_CHECK(copy_narrow(o->walked.rowptr, o->walked.rows + 1, &o->a_rowptr32));
  WLM_CHECK(wlmi_alloc_array(seen->nnz, sizeof *o->colind64, "colind", (void **)&o->colind64));
  for (int64_t i = 0; i < seen->nnz; i++) o->colind64[i] = seen->colind[i];
  WLM_CHECK(fill_b(o, random, number >= test_shape_count()));
  WLM_CHECK(fill_c(o, random));
  if (!p->epilogue.bias) return WLM_OK;
  WLM_CHECK(wlmi_alloc_array(p->n, element_size(o), "bias", (void **)&o->bias));
  for (int64_t j = 0; j < p->n; j++) put_value(random, p->reduce, 0, p->dense_type, o->bias, j);
  o->call.bias = o->bias;
  return WLM_OK;
}

static void operands_release(operands *o) {
  wlmi_csr_host_release(&o->a);
  wlmi_csr_host_release(&o->walked);
  wlmi_free(o->rowptr32);
  wlmi_free(o->a_rowptr32);
  wlmi_free(o->colind64);
  wlmi_free(o->order);
  wlmi_free(o->values);
  wlmi_free(o->b);
  wlmi_free(o->c);
  wlmi_free(o->c_after);
  wlmi_free(o->bias);
}

/* ---- on the device -------------------------------------------------------------------------------- */

/* With `more` bytes of this value behind it. */
static wlm_status put_longer(wlmi_device *device, const void *from, size_t size, size_t more, int byte, void **to) {
  wlm_status status = device->ops->allocate(device, size + more, to);
  if (status == WLM_OK) status = device->ops->copy_in(device, *to, from, size);
  return status == WLM_OK && more ? device->ops->fill(device, (char *)*to + size, byte, more) : status;
}

static wlm_status put(wlmi_device *device, const void *from, size_t size, void **to) {
  return put_longer(device, from, size, 0, 0, to);
}

/* Fills with poison; the first run allocates. */
static wlm_status put_poison(wlmi_device *device, size_t size, void **to) {
  if (!size) return WLM_OK;
  wlm_status status = *to ? WLM_OK : device->ops->allocate(device, size, to);
  return status == WLM_OK ? device->ops->fill(device, *to, 0xff, size) : status;
}

/* Lets the elements of a device's array count from the spec's base. */
static wlm_status count_from_base(wlmi_device *device, const operands *o, wlm_index type, int64_t count, void *array) {
  WLM_FREED void *host = NULL;
  if (!o->spec.base || !array) return WLM_OK;
  WLM_CHECK(wlmi_alloc_array(count, wlmi_index_size(type), "indices", &host));
  WLM_CHECK(device->ops->copy_out(device, host, array, (size_t)count * wlmi_index_size(type)));
  for (int64_t i = 0; i < count; i++) wlmi_index_put(type, host, i, wlmi_index_get(type, host, i) + o->spec.base);
  return device->ops->copy_in(device, array, host, (size_t)count * wlmi_index_size(type));
}

static size_t values_size(const operands *o) {
  return o->values ? (size_t)(o->a.nnz * o->spec.problem.heads) * wlmi_type_size(o->spec.value_type) : 0;
}

static wlm_status copy_make(wlmi_device *device, const operands *o, device_copy *d) {
  const wlmi_csr_host *a = seen_by_kernels(o);
  const int wide = o->spec.rowptr_type == WLM_I64, wide_colind = o->spec.colind_type == WLM_I64;
  *d = (device_copy){.csr = WLM_CSR_INIT};
  WLM_CHECK(put(device, wide ? (const void *)a->rowptr : o->rowptr32,
                (size_t)(a->rows + 1) * wlmi_index_size(o->spec.rowptr_type), &d->rowptr));
  const size_t offset = wlmi_index_size(o->spec.rowptr_type), index = wlmi_index_size(o->spec.colind_type);
  const size_t rowless = (size_t)o->rowless, value = wlmi_type_size(o->spec.value_type) * (size_t)o->spec.problem.heads;
  WLM_CHECK(put_longer(device, wide_colind ? (const void *)o->colind64 : a->colind, (size_t)a->nnz * index,
                       rowless * index, 0, &d->colind));
  if (o->order) WLM_CHECK(put_longer(device, o->order, (size_t)a->nnz * offset, rowless * offset, 0, &d->order));
  if (o->walked.rowptr)
    WLM_CHECK(put(device, wide ? (const void *)o->walked.rowptr : o->a_rowptr32,
                  (size_t)(o->walked.rows + 1) * wlmi_index_size(o->spec.rowptr_type), &d->a_rowptr));
  WLM_CHECK(count_from_base(device, o, o->spec.rowptr_type, a->rows + 1, d->rowptr));
  WLM_CHECK(count_from_base(device, o, o->spec.rowptr_type, o->walked.rows + 1, d->a_rowptr));
  WLM_CHECK(count_from_base(device, o, o->spec.colind_type, a->nnz + o->rowless, d->colind));
  if (o->values) WLM_CHECK(put_longer(device, o->values, values_size(o), rowless * value, 0xff, &d->values));
  WLM_CHECK(put(device, o->b, (size_t)o->b_count * element_size(o), &d->b));
  WLM_CHECK(put(device, o->c, (size_t)o->c_count * element_size(o), &d->c));
  if (o->bias) WLM_CHECK(put(device, o->bias, (size_t)o->spec.problem.n * element_size(o), &d->bias));
  d->csr.rows = a->rows;
  d->csr.cols = a->cols;
  d->csr.nnz = a->nnz + o->rowless;
  d->csr.rowptr = d->rowptr;
  d->csr.colind = d->colind;
  d->csr.values = d->values;
  d->csr.rowptr_type = o->spec.rowptr_type;
  d->csr.colind_type = o->spec.colind_type;
  d->csr.value_type = o->spec.value_type;
  d->csr.base = o->spec.base;
  return WLM_OK;
}

static void copy_release(wlmi_device *device, device_copy *d) {
  void *all[] = {d->order, d->a_rowptr, d->rowptr, d->colind,    d->values,
                 d->b,     d->c,        d->bias,   d->workspace, d->prepared};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i]) device->ops->release(device, all[i]);
  position_check_release(&d->positions);
}

/* Prepares while the values of A are NaN, because preparation must read the pattern only. Every other run prepares
 * twice, since a caller may repeat it. */
static wlm_status prepare(wlmi_device *device, const operands *o, const device_copy *d, wlm_plan *plan, int number) {
  const size_t values = values_size(o);
  if (!wlm_plan_prepared_size(plan)) return WLM_OK;
  if (values) WLM_CHECK(device->ops->fill(device, d->values, 0xff, values));
  for (int times = 0; times <= number % 2; times++) WLM_CHECK(wlm_plan_prepare(plan, d->prepared, NULL));
  WLM_CHECK(device->ops->synchronize(device, NULL));
  if (values) WLM_CHECK(device->ops->copy_in(device, d->values, o->values, values));
  return WLM_OK;
}

static wlm_status run(const loaded *l, int number, operands *o, device_copy *d) {
  wlmi_device *device = l->check->device;
  wlm_plan plan = {0};
  wlm_execute_args call = o->call;
  wlmi_spec spec = o->spec;
  const size_t c_size = (size_t)o->c_count * element_size(o);
  spec.problem.transpose = o->walks_a; /* C has a line for each column of the matrix that is bound */
  WLM_CHECK(device->ops->copy_in(device, d->c, o->c, c_size));
  WLM_CHECK(bare_plan_fill(&plan, device, l->program, l->kernels, &d->csr, &spec));
  plan.bound.args.order = d->order;
  plan.bound.args.a_rowptr = d->a_rowptr;
  call.bias = d->bias;
  WLM_CHECK(put_poison(device, wlm_plan_workspace_size(&plan), &d->workspace));
  WLM_CHECK(put_poison(device, wlm_plan_prepared_size(&plan), &d->prepared));
  if (l->check->before_run) l->check->before_run(l->check->user, number);
  WLM_CHECK(prepare(device, o, d, &plan, number));
  const void *b = l->program->uses_b ? at(o, d->b, o->b_first) : NULL;
  void *c = at(o, d->c, o->c_first), *argmax = NULL;
  if (o->spec.problem.want_argmax) WLM_CHECK(position_check_begin(&d->positions, &argmax));
  WLM_CHECK(test_execute_argmax_call(&plan, &call, b, c, argmax, d->workspace));
  WLM_CHECK(device->ops->synchronize(device, NULL));
  WLM_CHECK(device->ops->copy_out(device, o->c_after, d->c, c_size));
  return WLM_OK;
}

/* ---- comparing ------------------------------------------------------------------------------------ */

/* The error of a sum of `longest` terms grows with the root of `longest`; half types are rounded once more. For f64
 * the reference has errors as large. */
static double tolerance(const wlmi_csr_host *a, wlm_type type) {
  const wlm_type accumulator = wlmi_accumulator_type(type);
  const double sides = accumulator == WLM_F64 ? 2 : 1;
  int64_t longest = 0;
  for (int64_t row = 0; row < a->rows; row++)
    if (a->rowptr[row + 1] - a->rowptr[row] > longest) longest = a->rowptr[row + 1] - a->rowptr[row];
  return sides * (8 + 4 * sqrt((double)longest)) * 2 * wlmi_element_unit(accumulator) +
         (type == accumulator ? 0 : wlmi_element_unit(type));
}

static wlm_status check_guards(const loaded *l, const operands *o) {
  for (int64_t i = 0; i < o->c_count; i++)
    if (!is_inside(o, i) && memcmp(at(o, o->c, i), at(o, o->c_after, i), element_size(o)))
      return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: writes C at %lld, outside of its rows x n", l->program->variant,
                       o->shape, (long long)(i - o->c_first));
  return WLM_OK;
}

static wlm_status check_results(const loaded *l, const operands *o, const double *expected, const double *scale) {
  const wlm_problem *p = &o->spec.problem;
  const double allowed = tolerance(&o->a, p->dense_type);
  double worst = wlmi_reference_error(p->dense_type, at(o, o->c_after, o->c_first), o->call.ldc, NULL, o->a.rows, p->n,
                                      expected, scale);
  if (worst <= allowed) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s, alpha %g, beta %g, seed %llu: max_rel_err %.3g, allowed %.3g",
                   l->program->variant, o->shape, o->call.alpha, o->call.beta, (unsigned long long)o->call.seed, worst,
                   allowed);
}

static wlm_status check_positions(const loaded *l, const operands *o, const device_copy *d) {
  if (!o->spec.problem.want_argmax) return WLM_OK;
  wlm_status status = position_check_end(&d->positions);
  return status == WLM_OK ? status : wlmi_fail_in(status, "%s, %s", l->program->variant, o->shape);
}

/* Executes all runs on one set of operands. */
static wlm_status check_runs(const loaded *l, operands *o, device_copy *d) {
  const size_t count = (size_t)(o->a.rows * o->spec.problem.n), c_size = (size_t)o->c_count * element_size(o);
  WLM_FREED double *expected = NULL, *scale = NULL;
  WLM_FREED char *first = NULL;
  WLM_CHECK(wlmi_alloc_array((int64_t)count, sizeof *expected, "reference", (void **)&expected));
  WLM_CHECK(wlmi_alloc_array((int64_t)count, sizeof *scale, "reference", (void **)&scale));
  WLM_CHECK(wlmi_alloc_array(o->c_count, element_size(o), "C", (void **)&first));
  wlm_execute_args call = o->call;
  call.b = at(o, o->b, o->b_first);
  call.c = at(o, o->c, o->c_first);
  WLM_CHECK(wlmi_reference_rows(&o->a, &o->spec.problem, &call, NULL, o->a.rows,
                                &(wlmi_reference_result){expected, scale, NULL}));
  if (o->spec.problem.want_argmax)
    WLM_CHECK(position_check_make(l->check->device, &o->a, &o->spec.problem, &call, o->order, o->spec.rowptr_type,
                                  o->arg_shift, &d->positions));
  for (int number = 0; number < l->check->runs; number++) {
    WLM_CHECK(run(l, number, o, d));
    WLM_CHECK(check_guards(l, o));
    WLM_CHECK(check_results(l, o, expected, scale));
    WLM_CHECK(check_positions(l, o, d));
    if (number == 0) memcpy(first, o->c_after, c_size);
    if (l->program->deterministic && memcmp(first, o->c_after, c_size))
      WLM_CHECK(wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: run %d gives other bits than the first", l->program->variant,
                          o->shape, number));
  }
  return WLM_OK;
}

static wlm_status check_one(const loaded *l, int number, test_random *random) {
  wlm_status status = WLM_OK;
  operands o = {0};
  device_copy d = {0};
  WLM_TRY(operands_make(l, number, random, &o));
  WLM_TRY(copy_make(l->check->device, &o, &d));
  WLM_TRY(check_runs(l, &o, &d));
done:
  copy_release(l->check->device, &d);
  operands_release(&o);
  return status;
}

wlm_status kernel_check_program(const kernel_check *check, const wlmi_program *program) {
  wlm_status status = WLM_OK;
  loaded l = {.check = check, .program = program};
  wlmi_device *device = check->device;
  wlmi_module *module = NULL;
  test_random random = {check->seed * 0x9E3779B97F4A7C15u | 1};
  void *image = NULL;
  size_t size;
  WLM_TRY(device->ops->compile(device, program, &image, &size));
  WLM_TRY(device->ops->load(device, program, image, size, l.kernels, &module));
  if (check->spec->problem.operation != WLM_SPMM) {
    status = arrays_check_program(check, program, l.kernels);
    goto done;
  }
  /* Every shape, then two of them again with NaN and Inf in rows of B that are read. */
  for (int number = NO_COLUMNS; number < test_shape_count() + 2; number++) WLM_TRY(check_one(&l, number, &random));
done:
  if (module) device->ops->unload(device, module);
  wlmi_free(image);
  return status;
}
