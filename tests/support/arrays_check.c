#include "support/arrays_check.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/csr/shares.h"
#include "core/problem/element.h"
#include "core/reference/attention.h"
#include "core/reference/gradient.h"
#include "runtime/dispatch/plan.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/own.h"
#include "support/shapes.h"

enum { GUARD = 64 }; /* elements before and after an output that must not be written */

/* The arrays that every call has; those of the operation's table follow. */
enum { ROWPTR, COLIND, VALUES, ORDER, WORKSPACE, PREPARED, OF_TABLE, ARRAYS = OF_TABLE + WLMI_MAX_ARRAYS };

typedef struct array {
  const wlmi_array *row; /* of the table; NULL = of the matrix */
  wlm_type type;         /* of numbers */
  size_t size;           /* of an element */
  int64_t lines, ld;
  char *host, *after, *first; /* before a run, after it, and after the first one */
  void *device;
} array;

typedef struct operands {
  const char *shape;
  wlmi_csr_host a; /* op(A); values are in its order */
  int64_t rowless; /* edges behind the last row, which take no part */
  int64_t *order;  /* where A has each edge */
  wlmi_spec spec;
  wlm_execute_args call, host; /* host: with arrays of the host */
  wlm_attention_operands attention, host_attention;
  wlmi_arrays table;
  array arrays[ARRAYS];
  wlmi_reference_result results[WLM_MAX_RESULTS];
} operands;

static int is_sddmm(const operands *o) { return o->spec.problem.operation == WLM_SDDMM; }
static int is_rows(const operands *o) { return o->spec.problem.operation == WLM_ATTENTION_ROWS; }
static int is_backward(const operands *o) { return is_rows(o) || o->spec.problem.transpose; }
static int is_gradient(const operands *o) { return o->spec.problem.transpose; }
static int is_output(const array *x) { return x->row && x->row->is_output; }
static int64_t a_rows(const operands *o) { return is_gradient(o) ? o->a.cols : o->a.rows; }
static int64_t a_cols(const operands *o) { return is_gradient(o) ? o->a.rows : o->a.cols; }

static size_t guard(const array *x) { return is_output(x) ? GUARD * x->size : 0; }
static size_t bytes(const array *x) { return (size_t)(x->lines * x->ld) * x->size + 2 * guard(x); }
static char *at(const array *x, char *memory) { return memory ? memory + guard(x) : NULL; }

/* Short binary fractions: their sums are exact, so that no rounding decides on which side of 0 a score lies. */
static double draw_value(test_random *random) {
  const double value = (double)(8 + test_draw(random, 17)) / 16;
  return test_draw(random, 2) ? value : -value;
}

static wlm_status make_array(operands *o, int which, size_t size, int64_t lines, int64_t ld) {
  array *x = &o->arrays[which];
  wlm_status status;
  x->size = size;
  x->lines = lines;
  x->ld = ld;
  WLM_TRY(wlmi_alloc_array(1, bytes(x) + 1, "operand", (void **)&x->host));
  memset(x->host, 0xff, bytes(x));
  if (!is_output(x)) goto done;
  WLM_TRY(wlmi_alloc_array(1, bytes(x) + 1, "operand", (void **)&x->after));
  WLM_TRY(wlmi_alloc_array(1, bytes(x) + 1, "operand", (void **)&x->first));
done:
  return status;
}

/* ---- the matrix ------------------------------------------------------------------------------------------- */

static wlm_status make_index(operands *o, int which, wlm_index type, int64_t count) {
  return make_array(o, which, wlmi_index_size(type), count, 1);
}

static void put_index(array *x, int64_t i, int64_t value) {
  if (x->size == sizeof(int64_t))
    ((int64_t *)(void *)x->host)[i] = value;
  else
    ((int32_t *)(void *)x->host)[i] = (int32_t)value;
}

