#include "support/arrays_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/csr/shares.h"
#include "core/problem/element.h"
#include "core/reference/attention.h"
#include "core/reference/gradient.h"
#include "core/reference/message.h"
#include "runtime/dispatch/plan.h"
#include "support/argmax_gradient.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/own.h"
#include "support/shapes.h"

enum { GUARD = 64 }; /* elements before and after an output that must not be written */

/* The arrays that every call has; those of the operation's table follow. */
enum { ROWPTR, COLIND, VALUES, ORDER, A_ROWPTR, WORKSPACE, PREPARED, OF_TABLE, ARRAYS = OF_TABLE + WLMI_MAX_ARRAYS };

typedef struct array {
  const wlmi_array *row; /* of the table; NULL = of the matrix */
  wlm_type type;         /* of numbers */
  size_t size;           /* of an element */
  int64_t lines, ld;
  char *host, *after, *first; /* before a run, after it, and after the first one */
  void *device;
} array;

/* A call with all structs that one may have. */
typedef struct call {
  wlm_execute_args args;
  wlm_attention_operands attention;
  wlm_message_args message;
} call;

typedef struct operands {
  const char *shape;
  wlmi_csr_host a;   /* what kernels walk: op(A), of gradients by argmax A; values are in its order */
  int64_t rowless;   /* edges behind the last row, which take no part */
  int64_t *order;    /* where A has each edge */
  int64_t *a_rowptr; /* of A */
  int64_t *winners;  /* of each element of C: an edge of A, or -1 */
  wlmi_spec spec;
  wlmi_message message;
  call call, host; /* host: with arrays of the host */
  wlmi_arrays table;
  array arrays[ARRAYS];
  wlmi_reference_result results[WLM_MAX_RESULTS];
} operands;

static int is_of(const operands *o, wlm_operation operation) { return o->spec.problem.operation == operation; }
static int is_message(const operands *o) { return is_of(o, WLM_MESSAGE); }
static int is_argmax(const operands *o) { return is_of(o, WLM_ARGMAX_GRADIENT); }
static int is_dot_of_lines(const operands *o) { return is_of(o, WLM_SDDMM) || is_argmax(o); }
static int is_rows(const operands *o) { return is_of(o, WLM_ATTENTION_ROWS); }
static int walks_transpose(const operands *o) { return o->spec.problem.transpose && !is_argmax(o); }
static int is_backward(const operands *o) { return is_rows(o) || (is_of(o, WLM_ATTENTION) && walks_transpose(o)); }
static int is_output(const array *x) { return x->row && x->row->is_output; }
static int is_position(const array *x) { return x->row->element == WLMI_ELEMENT_POSITION; }
static int64_t a_rows(const operands *o) { return walks_transpose(o) ? o->a.cols : o->a.rows; }
static int64_t a_cols(const operands *o) { return walks_transpose(o) ? o->a.rows : o->a.cols; }

static size_t guard(const array *x) { return is_output(x) ? GUARD * x->size : 0; }
static size_t bytes(const array *x) { return (size_t)(x->lines * x->ld) * x->size + 2 * guard(x); }
static char *at(const array *x, char *memory) { return memory ? memory + guard(x) : NULL; }

static int has_product(const wlmi_message *message) {
  for (int r = 0; r < message->results; r++)
    if (message->result[r].kind == WLMI_RESULT_PROD) return 1;
  return 0;
}

/* Short binary fractions: their products and sums are exact, so that no rounding decides a comparison. Of a long
 * product nearly all are 1, so that it stays in the range of its type. */
static double draw_value(const operands *o, test_random *random) {
  double value = (double)(8 + test_draw(random, 17)) / 16;
  if (has_product(&o->message)) value = test_draw(random, 64) ? 1 : test_draw(random, 2) ? 2 : 0.5;
  return test_draw(random, 2) ? value : -value;
}

static wlm_status make_array(operands *o, int which, size_t size, int64_t lines, int64_t ld) {
  array *x = &o->arrays[which];
  x->size = size;
  x->lines = lines;
  x->ld = ld;
  WLM_CHECK(wlmi_alloc_array(1, bytes(x) + 1, "operand", (void **)&x->host));
  memset(x->host, 0xff, bytes(x));
  if (!is_output(x)) return WLM_OK;
  WLM_CHECK(wlmi_alloc_array(1, bytes(x) + 1, "operand", (void **)&x->after));
  WLM_CHECK(wlmi_alloc_array(1, bytes(x) + 1, "operand", (void **)&x->first));
  return WLM_OK;
}

