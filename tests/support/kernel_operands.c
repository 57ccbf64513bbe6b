#include "support/kernel_operands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csr/shares.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"
#include "core/reference/attention.h"
#include "support/own.h"

static int is_rows(const operands *o) { return is_of(o, WLM_ATTENTION_ROWS); }
static int is_backward(const operands *o) { return is_rows(o) || (is_of(o, WLM_ATTENTION) && walks_transpose(o)); }
static int is_sampled(const operands *o) { return o->spec.problem.sampling.sample != WLM_SAMPLE_NONE; }
static int64_t a_rows(const operands *o) { return walks_transpose(o) ? o->a.cols : o->a.rows; }
static int64_t a_cols(const operands *o) { return walks_transpose(o) ? o->a.rows : o->a.cols; }

static int has_product(const wlmi_message *message) {
  for (int r = 0; r < message->results; r++)
    if (message->result[r].kind == WLMI_RESULT_PROD) return 1;
  return 0;
}

/* Short binary fractions, far from 0: their products and sums are exact, so that no rounding decides a comparison and a
 * missing edge shows. In products of f64 they have digits that float lacks. So that no partial product leaves the range
 * of its type, those of `prod` are positive with all messages above 1 or all below, and nearly all of a message 1. */
static double draw_value(const operands *o, test_random *random, int is_a) {
  double value = (double)(8 + test_draw(random, 17)) / 16;
  if (is_product(o) && o->spec.problem.reduce == WLM_PROD)
    return (double)(is_a ? test_draw_between(random, 0.7f, 0.8f) : test_draw_between(random, 1.45f, 1.55f));
  if (is_product(o) && o->spec.problem.dense_type == WLM_F64) value += (double)test_draw(random, 16) * 0x1p-36;
  if (has_product(&o->message)) value = test_draw(random, 64) ? 1 : test_draw(random, 2) ? 2 : 0.5;
  return test_draw(random, 2) ? value : -value;
}

/* A NaN or an infinity. A product of numbers may overflow in float and not in double, so `prod` gets NaN only. */
static double draw_strange(const operands *o, test_random *random) {
  static const double strange[] = {NAN, INFINITY, -INFINITY};
  return strange[test_draw(random, is_product(o) && o->spec.problem.reduce == WLM_PROD ? 1 : 3)];
}