static wlm_status make_pattern(operands *o, test_random *random) {
  const int64_t edges = o->a.nnz + o->rowless;
  wlm_status status;
  WLM_TRY(make_index(o, ROWPTR, o->spec.rowptr_type, o->a.rows + 1));
  WLM_TRY(make_index(o, COLIND, o->spec.colind_type, edges));
  WLM_TRY(make_index(o, ORDER, o->spec.rowptr_type, o->a.nnz));
  WLM_TRY(wlmi_alloc_array(o->a.nnz, sizeof *o->order, "order", (void **)&o->order));
  for (int64_t q = 0; q < o->a.nnz; q++) {
    const int64_t other = is_gradient(o) ? (int64_t)test_draw(random, (uint64_t)q + 1) : q;
    o->order[q] = o->order[other];
    o->order[other] = q;
  }
  for (int64_t i = 0; i <= o->a.rows; i++) put_index(&o->arrays[ROWPTR], i, o->a.rowptr[i] + o->spec.base);
  for (int64_t p = 0; p < edges; p++)
    put_index(&o->arrays[COLIND], p, (p < o->a.nnz ? o->a.colind[p] : 0) + o->spec.base);
  for (int64_t q = 0; q < o->a.nnz; q++) put_index(&o->arrays[ORDER], q, o->order[q]);
done:
  return status;
}

/* Of attention, masks some edges, and all of some rows. */
static wlm_status make_values(operands *o, test_random *random) {
  const int64_t heads = o->spec.problem.heads;
  const wlm_type type = o->spec.value_type;
  array *x = &o->arrays[VALUES];
  wlm_status status = WLM_OK;
  if (!o->spec.has_values) return WLM_OK;
  WLM_TRY(wlmi_alloc_array(o->a.nnz * heads, sizeof(float), "values", (void **)&o->a.values));
  WLM_TRY(make_array(o, VALUES, wlmi_type_size(type), o->a.nnz + o->rowless, heads));
  for (int64_t i = o->a.nnz * heads; i < x->lines * heads; i++) wlmi_element_put(type, x->host, i, draw_value(random));
  for (int64_t row = 0; row < o->a.rows; row++) {
    const int masks = !is_sddmm(o), masked = masks && !test_draw(random, 7);
    for (int64_t i = o->a.rowptr[row] * heads; i < o->a.rowptr[row + 1] * heads; i++) {
      o->a.values[i] = masked || (masks && !test_draw(random, 6)) ? -INFINITY : (float)draw_value(random);
      wlmi_element_put(type, x->host, o->order[i / heads] * heads + i % heads, (double)o->a.values[i]);
    }
  }
done:
  return status;
}

/* ---- the arrays of the table ------------------------------------------------------------------------------ */

/* For each row and column of op(A), whether the problem uses an edge of it. */
typedef struct used {
  char *rows, *cols;
} used;

static wlm_status mark_used(const operands *o, used *u) {
  wlmi_edge_share *shares = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(o->a.rows, 1, "rows", (void **)&u->rows));
  WLM_TRY(wlmi_alloc_array(o->a.cols, 1, "columns", (void **)&u->cols));
  if (is_sddmm(o)) WLM_TRY(wlmi_sample_shares(&o->a, &o->spec.problem, o->call.seed, &shares));
  memset(u->cols, 0, (size_t)o->a.cols);
  for (int64_t row = 0; row < o->a.rows; row++) u->rows[row] = o->a.rowptr[row + 1] > o->a.rowptr[row];
  for (int64_t p = 0; p < o->a.nnz; p++)
    if (!shares || shares[p].times) u->cols[o->a.colind[p]] = 1;
done:
  wlmi_free(shares);
  return status;
}

/* Arrays with n elements in a line hold NaN and infinities where they must not be read. */
static int is_read(const operands *o, const wlmi_array *row, int64_t line, const used *u) {
  const int of_row = (row->place == WLM_PLACE_ROW) != is_gradient(o);
  if (row->place == WLM_PLACE_ALL || row->width != WLM_WIDTH_N) return 1;
  return of_row ? u->rows[line] : u->cols[line];
}

static void fill(const operands *o, test_random *random, const array *x, const used *u) {
  static const double strange[] = {NAN, INFINITY, -INFINITY};
  for (int64_t i = 0; i < x->lines * x->ld; i++) {
    const int read = i % x->ld < x->row->columns && is_read(o, x->row, i / x->ld, u);
    wlmi_element_put(x->type, x->host, i, read ? draw_value(random) : strange[test_draw(random, 3)]);
  }
}

/* Moves some terms of rows far above and below the others, and some by about as much as scores may be above the base of
 * their row. */