/* ---- the matrix ------------------------------------------------------------------------------------------- */

static void put_index(array *x, int64_t i, int64_t value) {
  if (x->size == sizeof(uint16_t))
    ((uint16_t *)(void *)x->host)[i] = (uint16_t)value;
  else
    wlmi_index_put(x->size == sizeof(int64_t) ? WLM_I64 : WLM_I32, x->host, i, value);
}

static int ascending(const void *left, const void *right) {
  const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  return (a > b) - (a < b);
}

/* The order of a real A^T, whose rows have ascending columns, and A's rowptr. */
static wlm_status make_order_of_transpose(operands *o) {
  const wlmi_csr_host *a = &o->a;
  WLM_FREED int64_t *next = NULL;
  WLM_CHECK(wlmi_alloc_array(a->cols + 1, sizeof *next, "order", (void **)&next));
  for (int64_t row = 0; row < a->rows; row++)
    qsort(a->colind + a->rowptr[row], (size_t)(a->rowptr[row + 1] - a->rowptr[row]), sizeof *a->colind, ascending);
  memset(o->a_rowptr, 0, (size_t)(a->cols + 1) * sizeof *o->a_rowptr);
  for (int64_t p = 0; p < a->nnz; p++) o->a_rowptr[a->colind[p] + 1]++;
  for (int64_t row = 0; row < a->cols; row++) o->a_rowptr[row + 1] += o->a_rowptr[row];
  memcpy(next, o->a_rowptr, (size_t)(a->cols + 1) * sizeof *next);
  for (int64_t p = 0; p < a->nnz; p++) o->order[p] = next[a->colind[p]]++;
  return WLM_OK;
}

/* The edges of the gradient of attention are in any order; those of a transposed message must be of one A. */
static wlm_status make_order(operands *o, test_random *random) {
  WLM_CHECK(wlmi_alloc_array(o->a.nnz, sizeof *o->order, "order", (void **)&o->order));
  WLM_CHECK(wlmi_alloc_array(a_rows(o) + 1, sizeof *o->a_rowptr, "rowptr", (void **)&o->a_rowptr));
  if (is_message(o) && walks_transpose(o)) return make_order_of_transpose(o);
  for (int64_t q = 0; q < o->a.nnz; q++) {
    const int64_t other = walks_transpose(o) ? (int64_t)test_draw(random, (uint64_t)q + 1) : q;
    o->order[q] = o->order[other];
    o->order[other] = q;
  }
  for (int64_t i = 0; i <= a_rows(o); i++) o->a_rowptr[i] = walks_transpose(o) ? 0 : o->a.rowptr[i];
  return WLM_OK;
}

static wlm_status make_pattern(operands *o, test_random *random) {
  const int64_t edges = o->a.nnz + o->rowless;
  const size_t offset = wlmi_index_size(o->spec.rowptr_type), index = wlmi_index_size(o->spec.colind_type);
  WLM_CHECK(make_order(o, random));
  WLM_CHECK(make_array(o, ROWPTR, offset, o->a.rows + 1, 1));
  WLM_CHECK(make_array(o, COLIND, index, edges, 1));
  WLM_CHECK(make_array(o, ORDER, offset, o->a.nnz, 1));
  WLM_CHECK(make_array(o, A_ROWPTR, offset, a_rows(o) + 1, 1));
  for (int64_t i = 0; i <= o->a.rows; i++) put_index(&o->arrays[ROWPTR], i, o->a.rowptr[i] + o->spec.base);
  for (int64_t i = 0; i <= a_rows(o); i++) put_index(&o->arrays[A_ROWPTR], i, o->a_rowptr[i] + o->spec.base);
  for (int64_t p = 0; p < edges; p++)
    put_index(&o->arrays[COLIND], p, (p < o->a.nnz ? o->a.colind[p] : 0) + o->spec.base);
  for (int64_t q = 0; q < o->a.nnz; q++) put_index(&o->arrays[ORDER], q, o->order[q]);
  return WLM_OK;
}