/* Filled with NaN of every type; that of outputs differs from what the device fills with. */
static wlm_status make_array(operands *o, int which, size_t size, int64_t lines, int64_t ld) {
  array *x = &o->arrays[which];
  x->size = size;
  x->lines = lines;
  x->ld = ld;
  WLM_CHECK(wlmi_alloc_array(1, bytes(x) + 1, "operand", (void **)&x->host));
  memset(x->host, 0xff, bytes(x));
  if (!is_output(x)) return WLM_OK;
  for (size_t i = 0; i < bytes(x); i += size) x->host[i] = (char)0xa5;
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

/* Makes the pattern of A from its transpose op(A), with unsorted columns. The order gives the sequence in which
 * the edges of op(A) are inserted; on return it is that of A. */
static wlm_status make_walked(operands *o) {
  const wlmi_csr_host *a = &o->a;
  wlmi_csr_host *walked = &o->walked;
  int64_t *const order = o->order;
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
  memcpy(o->a_rowptr, walked->rowptr, (size_t)(a->cols + 1) * sizeof *o->a_rowptr);
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

/* Of a product. */
static int needs_a(const operands *o) {
  return is_product(o) && o->spec.problem.transpose && (o->walks_a || is_sampled(o));
}

/* Edges of a transpose are in any order; those of a message must be of one A, with columns in their order. */
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
  return needs_a(o) ? make_walked(o) : WLM_OK;
}

static wlm_status make_pattern(operands *o, test_random *random) {
  const wlmi_csr_host *seen = seen_by_kernels(o);
  const int64_t edges = o->a.nnz + o->rowless;
  const size_t offset = wlmi_index_size(o->spec.rowptr_type), index = wlmi_index_size(o->spec.colind_type);
  WLM_CHECK(make_order(o, random));
  WLM_CHECK(make_array(o, ROWPTR, offset, seen->rows + 1, 1));
  WLM_CHECK(make_array(o, COLIND, index, edges, 1));
  WLM_CHECK(make_array(o, ORDER, offset, edges, 1));
  WLM_CHECK(make_array(o, A_ROWPTR, offset, a_rows(o) + 1, 1));
  for (int64_t i = 0; i <= seen->rows; i++) put_index(&o->arrays[ROWPTR], i, seen->rowptr[i] + o->spec.base);
  for (int64_t i = 0; i <= a_rows(o); i++) put_index(&o->arrays[A_ROWPTR], i, o->a_rowptr[i] + o->spec.base);
  for (int64_t p = 0; p < edges; p++)
    put_index(&o->arrays[COLIND], p, (p < o->a.nnz ? seen->colind[p] : 0) + o->spec.base);
  for (int64_t q = 0; q < edges; q++) put_index(&o->arrays[ORDER], q, q < o->a.nnz ? o->order[q] : 0);
  return WLM_OK;
}

/* How often the samples of A's rows take each edge of op(A). */
static wlm_status make_shares(operands *o) {
  const wlmi_csr_host sampled = {.rows = a_rows(o), .nnz = o->a.nnz, .rowptr = o->a_rowptr};
  WLM_FREED wlmi_edge_share *shares = NULL;
  if (!is_sampled(o) || !(is_message(o) || needs_a(o))) return WLM_OK;
  WLM_CHECK(wlmi_sample_shares(&sampled, &o->spec.problem, o->call.args.seed, &shares));
  WLM_CHECK(wlmi_alloc_array(o->a.nnz, sizeof *shares, "shares", (void **)&o->a.shares));
  for (int64_t p = 0; p < o->a.nnz; p++) o->a.shares[p] = shares[o->order[p]];
  return WLM_OK;
}

/* Of attention, masks some edges, and all of some rows. If a product has `strange` values, single heads of it have NaN,
 * which affects their columns only. */
static wlm_status make_values(operands *o, test_random *random, int strange) {
  const int64_t heads = o->spec.problem.heads, count = o->a.nnz * heads;
  const int masks = wlmi_is_attention(&o->spec.problem), wide = is_product(o) && o->spec.value_type == WLM_F64;
  const wlm_type type = o->spec.value_type;
  array *x = &o->arrays[VALUES];
  if (!o->spec.has_values) return WLM_OK;
  if (wide) WLM_CHECK(wlmi_alloc_array(count, sizeof(double), "values", (void **)&o->a.wide));
  if (!wide) WLM_CHECK(wlmi_alloc_array(count, sizeof(float), "values", (void **)&o->a.values));
  WLM_CHECK(make_array(o, VALUES, wlmi_type_size(type), o->a.nnz + o->rowless, heads));
  for (int64_t i = count; i < x->lines * heads && !is_product(o); i++)
    wlmi_element_put(type, x->host, i, draw_value(o, random, 1));
  for (int64_t row = 0; row < o->a.rows; row++) {
    const int masked = masks && !test_draw(random, 7);
    for (int64_t i = o->a.rowptr[row] * heads; i < o->a.rowptr[row + 1] * heads; i++) {
      const int64_t to = o->order[i / heads] * heads + i % heads;
      double value = masked || (masks && !test_draw(random, 6)) ? -INFINITY : draw_value(o, random, 1);
      if (strange && heads > 1 && !test_draw(random, 40)) value = NAN;
      wlmi_element_put(type, x->host, to, value);
      if (wide) o->a.wide[i] = wlmi_element_get(type, x->host, to);
      if (!wide) o->a.values[i] = (float)wlmi_element_get(type, x->host, to);
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

/* If a product has `strange` operands, some elements of B that are read are NaN or infinite. */
static void fill(const operands *o, test_random *random, array *x, const used *u, int strange) {
  const int is_b = !strcmp(x->row->name, "b");
  char *to = at(x, x->host);
  for (int64_t i = 0; i < elements(x); i++) {
    const int64_t line = i / x->ld, column = i % x->ld;
    if (is_position(x))
      put_index(x, i, column < x->row->columns ? o->winners[line * x->row->columns + column] : 1 << 30);
    else if (is_read(o, x->row, line, column, u) && !(strange && is_b && !test_draw(random, 40)))
      wlmi_element_put(x->type, to, i, draw_value(o, random, 0));
    else
      wlmi_element_put(x->type, to, i, draw_strange(o, random));
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
  for (int64_t i = 0; i < x->lines * x->ld && o->call.args.beta != 0 && !x->row->result && !is_position(x); i++)
    if (i % x->ld < x->row->columns) wlmi_element_put(x->type, at(x, x->host), i, draw_value(o, random, 0));
}

char *struct_of(const wlmi_array *row, call *c) {
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

static wlm_status make_one(operands *o, test_random *random, int i, const used *u, int wide, int strange) {
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
    fill(o, random, x, u, strange);
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

static int64_t shift_of(const wlmi_array *row, int64_t of_b, int64_t of_c, int64_t of_argmax) {
  return !strcmp(row->name, "b") ? of_b : !strcmp(row->name, "c") ? of_c : !strcmp(row->name, "argmax") ? of_argmax : 0;
}

/* Everything of the call but its arrays. Messages have neither alpha, beta, nor leading dimensions there, and gradients
 * by argmax no beta. */
static void make_call(operands *o, test_random *random) {
  /* |alpha| >= 1, so that no sum that overflows in float becomes finite by alpha. */
  static const struct {
    double alpha, beta;
    int64_t more_b, more_c, shift_b, shift_c, shift_argmax; /* the shifts are of products */
  } calls[] = {{1, 0, 0, 0, 0, 0, 0}, {1.5, 0, 3, 0, 0, 0, 0}, {-2, 0.5, 0, 5, 0, 1, 0}, {1, 1, 8, 8, 0, 0, 0},
               {1, 0, 8, 0, 1, 0, 0}, {1.5, 0, 0, 3, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 1}};
  const uint64_t number = test_draw(random, sizeof calls / sizeof *calls - !o->spec.problem.want_argmax);
  const wlm_problem *p = &o->spec.problem;
  o->call = (call){WLM_EXECUTE_ARGS_INIT, WLM_ATTENTION_OPERANDS_INIT, WLM_MESSAGE_ARGS_INIT};
  if (!o->table.unscaled) o->call.args.alpha = calls[number].alpha;
  if (!o->table.unscaled && !is_argmax(o)) o->call.args.beta = calls[number].beta;
  if (!is_message(o)) o->call.args.ldb = p->n + calls[number].more_b;
  if (!is_message(o)) o->call.args.ldc = p->n + calls[number].more_c;
  o->call.attention.ldt = (wlmi_score_is_sum(p->score) ? p->n : p->heads) + (int64_t)test_draw(random, 3);
  if ((is_sampled(o) || is_message(o)) ? test_draw(random, 2) : !is_product(o))
    o->call.args.seed = 1 + (test_draw(random, 1 << 30) << 20);
  o->call.attention.dropout = p->dropout ? 0.375 : 0;
  o->call.attention.slope = test_draw(random, 3) ? 0.25 : 1.5;
  o->call.attention.scale = p->score == WLM_SCORE_DOT ? 0.75 : 1;
  for (int i = 0; i < WLM_MAX_OPERANDS; i++) o->call.message.scalars[i] = 0.75;
  for (int i = 0; i < o->table.count && is_product(o); i++)
    o->arrays[OF_TABLE + i].shift =
        shift_of(&o->table.list[i], calls[number].shift_b, calls[number].shift_c, calls[number].shift_argmax);
}

/* The non-zeros that a kernel of the program processes at once, or less, so that the reference does not take long. */
static int64_t step_of(const operands *o, const wlmi_program *program) {
  const wlmi_pass *pass = wlmi_program_first_execute(program);
  const int by_edges = pass->units == WLMI_UNITS_NNZ || pass->units == WLMI_UNITS_ROWS_NNZ;
  const int64_t step = by_edges ? pass->units_per_block : 32;
  if (is_product(o)) return step;
  if (is_argmax(o)) return 32;
  if (is_of(o, WLM_SDDMM)) return !by_edges ? 8 : step < 800 ? step / 4 : 200;
  return step < 500 ? step : 500;
}

/* The length of the longest row. Of products: more than the width of a sample, more than the stride of fastrand (577)
 * if that is smaller, and long enough that merge_path's carry pass, which adds 8 tiles of 128 items at a time, needs
 * more than one step. Published fastrand takes edges of the long row of an SDDMM repeatedly. */
static int64_t longest_of(const operands *o, int64_t step) {
  const int64_t longest = 2 * step + step / 2 > 2200 ? 2 * step + step / 2 : 2200,
                width = o->spec.problem.sampling.width;
  if (is_product(o)) return is_sampled(o) && longest <= width ? width + 70 : longest;
  return is_of(o, WLM_SDDMM) && is_sampled(o) ? 5 * WLMI_FASTRAND_STRIDE : WLMI_FASTRAND_STRIDE;
}

static int is_product_check(const kernel_check *check) { return check->spec->problem.operation == WLM_SPMM; }

int operands_count(const kernel_check *check) { return test_shape_count() + (is_product_check(check) ? 3 : 0); }

wlm_status operands_make(const kernel_check *check, const wlmi_program *program, int number, test_random *random,
                         operands *o) {
  HELD(used) u = {0};
  const int empty = number == test_shape_count() + 2, shape = empty ? 0 : number % test_shape_count();
  const int strange = number >= test_shape_count() && !empty;
  *o = (operands){.shape = empty ? "N = 0" : test_shape_name(shape), .spec = *check->spec};
  wlm_problem *p = &o->spec.problem;
  const int wide = wlmi_is_attention(p) && test_draw(random, 2);
  if (empty) p->n = 0;
  o->walks_a = is_product(o) && program->walks_a;
  if (is_message(o)) WLM_CHECK(wlmi_message_parse(o->spec.custom, &o->message));
  WLM_CHECK(wlmi_arrays_make(&o->spec, &o->table));
  make_call(o, random);
  const int64_t step = step_of(o, program);
  WLM_CHECK(test_shape_make(shape, step, longest_of(o, step), random, &o->a));
  if (needs_a(o)) make_hub(&o->a, random, is_sampled(o));
  const int may_end_early = is_product(o) ? !o->walks_a : !walks_transpose(o) && !is_message(o) && !is_argmax(o);
  if (may_end_early && o->a.rows && o->a.cols && test_draw(random, 2))
    o->rowless = 1 + (int64_t)test_draw(random, 3 * (uint64_t)step);
  WLM_CHECK(make_pattern(o, random));
  WLM_CHECK(make_shares(o));
  WLM_CHECK(make_values(o, random, strange));
  WLM_CHECK(draw_winners(o, random));
  WLM_CHECK(mark_used(o, &u));
  for (int i = 0; i < o->table.count; i++) WLM_CHECK(make_one(o, random, i, &u, wide, strange));
  make_host(o);
  return is_backward(o) ? fill_softmax(o) : WLM_OK;
}

void operands_release(wlmi_device *device, operands *o) {
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
  wlmi_csr_host_release(&o->walked);
  wlmi_free(o->order);
  wlmi_free(o->a_rowptr);
  wlmi_free(o->winners);
  wlmi_message_release(&o->message);
}