static void widen(test_random *random, const array *x) {
  const int is_left = !strcmp(x->row->name, "left");
  for (int64_t line = 0; line < x->lines && (is_left || !strcmp(x->row->name, "q")); line++) {
    const int64_t i = line * x->ld + (int64_t)test_draw(random, (uint64_t)x->row->columns);
    const double kept = wlmi_element_get(x->type, x->host, i);
    const double apart = !is_left || test_draw(random, 2) ? 1e4 : (double)(4 + test_draw(random, 9));
    if (isfinite(kept) && !test_draw(random, is_left ? 3 : 5))
      wlmi_element_put(x->type, x->host, i, kept + (test_draw(random, 2) ? apart : -apart));
  }
}

/* The old result, which the call reads. */
static void fill_old(const operands *o, test_random *random, const array *x) {
  for (int64_t i = 0; i < x->lines * x->ld && o->call.beta != 0 && !x->row->result; i++)
    if (i % x->ld < x->row->columns) wlmi_element_put(x->type, at(x, x->host), i, draw_value(random));
}

/* The struct of a call that has an array. */
static char *struct_of(const wlmi_array *row, wlm_execute_args *call, wlm_attention_operands *attention) {
  return row->in == WLMI_IN_ATTENTION ? (char *)attention : (char *)call;
}

static wlm_status make_one(operands *o, test_random *random, int i, const used *u, int wide) {
  const wlmi_array *row = &o->table.list[i];
  array *x = &o->arrays[OF_TABLE + i];
  int64_t ld = 0;
  wlm_status status;
  if (row->need == WLMI_NEED_REFUSED) return WLM_OK;
  x->row = row;
  x->type = wlmi_array_type(row, &o->spec.problem);
  if (row->ld_name) memcpy(&ld, struct_of(row, &o->call, &o->attention) + row->ld_from, sizeof ld);
  WLM_TRY(make_array(o, OF_TABLE + i, row->size, wlmi_array_lines(row, a_rows(o), a_cols(o), o->a.nnz + o->rowless),
                     ld ? ld : row->columns));
  if (row->is_output)
    fill_old(o, random, x);
  else
    fill(o, random, x, u);
  if (wide && !row->is_output) widen(random, x);
  const char *const memory = at(x, x->host);
  memcpy(struct_of(row, &o->host, &o->host_attention) + row->from, &memory, sizeof memory);
done:
  return status;
}

/* The edges of A from those of A^T. */
static wlm_status transpose(const operands *o, wlmi_csr_host *a) {
  const int64_t heads = o->spec.problem.heads;
  int64_t *next = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(a->rows + 1, sizeof *next, "rows", (void **)&next));
  WLM_TRY(wlmi_alloc_array(a->rows + 1, sizeof *a->rowptr, "rowptr", (void **)&a->rowptr));
  WLM_TRY(wlmi_alloc_array(a->nnz, sizeof *a->colind, "colind", (void **)&a->colind));
  if (o->a.values) WLM_TRY(wlmi_alloc_array(a->nnz * heads, sizeof *a->values, "values", (void **)&a->values));
  memset(a->rowptr, 0, (size_t)(a->rows + 1) * sizeof *a->rowptr);
  for (int64_t e = 0; e < a->nnz; e++) a->rowptr[o->a.colind[e] + 1]++;
  for (int64_t row = 0; row < a->rows; row++) a->rowptr[row + 1] += a->rowptr[row];
  memcpy(next, a->rowptr, (size_t)(a->rows + 1) * sizeof *next);
  for (int64_t k = 0; k < o->a.rows; k++)
    for (int64_t e = o->a.rowptr[k]; e < o->a.rowptr[k + 1]; e++) {
      const int64_t to = next[o->a.colind[e]]++;
      a->colind[to] = (int32_t)k;
      if (a->values) memcpy(a->values + to * heads, o->a.values + e * heads, (size_t)heads * sizeof *a->values);
    }
done:
  wlmi_free(next);
  return status;
}