/* How often the samples of A's rows take each edge of op(A), of a message. */
static wlm_status make_shares(operands *o) {
  const wlmi_csr_host sampled = {.rows = a_rows(o), .nnz = o->a.nnz, .rowptr = o->a_rowptr};
  WLM_FREED wlmi_edge_share *shares = NULL;
  if (!is_message(o) || o->spec.problem.sampling.sample == WLM_SAMPLE_NONE) return WLM_OK;
  WLM_CHECK(wlmi_sample_shares(&sampled, &o->spec.problem, o->call.args.seed, &shares));
  WLM_CHECK(wlmi_alloc_array(o->a.nnz, sizeof *shares, "shares", (void **)&o->a.shares));
  for (int64_t p = 0; p < o->a.nnz; p++) o->a.shares[p] = shares[o->order[p]];
  return WLM_OK;
}

/* Of attention, masks some edges, and all of some rows. */
static wlm_status make_values(operands *o, test_random *random) {
  const int64_t heads = o->spec.problem.heads;
  const int masks = wlmi_is_attention(&o->spec.problem);
  const wlm_type type = o->spec.value_type;
  array *x = &o->arrays[VALUES];
  if (!o->spec.has_values) return WLM_OK;
  WLM_CHECK(wlmi_alloc_array(o->a.nnz * heads, sizeof(float), "values", (void **)&o->a.values));
  WLM_CHECK(make_array(o, VALUES, wlmi_type_size(type), o->a.nnz + o->rowless, heads));
  for (int64_t i = o->a.nnz * heads; i < x->lines * heads; i++)
    wlmi_element_put(type, x->host, i, draw_value(o, random));
  for (int64_t row = 0; row < o->a.rows; row++) {
    const int masked = masks && !test_draw(random, 7);
    for (int64_t i = o->a.rowptr[row] * heads; i < o->a.rowptr[row + 1] * heads; i++) {
      o->a.values[i] = masked || (masks && !test_draw(random, 6)) ? -INFINITY : (float)draw_value(o, random);
      wlmi_element_put(type, x->host, o->order[i / heads] * heads + i % heads, (double)o->a.values[i]);
    }
  }
  return WLM_OK;
}

static int reads_positions(const operands *o) {
  for (int i = 0; i < o->table.count; i++)
    if (o->table.list[i].element == WLMI_ELEMENT_POSITION && !o->table.list[i].is_output) return 1;
  return 0;
}

/* For each element of C draws the winner: any edge of its row, all with equal probability. */
static wlm_status draw_winners(operands *o, test_random *random) {
  const wlm_problem *p = &o->spec.problem;
  const int64_t rows = p->transpose ? o->a.cols : o->a.rows;
  WLM_FREED uint64_t *seen = NULL;
  if (!reads_positions(o)) return WLM_OK;
  WLM_CHECK(wlmi_alloc_array(rows * p->n, sizeof *o->winners, "positions", (void **)&o->winners));
  WLM_CHECK(wlmi_alloc_array(rows, sizeof *seen, "counts", (void **)&seen));
  for (int64_t i = 0; i < rows * p->n; i++) o->winners[i] = -1;
  for (int64_t i = 0; i < rows; i++) seen[i] = 0;
  for (int64_t row = 0; row < o->a.rows; row++)
    for (int64_t e = o->a.rowptr[row]; e < o->a.rowptr[row + 1]; e++) {
      const int64_t i = p->transpose ? o->a.colind[e] : row;
      seen[i]++;
      for (int64_t j = 0; j < p->n; j++)
        if (!test_draw(random, seen[i])) o->winners[i * p->n + j] = o->order[e];
    }
  return WLM_OK;
}

/* ---- the arrays of the table ------------------------------------------------------------------------------ */

/* For each row and column of op(A), whether the problem uses an edge of it. */
typedef struct used {
  char *rows, *cols;
} used;

static void used_release(used *u) {
  wlmi_free(u->rows);
  wlmi_free(u->cols);
}

static wlm_status mark_used(const operands *o, used *u) {
  WLM_FREED wlmi_edge_share *shares = NULL;
  WLM_CHECK(wlmi_alloc_array(o->a.rows, 1, "rows", (void **)&u->rows));
  WLM_CHECK(wlmi_alloc_array(o->a.cols, 1, "columns", (void **)&u->cols));
  if (is_of(o, WLM_SDDMM)) WLM_CHECK(wlmi_sample_shares(&o->a, &o->spec.problem, o->call.args.seed, &shares));
  memset(u->cols, 0, (size_t)o->a.cols);
  for (int64_t row = 0; row < o->a.rows; row++) u->rows[row] = o->a.rowptr[row + 1] > o->a.rowptr[row];
  for (int64_t p = 0; p < o->a.nnz; p++)
    if (!shares || shares[p].times) u->cols[o->a.colind[p]] = 1;
  return WLM_OK;
}

/* Whether a kernel may read an element. Of messages this holds for lines of every width, of other operations for those
 * with n elements. dC is read where it has a winner. */
static int is_read(const operands *o, const wlmi_array *row, int64_t line, int64_t column, const used *u) {
  const int of_row = (row->place == WLM_PLACE_ROW) != walks_transpose(o);
  if (column >= row->columns) return 0;
  if (row->place == WLM_PLACE_ALL || row->place == WLM_PLACE_EDGE) return 1;
  if (row->width != WLM_WIDTH_N && !is_message(o)) return 1;
  if (is_argmax(o) && !strcmp(row->name, "x")) return o->winners[line * row->columns + column] >= 0;
  return of_row ? u->rows[line] : u->cols[line];
}