/* The gradient's largest scores and scales are those of the edges of A: what the reference gives for A. */
static wlm_status fill_softmax(operands *o) {
  const wlm_problem *p = &o->spec.problem;
  wlm_problem forward = *p;
  wlmi_csr_host made = {.rows = o->a.cols, .cols = o->a.rows, .nnz = o->a.nnz};
  const wlmi_csr_host *const a = is_rows(o) ? &o->a : &made;
  wlmi_reference_result results[WLM_MAX_RESULTS] = {{0}};
  const wlmi_attention_walk walk = {a, &forward, &o->host, NULL};
  const wlm_type sums = wlmi_accumulator_type(p->dense_type);
  wlm_status status;
  forward.operation = WLM_ATTENTION;
  forward.transpose = forward.dropout = 0;
  if (!is_rows(o)) WLM_TRY(transpose(o, &made));
  WLM_TRY(wlmi_alloc_array(a->rows * p->n, sizeof(double), "C", (void **)&results[0].value));
  WLM_TRY(wlmi_alloc_array(2 * a->rows * p->heads, sizeof(double), "softmax",
                           (void **)&results[WLMI_RESULT_OF_SOFTMAX].value));
  WLM_TRY(wlmi_reference_attention(&walk, NULL, a->rows, NULL, results));
  for (int64_t i = 0; i < 2 * a->rows * p->heads; i++)
    wlmi_element_put(sums, (void *)(uintptr_t)o->host_attention.softmax, i, results[WLMI_RESULT_OF_SOFTMAX].value[i]);
done:
  wlmi_csr_host_release(&made);
  wlmi_free(results[0].value);
  wlmi_free(results[WLMI_RESULT_OF_SOFTMAX].value);
  return status;
}

static wlm_status operands_make(const kernel_check *check, int64_t step, int shape, test_random *random, operands *o) {
  static const struct {
    double alpha, beta;
    int64_t more_b, more_c;
  } calls[] = {{1, 0, 0, 0}, {1.5, 0, 3, 0}, {-2, 0.5, 0, 5}, {1, 1, 8, 4}};
  const uint64_t call = test_draw(random, sizeof calls / sizeof *calls);
  const int wide = (int)test_draw(random, 2);
  used u = {0};
  wlm_status status;
  *o = (operands){.shape = test_shape_name(shape),
                  .spec = *check->spec,
                  .call = WLM_EXECUTE_ARGS_INIT,
                  .attention = WLM_ATTENTION_OPERANDS_INIT};
  const wlm_problem *p = &o->spec.problem;
  /* published fastrand then takes edges of the long row repeatedly */
  const int sampled = p->sampling.sample != WLM_SAMPLE_NONE, is_dot = p->score == WLM_SCORE_DOT;
  WLM_TRY(wlmi_arrays_make(&o->spec, &o->table));
  if (!o->table.unscaled) o->call.alpha = calls[call].alpha, o->call.beta = calls[call].beta;
  o->call.ldb = p->n + calls[call].more_b;
  o->call.ldc = p->n + calls[call].more_c;
  o->attention.ldt = (wlmi_score_is_sum(p->score) ? p->n : p->heads) + (int64_t)test_draw(random, 3);
  if (!sampled || test_draw(random, 2)) o->call.seed = 1 + test_draw(random, 1 << 30);
  o->attention.dropout = p->dropout ? 0.375 : 0;
  o->attention.slope = test_draw(random, 3) ? 0.25 : 1.5;
  o->attention.scale = is_dot ? 0.75 : 1;
  WLM_TRY(test_shape_make(shape, step, sampled ? 5 * 577 : 577, random, &o->a));
  if (!is_gradient(o) && o->a.rows && o->a.cols && test_draw(random, 2))
    o->rowless = 1 + (int64_t)test_draw(random, 3 * (uint64_t)step);
  WLM_TRY(make_pattern(o, random));
  WLM_TRY(make_values(o, random));
  WLM_TRY(mark_used(o, &u));
  o->host = o->call;
  o->host_attention = o->attention;
  o->host.attention = &o->host_attention;
  for (int i = 0; i < o->table.count; i++) WLM_TRY(make_one(o, random, i, &u, wide));
  if (is_backward(o)) status = fill_softmax(o);
done:
  wlmi_free(u.rows);
  wlmi_free(u.cols);
  return status;
}

static void operands_release(wlmi_device *device, operands *o) {
  for (array *x = o->arrays; x < o->arrays + ARRAYS; x++) {
    wlmi_free(x->host);
    wlmi_free(x->after);
    wlmi_free(x->first);
    if (x->device) device->ops->release(device, x->device);
  }
  for (int r = 0; r < WLM_MAX_RESULTS; r++) {
    wlmi_free(o->results[r].value);
    wlmi_free(o->results[r].scale);
  }
  wlmi_csr_host_release(&o->a);
  wlmi_free(o->order);
}

/* ---- the reference ---------------------------------------------------------------------------------------- */