static void fill(const operands *o, test_random *random, array *x, const used *u) {
  static const double strange[] = {NAN, INFINITY, -INFINITY};
  for (int64_t i = 0; i < x->lines * x->ld; i++) {
    const int64_t line = i / x->ld, column = i % x->ld;
    if (is_position(x))
      put_index(x, i, column < x->row->columns ? o->winners[line * x->row->columns + column] : 1 << 30);
    else
      wlmi_element_put(x->type, x->host, i,
                       is_read(o, x->row, line, column, u) ? draw_value(o, random) : strange[test_draw(random, 3)]);
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
  for (int64_t i = 0; i < x->lines * x->ld && o->call.args.beta != 0 && !x->row->result; i++)
    if (i % x->ld < x->row->columns) wlmi_element_put(x->type, at(x, x->host), i, draw_value(o, random));
}

/* The struct of a call that has an array. */
static char *struct_of(const wlmi_array *row, call *c) {
  return row->in == WLMI_IN_ATTENTION ? (char *)&c->attention
         : row->in == WLMI_IN_MESSAGE ? (char *)&c->message
                                      : (char *)&c->args;
}

/* The leading dimension that the call has; of a message it is drawn here, once for a result and its positions. */
static int64_t ld_of(const wlmi_array *row, test_random *random, call *c) {
  int64_t ld = 0;
  if (!row->ld_name) return row->columns;
  memcpy(&ld, struct_of(row, c) + row->ld_from, sizeof ld);
  if (!ld) ld = row->columns + (int64_t)(test_draw(random, 2) ? 0 : test_draw(random, 2) ? 8 : 3);
  memcpy(struct_of(row, c) + row->ld_from, &ld, sizeof ld);
  return ld;
}

static wlm_status make_one(operands *o, test_random *random, int i, const used *u, int wide) {
  const wlmi_array *row = &o->table.list[i];
  array *x = &o->arrays[OF_TABLE + i];
  if (row->need == WLMI_NEED_REFUSED) return WLM_OK;
  x->row = row;
  x->type = wlmi_array_type(row, &o->spec.problem);
  WLM_CHECK(make_array(o, OF_TABLE + i, row->size, wlmi_array_lines(row, a_rows(o), a_cols(o), o->a.nnz + o->rowless),
                       ld_of(row, random, &o->call)));
  if (row->is_output)
    fill_old(o, random, x);
  else
    fill(o, random, x, u);
  if (wide && !row->is_output) widen(random, x);
  return WLM_OK;
}

/* The call with arrays of the host, which the references read. */
static void make_host(operands *o) {
  o->host = o->call;
  o->host.args.attention = &o->host.attention;
  for (const array *x = o->arrays + OF_TABLE; x < o->arrays + ARRAYS; x++) {
    const char *const memory = at(x, x->host);
    if (x->row) memcpy(struct_of(x->row, &o->host) + x->row->from, &memory, sizeof memory);
  }
}

/* The edges of A from those of A^T. */
static wlm_status transpose(const operands *o, wlmi_csr_host *a) {
  const int64_t heads = o->spec.problem.heads;
  WLM_FREED int64_t *next = NULL;
  WLM_CHECK(wlmi_alloc_array(a->rows + 1, sizeof *next, "rows", (void **)&next));
  WLM_CHECK(wlmi_alloc_array(a->rows + 1, sizeof *a->rowptr, "rowptr", (void **)&a->rowptr));
  WLM_CHECK(wlmi_alloc_array(a->nnz, sizeof *a->colind, "colind", (void **)&a->colind));
  if (o->a.values) WLM_CHECK(wlmi_alloc_array(a->nnz * heads, sizeof *a->values, "values", (void **)&a->values));
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
  return WLM_OK;
}

/* The gradient's largest scores and scales are those of the edges of A: what the reference gives for A. */
static wlm_status fill_softmax(operands *o) {
  const wlm_problem *p = &o->spec.problem;
  wlm_problem forward = *p;
  HELD(wlmi_csr_host) made = {.rows = o->a.cols, .cols = o->a.rows, .nnz = o->a.nnz};
  const wlmi_csr_host *const a = is_rows(o) ? &o->a : &made;
  WLM_FREED double *c = NULL;
  WLM_FREED double *softmax = NULL;
  const wlmi_attention_walk walk = {a, &forward, &o->host.args, NULL};
  const wlm_type sums = wlmi_accumulator_type(p->dense_type);
  forward.operation = WLM_ATTENTION;
  forward.transpose = forward.dropout = 0;
  if (!is_rows(o)) WLM_CHECK(transpose(o, &made));
  WLM_CHECK(wlmi_alloc_array(a->rows * p->n, sizeof *c, "C", (void **)&c));
  WLM_CHECK(wlmi_alloc_array(2 * a->rows * p->heads, sizeof *softmax, "softmax", (void **)&softmax));
  const wlmi_reference_result results[WLM_MAX_RESULTS] = {{.value = c}, [WLMI_RESULT_OF_SOFTMAX] = {.value = softmax}};
  WLM_CHECK(wlmi_reference_attention(&walk, NULL, a->rows, NULL, results));
  for (int64_t i = 0; i < 2 * a->rows * p->heads; i++)
    wlmi_element_put(sums, (void *)(uintptr_t)o->host.attention.softmax, i, softmax[i]);
  return WLM_OK;
}

/* Everything of the call but its arrays. Messages have neither alpha, beta, nor leading dimensions there, and gradients
 * by argmax no beta. */
static void make_call(operands *o, test_random *random) {
  static const struct {
    double alpha, beta;
    int64_t more_b, more_c;
  } calls[] = {{1, 0, 0, 0}, {1.5, 0, 3, 0}, {-2, 0.5, 0, 5}, {1, 1, 8, 4}};
  const uint64_t number = test_draw(random, sizeof calls / sizeof *calls);
  const wlm_problem *p = &o->spec.problem;
  const int sampled = p->sampling.sample != WLM_SAMPLE_NONE;
  o->call = (call){WLM_EXECUTE_ARGS_INIT, WLM_ATTENTION_OPERANDS_INIT, WLM_MESSAGE_ARGS_INIT};
  if (!o->table.unscaled) o->call.args.alpha = calls[number].alpha;
  if (!o->table.unscaled && !is_argmax(o)) o->call.args.beta = calls[number].beta;
  if (!is_message(o)) o->call.args.ldb = p->n + calls[number].more_b;
  if (!is_message(o)) o->call.args.ldc = p->n + calls[number].more_c;
  o->call.attention.ldt = (wlmi_score_is_sum(p->score) ? p->n : p->heads) + (int64_t)test_draw(random, 3);
  if ((!sampled && !is_message(o)) || test_draw(random, 2)) o->call.args.seed = 1 + test_draw(random, 1 << 30);
  o->call.attention.dropout = p->dropout ? 0.375 : 0;
  o->call.attention.slope = test_draw(random, 3) ? 0.25 : 1.5;
  o->call.attention.scale = p->score == WLM_SCORE_DOT ? 0.75 : 1;
  for (int i = 0; i < WLM_MAX_OPERANDS; i++) o->call.message.scalars[i] = 0.75;
}

static wlm_status operands_make(const kernel_check *check, int64_t step, int shape, test_random *random, operands *o) {
  HELD(used) u = {0};
  *o = (operands){.shape = test_shape_name(shape), .spec = *check->spec};
  const wlm_problem *p = &o->spec.problem;
  const int wide = wlmi_is_attention(p) && test_draw(random, 2);
  if (is_message(o)) WLM_CHECK(wlmi_message_parse(o->spec.custom, &o->message));
  WLM_CHECK(wlmi_arrays_make(&o->spec, &o->table));
  make_call(o, random);
  /* published fastrand then takes edges of the long row repeatedly */
  const int64_t longest = is_of(o, WLM_SDDMM) && p->sampling.sample != WLM_SAMPLE_NONE ? 5 * 577 : 577;
  WLM_CHECK(test_shape_make(shape, step, longest, random, &o->a));
  if (!walks_transpose(o) && !is_message(o) && !is_argmax(o) && o->a.rows && o->a.cols && test_draw(random, 2))
    o->rowless = 1 + (int64_t)test_draw(random, 3 * (uint64_t)step);
  WLM_CHECK(make_pattern(o, random));
  WLM_CHECK(make_shares(o));
  WLM_CHECK(make_values(o, random));
  WLM_CHECK(draw_winners(o, random));
  WLM_CHECK(mark_used(o, &u));
  for (int i = 0; i < o->table.count; i++) WLM_CHECK(make_one(o, random, i, &u, wide));
  make_host(o);
  return is_backward(o) ? fill_softmax(o) : WLM_OK;
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
    wlmi_free(o->results[r].positions);
  }
  wlmi_csr_host_release(&o->a);
  wlmi_free(o->order);
  wlmi_free(o->a_rowptr);
  wlmi_free(o->winners);
  wlmi_message_release(&o->message);
}