/* From op(A)'s order to that of A. */
static wlm_status reorder(const operands *o, double *edges) {
  const int64_t heads = o->spec.problem.heads, count = o->a.nnz * heads;
  WLM_FREED double *copy = NULL;
  const wlm_status status = wlmi_alloc_array(count, sizeof *copy, "reference", (void **)&copy);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < count; i++) copy[o->order[i / heads] * heads + i % heads] = edges[i];
  memcpy(edges, copy, (size_t)count * sizeof *copy);
  return WLM_OK;
}

/* Edges behind the last row count as 0. */
static wlm_status sddmm_reference(operands *o) {
  const wlm_problem *p = &o->spec.problem;
  const wlmi_reference_result *to = o->results;
  const int64_t held = o->a.nnz * p->heads;
  const wlm_status status = wlmi_reference_edges(&o->a, p, &o->host, NULL, o->a.rows, o->a.rowptr, to);
  for (int64_t i = held; i < held + o->rowless * p->heads; i++) {
    to->value[i] = o->call.beta != 0 ? o->call.beta * wlmi_element_get(p->dense_type, o->host.dvalues, i) : 0;
    to->scale[i] = fabs(to->value[i]);
  }
  return status;
}

static wlm_status make_results(operands *o) {
  const wlmi_attention_walk walk = {&o->a, &o->spec.problem, &o->host, o->order};
  wlm_status status = WLM_OK;
  for (const array *x = o->arrays; x < o->arrays + ARRAYS; x++) {
    if (!is_output(x)) continue;
    wlmi_reference_result *to = &o->results[x->row->result];
    const int64_t count = x->lines * x->row->columns;
    WLM_TRY(wlmi_alloc_array(count, sizeof *to->value, "reference", (void **)&to->value));
    WLM_TRY(wlmi_alloc_array(count, sizeof *to->scale, "reference", (void **)&to->scale));
  }
  if (is_sddmm(o)) return sddmm_reference(o);
  WLM_TRY(wlmi_reference_attention(&walk, NULL, o->a.rows, o->a.rowptr, o->results));
  if (!is_gradient(o)) goto done;
  WLM_TRY(reorder(o, o->results[WLMI_RESULT_OF_DSCORES].value));
  status = reorder(o, o->results[WLMI_RESULT_OF_DSCORES].scale);
done:
  return status;
}

/* ---- on the device ---------------------------------------------------------------------------------------- */

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

static wlm_csr csr_of(const operands *o) {
  return (wlm_csr)CSR(.rows = o->a.rows, .cols = o->a.cols, .nnz = o->a.nnz + o->rowless,
                      .rowptr = o->arrays[ROWPTR].device, .colind = o->arrays[COLIND].device,
                      .values = o->arrays[VALUES].device, .rowptr_type = o->spec.rowptr_type,
                      .colind_type = o->spec.colind_type, .value_type = o->spec.value_type);
}

static wlm_status run(const kernel_check *check, const wlmi_program *program, void *const kernels[WLMI_MAX_PASSES],
                      operands *o, int number) {
  wlmi_device *device = check->device;
  wlm_plan plan = {0};
  wlm_execute_args call = o->call;
  wlm_attention_operands attention = o->attention;
  wlm_status status = WLM_OK;
  call.attention = &attention;
  for (array *x = o->arrays; x < o->arrays + ARRAYS; x++) {
    WLM_TRY(put(device, x));
    const char *const memory = x->row && (program->uses_b || strcmp(x->row->name, "b")) ? at(x, x->device) : NULL;
    if (memory) memcpy(struct_of(x->row, &call, &attention) + x->row->from, &memory, sizeof memory);
  }
  const wlm_csr csr = csr_of(o);
  WLM_TRY(bare_plan_fill(&plan, device, program, kernels, &csr, &o->spec));
  plan.bound.args.order = is_gradient(o) ? o->arrays[ORDER].device : NULL;
  WLM_TRY(put_poison(device, wlm_plan_workspace_size(&plan), &o->arrays[WORKSPACE]));
  WLM_TRY(put_poison(device, wlm_plan_prepared_size(&plan), &o->arrays[PREPARED]));
  if (check->before_run) check->before_run(check->user, number);
  if (wlm_plan_prepared_size(&plan)) WLM_TRY(wlm_plan_prepare(&plan, o->arrays[PREPARED].device, NULL));
  call.workspace = o->arrays[WORKSPACE].device;
  WLM_TRY(test_execute_args(&plan, call));
  WLM_TRY(device->ops->synchronize(device, NULL));
  for (array *x = o->arrays; x < o->arrays + ARRAYS; x++)
    if (is_output(x)) WLM_TRY(device->ops->copy_out(device, x->after, x->device, bytes(x)));
done:
  return status;
}