/* ---- the reference ---------------------------------------------------------------------------------------- */

static wlm_status make_result(operands *o, const array *x) {
  wlmi_reference_result *to = &o->results[x->row->result];
  const int64_t count = x->lines * x->row->columns;
  if (is_position(x)) return wlmi_alloc_array(count, sizeof *to->positions, "reference", (void **)&to->positions);
  WLM_CHECK(wlmi_alloc_array(count, sizeof *to->value, "reference", (void **)&to->value));
  WLM_CHECK(wlmi_alloc_array(count, sizeof *to->scale, "reference", (void **)&to->scale));
  return WLM_OK;
}

/* From op(A)'s order to that of A. */
static wlm_status reorder(const operands *o, int64_t width, double *edges) {
  WLM_FREED double *copy = NULL;
  const wlm_status status = wlmi_alloc_array(o->a.nnz * width, sizeof *copy, "reference", (void **)&copy);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < o->a.nnz * width; i++) copy[o->order[i / width] * width + i % width] = edges[i];
  memcpy(edges, copy, (size_t)(o->a.nnz * width) * sizeof *copy);
  return WLM_OK;
}

/* Edges behind the last row count as 0. */
static wlm_status sddmm_reference(operands *o) {
  const wlm_problem *p = &o->spec.problem;
  const wlmi_reference_result *to = o->results;
  const int64_t held = o->a.nnz * p->heads;
  const wlm_status status = wlmi_reference_edges(&o->a, p, &o->host.args, NULL, o->a.rows, o->a.rowptr, to);
  for (int64_t i = held; i < held + o->rowless * p->heads; i++) {
    to->value[i] =
        o->call.args.beta != 0 ? o->call.args.beta * wlmi_element_get(p->dense_type, o->host.args.dvalues, i) : 0;
    to->scale[i] = fabs(to->value[i]);
  }
  return status;
}

static wlm_status message_reference(operands *o) {
  const wlmi_message_walk walk = {&o->a,    &o->spec.problem, &o->message,       &o->host.message,
                                  o->order, o->a_rowptr,      o->host.args.bias, o->call.args.seed};
  return wlmi_reference_message(&walk, NULL, o->a.rows, o->a.rowptr, o->results);
}

static wlm_status attention_reference(operands *o) {
  const wlmi_attention_walk walk = {&o->a, &o->spec.problem, &o->host.args, o->order};
  return wlmi_reference_attention(&walk, NULL, o->a.rows, o->a.rowptr, o->results);
}

static wlm_status argmax_reference(operands *o) {
  const wlmi_reference_result *db = o->results, *dvalues = &o->results[WLMI_RESULT_OF_ARGMAX_DVALUES];
  gradient_sums sums = {db->value, db->scale, dvalues->value, dvalues->scale};
  argmax_gradient(&o->a, &o->spec.problem, &o->host.args, o->host.args.x, o->winners, o->host.args.b, &sums);
  return WLM_OK;
}

static wlm_status make_results(operands *o) {
  wlm_status (*const reference)(operands *) = is_of(o, WLM_SDDMM) ? sddmm_reference
                                              : is_message(o)     ? message_reference
                                              : is_argmax(o)      ? argmax_reference
                                                                  : attention_reference;
  for (const array *x = o->arrays; x < o->arrays + ARRAYS; x++)
    if (is_output(x)) WLM_CHECK(make_result(o, x));
  WLM_CHECK(reference(o));
  for (const array *x = o->arrays; x < o->arrays + ARRAYS; x++) {
    if (!is_output(x) || is_position(x) || x->row->place != WLM_PLACE_EDGE) continue;
    WLM_CHECK(reorder(o, x->row->columns, o->results[x->row->result].value));
    WLM_CHECK(reorder(o, x->row->columns, o->results[x->row->result].scale));
  }
  return WLM_OK;
}

/* ---- on the device ---------------------------------------------------------------------------------------- */

static wlm_status put(wlmi_device *device, array *x) {
  if (!x->host) return WLM_OK;
  if (!x->device) WLM_CHECK(device->ops->allocate(device, bytes(x) + 1, &x->device));
  if (bytes(x)) WLM_CHECK(device->ops->copy_in(device, x->device, x->host, bytes(x)));
  return WLM_OK;
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

/* Of three runs of gradients by argmax one leaves out dB, and one dvalues. */
static int is_wanted(const operands *o, const array *x, int number) {
  return !is_argmax(o) || number % 3 != (x->row->result == 0 ? 1 : 2);
}

static int is_passed(const operands *o, const wlmi_program *program, const array *x, int number) {
  if (!x->row || (is_output(x) && !is_wanted(o, x, number))) return 0;
  return program->uses_b || is_message(o) || strcmp(x->row->name, "b");
}

static wlm_status run(const kernel_check *check, const wlmi_program *program, void *const kernels[WLMI_MAX_PASSES],
                      operands *o, int number) {
  wlmi_device *device = check->device;
  wlm_plan plan = {0};
  call c = o->call;
  for (array *x = o->arrays; x < o->arrays + ARRAYS; x++) {
    WLM_CHECK(put(device, x));
    const char *const memory = at(x, x->device);
    if (is_passed(o, program, x, number)) memcpy(struct_of(x->row, &c) + x->row->from, &memory, sizeof memory);
  }
  const wlm_csr csr = csr_of(o);
  WLM_CHECK(bare_plan_fill(&plan, device, program, kernels, &csr, &o->spec));
  plan.bound.args.order = walks_transpose(o) ? o->arrays[ORDER].device : NULL;
  plan.bound.args.a_rowptr = is_message(o) ? o->arrays[A_ROWPTR].device : NULL;
  WLM_CHECK(put_poison(device, wlm_plan_workspace_size(&plan), &o->arrays[WORKSPACE]));
  WLM_CHECK(put_poison(device, wlm_plan_prepared_size(&plan), &o->arrays[PREPARED]));
  if (check->before_run) check->before_run(check->user, number);
  if (wlm_plan_prepared_size(&plan)) WLM_CHECK(wlm_plan_prepare(&plan, o->arrays[PREPARED].device, NULL));
  c.args.attention = wlmi_is_attention(&o->spec.problem) ? &c.attention : NULL;
  c.args.operands = is_message(o) ? &c.message : NULL;
  c.args.workspace = o->arrays[WORKSPACE].device;
  WLM_CHECK(test_execute_args(&plan, c.args));
  WLM_CHECK(device->ops->synchronize(device, NULL));
  for (array *x = o->arrays; x < o->arrays + ARRAYS; x++)
    if (is_output(x)) WLM_CHECK(device->ops->copy_out(device, x->after, x->device, bytes(x)));
  return WLM_OK;
}

/* ---- comparing -------------------------------------------------------------------------------------------- */

/* The error of a sum of terms grows with their root; 16-bit types are rounded once more at the end. */
static double tolerance(const operands *o, const array *x) {
  const wlm_problem *p = &o->spec.problem;
  const wlm_type sums = wlmi_accumulator_type(p->dense_type);
  const double unit = wlmi_element_unit(sums), rounded = x->type == sums ? 0 : wlmi_element_unit(x->type);
  const double inner = is_message(o) ? wlmi_expression_roundings(&o->message.result[x->row->result].value) : 0;
  int64_t longest = 0;
  if (is_argmax(o) && x->row->result == 0)
    return unit * (16 + 8 * sqrt((double)(p->transpose ? o->a.cols : o->a.rows)));
  if (is_dot_of_lines(o)) return rounded + unit * (16 + 8 * sqrt((double)p->n));
  for (int64_t row = 0; row < o->a.rows; row++)
    if (o->a.rowptr[row + 1] - o->a.rowptr[row] > longest) longest = o->a.rowptr[row + 1] - o->a.rowptr[row];
  return rounded + unit * (8 + inner + 2 * sqrt((double)(longest + p->n)));
}

/* Whether anything but the lines of an output changed; of one that was not asked for, also these. */
static int is_written_outside(const operands *o, const array *x, int number) {
  const int64_t first = GUARD, end = GUARD + x->lines * x->ld;
  for (int64_t i = 0; i < end + GUARD; i++) {
    const size_t place = (size_t)i * x->size;
    if (is_wanted(o, x, number) && i >= first && i < end && (i - first) % x->ld < x->row->columns) continue;
    if (memcmp(x->host + place, x->after + place, x->size)) return 1;
  }
  return 0;
}

static wlm_status compare_positions(const wlmi_program *program, const operands *o, const array *x) {
  const int64_t *expected = o->results[x->row->result].positions, columns = x->row->columns;
  for (int64_t i = 0; i < x->lines * columns; i++) {
    const int64_t place =
        wlmi_index_get(o->spec.problem.argmax_type, at(x, x->after), i / columns * x->ld + i % columns);
    if (place != expected[i])
      return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: %s: position [%lld,%lld] is %lld, not %lld", program->variant,
                       o->shape, x->row->name, (long long)(i / columns), (long long)(i % columns), (long long)place,
                       (long long)expected[i]);
  }
  return WLM_OK;
}