/* ---- comparing -------------------------------------------------------------------------------------------- */

/* The error of a sum of terms grows with their root; 16-bit types are rounded once more at the end. */
static double tolerance(const operands *o, const array *x) {
  const wlm_problem *p = &o->spec.problem;
  const wlm_type sums = wlmi_accumulator_type(p->dense_type);
  const double unit = wlmi_element_unit(sums), rounded = x->type == sums ? 0 : wlmi_element_unit(x->type);
  int64_t longest = 0;
  for (int64_t row = 0; row < o->a.rows; row++)
    if (o->a.rowptr[row + 1] - o->a.rowptr[row] > longest) longest = o->a.rowptr[row + 1] - o->a.rowptr[row];
  return rounded + unit * (is_sddmm(o) ? 16 + 8 * sqrt((double)p->n) : 8 + 2 * sqrt((double)(longest + p->n)));
}

static wlm_status compare(const wlmi_program *program, const operands *o, const array *x) {
  const wlmi_reference_result *expected = &o->results[x->row->result];
  const int64_t columns = x->row->columns, count = x->lines * x->ld;
  const char *before = x->host, *after = x->after;
  int outside =
      memcmp(before, after, guard(x)) || memcmp(before + bytes(x) - guard(x), after + bytes(x) - guard(x), guard(x));
  for (int64_t i = 0; i < count; i++) {
    const size_t place = guard(x) + (size_t)i * x->size;
    if (i % x->ld >= columns) outside |= memcmp(before + place, after + place, x->size) != 0;
  }
  if (outside)
    return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: writes outside of %s", program->variant, o->shape, x->row->name);
  const double worst =
      wlmi_reference_error(x->type, after + guard(x), x->ld, NULL, x->lines, columns, expected->value, expected->scale);
  if (worst <= tolerance(o, x)) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s, alpha %g, beta %g, seed %llu: %s: max_rel_err %.3g, allowed %.3g",
                   program->variant, o->shape, o->call.alpha, o->call.beta, (unsigned long long)o->call.seed,
                   x->row->name, worst, tolerance(o, x));
}

static wlm_status check_shape(const kernel_check *check, const wlmi_program *program,
                              void *const kernels[WLMI_MAX_PASSES], int64_t step, int shape, test_random *random) {
  operands o = {0};
  wlm_status status;
  WLM_TRY(operands_make(check, step, shape, random, &o));
  WLM_TRY(make_results(&o));
  for (int number = 0; number < check->runs; number++) {
    WLM_TRY(run(check, program, kernels, &o, number));
    for (array *x = o.arrays; x < o.arrays + ARRAYS; x++) {
      if (!is_output(x)) continue;
      WLM_TRY(compare(program, &o, x));
      if (!number) memcpy(x->first, x->after, bytes(x));
      if ((program->deterministic || !is_sddmm(&o)) && memcmp(x->first, x->after, bytes(x)))
        WLM_TRY(wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: %s: run %d gives other bits than the first", program->variant,
                          o.shape, x->row->name, number));
    }
  }
done:
  operands_release(check->device, &o);
  return status;
}

wlm_status arrays_check_program(const kernel_check *check, const wlmi_program *program,
                                void *const kernels[WLMI_MAX_PASSES]) {
  const wlmi_pass *pass = wlmi_program_first_execute(program);
  const int sddmm = check->spec->problem.operation == WLM_SDDMM;
  const int by_edges = pass->units == WLMI_UNITS_NNZ || pass->units == WLMI_UNITS_ROWS_NNZ;
  const int64_t most = sddmm ? 200 : 500, step = by_edges ? pass->units_per_block / (sddmm ? 4 : 1) : sddmm ? 8 : 32;
  test_random random = {check->seed * 0x9E3779B97F4A7C15u | 1};
  wlm_status status = WLM_OK;
  for (int shape = 0; shape < test_shape_count() && status == WLM_OK; shape++)
    status = check_shape(check, program, kernels, step < most ? step : most, shape, &random);
  return status;
}