static wlm_status compare(const wlmi_program *program, const operands *o, const array *x, int number) {
  const wlmi_reference_result *expected = &o->results[x->row->result];
  if (is_written_outside(o, x, number))
    return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: writes outside of %s", program->variant, o->shape, x->row->name);
  if (!is_wanted(o, x, number)) return WLM_OK;
  if (is_position(x)) return compare_positions(program, o, x);
  const double worst = wlmi_reference_error(x->type, at(x, x->after), x->ld, NULL, x->lines, x->row->columns,
                                            expected->value, expected->scale);
  if (worst <= tolerance(o, x)) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s, alpha %g, beta %g, seed %llu: %s: max_rel_err %.3g, allowed %.3g",
                   program->variant, o->shape, o->call.args.alpha, o->call.args.beta,
                   (unsigned long long)o->call.args.seed, x->row->name, worst, tolerance(o, x));
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
      WLM_TRY(compare(program, &o, x, number));
      if (!number) memcpy(x->first, x->after, bytes(x));
      const int repeats = (program->deterministic || !is_dot_of_lines(&o)) && is_wanted(&o, x, number);
      if (repeats && memcmp(x->first, x->after, bytes(x)))
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
  const wlm_operation operation = check->spec->problem.operation;
  const int sddmm = operation == WLM_SDDMM, argmax = operation == WLM_ARGMAX_GRADIENT;
  const int by_edges = !argmax && (pass->units == WLMI_UNITS_NNZ || pass->units == WLMI_UNITS_ROWS_NNZ);
  const int64_t most = sddmm ? 200 : 500, step = by_edges ? pass->units_per_block / (sddmm ? 4 : 1) : sddmm ? 8 : 32;
  test_random random = {check->seed * 0x9E3779B97F4A7C15u | 1};
  wlm_status status = WLM_OK;
  for (int shape = 0; shape < test_shape_count() && status == WLM_OK; shape++)
    status = check_shape(check, program, kernels, step < most ? step : most, shape, &random);
  return status;
}
