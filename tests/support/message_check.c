#include "support/message_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/csr/shares.h"
#include "core/problem/element.h"
#include "core/reference/message.h"
#include "core/reference/reference.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/own.h"
#include "support/shapes.h"

enum { GUARD = 64 }; /* bytes before and after a result that must not be written */

/* An array of the call: `lines` lines of `width` elements, `ld` apart. */
typedef struct array {
  int64_t lines, width, ld;
  size_t size; /* of an element */
  char *host, *after, *first, *device;
} array;

typedef struct operands {
  const char *shape;
  wlmi_csr_host a; /* op(A) */
  int64_t *order;  /* with transpose: where A has each edge */
  int64_t *a_rowptr;
  wlmi_spec spec;
  wlmi_message message;
  array rowptr, colind, values, order_array, a_rowptr_array, workspace, prepared;
  array bias, in[WLM_MAX_OPERANDS], out[WLM_MAX_RESULTS], places[WLM_MAX_RESULTS];
  wlm_message_args call; /* of host memory */
  uint64_t seed;         /* of sampling */
} operands;

static int64_t rows_of_a(const operands *o) { return o->spec.problem.transpose ? o->a.cols : o->a.rows; }
static int64_t cols_of_a(const operands *o) { return o->spec.problem.transpose ? o->a.rows : o->a.cols; }

static size_t bytes(const array *x) { return (size_t)(x->lines * x->ld) * x->size; }

/* A result has guards; all of it is poisoned. */
static wlm_status make(array *x, int64_t lines, int64_t width, int64_t ld, size_t size, int is_result) {
  const size_t guards = is_result ? 2 * GUARD : 0;
  wlm_status status;
  *x = (array){.lines = lines, .width = width, .ld = ld, .size = size};
  WLM_TRY(wlmi_alloc_array(1, bytes(x) + guards + 1, "array", (void **)&x->host));
  memset(x->host, 0xff, bytes(x) + guards);
  if (!is_result) goto done;
  WLM_TRY(wlmi_alloc_array(1, bytes(x) + guards, "array", (void **)&x->after));
  WLM_TRY(wlmi_alloc_array(1, bytes(x) + guards, "array", (void **)&x->first));
done:
  return status;
}

static int has_product(const wlmi_message *message) {
  for (int r = 0; r < message->results; r++)
    if (message->result[r].kind == WLMI_RESULT_PROD) return 1;
  return 0;
}

/* Short binary fractions, whose products and sums are exact, so that no rounding decides a comparison. Of a long
 * product nearly all are 1, so that it stays in the range of its type. */
static double draw_value(const operands *o, test_random *random) {
  double value = (double)(1 + test_draw(random, 16)) / 8;
  if (has_product(&o->message)) value = test_draw(random, 64) ? 1 : test_draw(random, 2) ? 2 : 0.5;
  return test_draw(random, 2) ? value : -value;
}

static int ascending(const void *left, const void *right) {
  const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  return (a > b) - (a < b);
}

/* The order of a real A^T, whose rows have ascending columns, and A's rowptr. */
static wlm_status make_order(operands *o) {
  int64_t *next = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(o->a.nnz, sizeof *o->order, "order", (void **)&o->order));
  WLM_TRY(wlmi_alloc_array(rows_of_a(o) + 1, sizeof *o->a_rowptr, "rowptr", (void **)&o->a_rowptr));
  if (!o->spec.problem.transpose) {
    for (int64_t p = 0; p < o->a.nnz; p++) o->order[p] = p;
    memcpy(o->a_rowptr, o->a.rowptr, (size_t)(o->a.rows + 1) * sizeof *o->a_rowptr);
    return WLM_OK;
  }
  for (int64_t row = 0; row < o->a.rows; row++)
    qsort(o->a.colind + o->a.rowptr[row], (size_t)(o->a.rowptr[row + 1] - o->a.rowptr[row]), sizeof *o->a.colind,
          ascending);
  memset(o->a_rowptr, 0, (size_t)(rows_of_a(o) + 1) * sizeof *o->a_rowptr);
  for (int64_t p = 0; p < o->a.nnz; p++) o->a_rowptr[o->a.colind[p] + 1]++;
  for (int64_t row = 0; row < rows_of_a(o); row++) o->a_rowptr[row + 1] += o->a_rowptr[row];
  WLM_TRY(wlmi_alloc_array(rows_of_a(o) + 1, sizeof *next, "order", (void **)&next));
  memcpy(next, o->a_rowptr, (size_t)(rows_of_a(o) + 1) * sizeof *next);
  for (int64_t p = 0; p < o->a.nnz; p++) o->order[p] = next[o->a.colind[p]]++;
done:
  wlmi_free(next);
  return status;
}

/* How often the samples of A's rows take each edge of op(A). */
static wlm_status make_shares(operands *o) {
  wlmi_csr_host sampled = {.rows = rows_of_a(o), .nnz = o->a.nnz, .rowptr = o->a_rowptr};
  wlmi_edge_share *shares = NULL;
  wlm_status status = WLM_OK;
  if (o->spec.problem.sampling.sample == WLM_SAMPLE_NONE) return status;
  WLM_TRY(wlmi_sample_shares(&sampled, &o->spec.problem, o->seed, &shares));
  WLM_TRY(wlmi_alloc_array(o->a.nnz, sizeof *shares, "shares", (void **)&o->a.shares));
  for (int64_t p = 0; p < o->a.nnz; p++) o->a.shares[p] = shares[o->order[p]];
done:
  wlmi_free(shares);
  return status;
}

static wlm_status make_indices(array *x, wlm_index type, int base, const int64_t *wide, const int32_t *narrow,
                               int64_t count) {
  const wlm_status status = make(x, count, 1, 1, wlmi_index_size(type), 0);
  for (int64_t i = 0; status == WLM_OK && i < count; i++) {
    const int64_t value = base + (wide ? wide[i] : narrow[i]);
    if (type == WLM_I64)
      ((int64_t *)x->host)[i] = value;
    else
      ((int32_t *)x->host)[i] = (int32_t)value;
  }
  return status;
}

static wlm_status make_values(operands *o, test_random *random) {
  const int64_t heads = o->spec.problem.heads;
  wlm_status status = WLM_OK;
  if (!o->spec.has_values) return status;
  WLM_TRY(wlmi_alloc_array(o->a.nnz * heads, sizeof(float), "values", (void **)&o->a.values));
  WLM_TRY(make(&o->values, o->a.nnz, heads, heads, wlmi_type_size(o->spec.value_type), 0));
  for (int64_t i = 0; i < o->a.nnz * heads; i++) {
    o->a.values[i] = (float)draw_value(o, random);
    wlmi_element_put(o->spec.value_type, o->values.host, o->order[i / heads] * heads + i % heads,
                     (double)o->a.values[i]);
  }
done:
  return status;
}

/* Whether the line of an operand is one that some edge has. */
static int is_read(const operands *o, wlm_place place, int64_t line) {
  const int own = place == (o->spec.problem.transpose ? WLM_PLACE_COLUMN : WLM_PLACE_ROW);
  if (place == WLM_PLACE_EDGE || place == WLM_PLACE_ALL) return 1;
  if (own) return o->a.rowptr[line + 1] > o->a.rowptr[line];
  if (o->spec.problem.transpose) return o->a_rowptr[line + 1] > o->a_rowptr[line];
  for (int64_t p = 0; p < o->a.nnz; p++)
    if (o->a.colind[p] == line) return 1;
  return 0;
}

/* Positions of winners: an edge of the row of A. */
static void fill_wins(const operands *o, test_random *random, array *x) {
  for (int64_t i = 0; i < x->lines * x->width; i++) {
    const int64_t row = i / x->width, begin = o->a_rowptr[row], degree = o->a_rowptr[row + 1] - begin;
    const int64_t at = row * x->ld + i % x->width,
                  place = degree ? begin + (int64_t)test_draw(random, (uint64_t)degree) : -1;
    if (x->size == sizeof(int64_t))
      ((int64_t *)x->host)[at] = place;
    else
      ((int32_t *)x->host)[at] = (int32_t)place;
  }
}

/* Of a number that is no position. */
static wlm_type type_of_operand(const operands *o, int i) {
  const wlm_type dense = o->spec.problem.dense_type;
  return wlmi_width_is_pair(o->message.operand[i].width) ? wlmi_accumulator_type(dense) : dense;
}
static wlm_type type_of_result(const operands *o, int r) {
  const wlm_type dense = o->spec.problem.dense_type;
  return o->message.result[r].kind == WLMI_RESULT_SCORE ? wlmi_accumulator_type(dense) : dense;
}

static wlm_status make_operand(operands *o, test_random *random, int i) {
  const wlm_problem *p = &o->spec.problem;
  const wlmi_message_operand *operand = &o->message.operand[i];
  const int64_t lines[] = {rows_of_a(o), cols_of_a(o), o->a.nnz, 1}, width = wlmi_width_columns(p, operand->width);
  const int wins = operand->width == WLM_WIDTH_WINS;
  array *x = &o->in[i];
  o->call.scalars[i] = 0.75;
  if (operand->source != WLMI_SOURCE_MEMORY) return WLM_OK;
  const int64_t ld = width + (int64_t)(test_draw(random, 2) ? 0 : test_draw(random, 2) ? 8 : 3);
  const wlm_status status = make(x, lines[operand->place], width, ld,
                                 wins ? wlmi_index_size(p->argmax_type) : wlmi_type_size(type_of_operand(o, i)), 0);
  if (status != WLM_OK) return status;
  if (wins) fill_wins(o, random, x);
  for (int64_t line = 0; !wins && line < x->lines; line++)
    for (int64_t j = 0; j < width && is_read(o, operand->place, line); j++)
      wlmi_element_put(type_of_operand(o, i), x->host, line * ld + j, draw_value(o, random));
  o->call.operands[i] = x->host;
  o->call.operand_ld[i] = ld;
  return WLM_OK;
}

static wlm_status make_result(operands *o, test_random *random, int r) {
  const wlm_problem *p = &o->spec.problem;
  const wlmi_result_kind kind = o->message.result[r].kind;
  const int64_t lines = wlmi_result_is_of_row(kind) ? o->a.rows : o->a.nnz;
  const int64_t width = wlmi_width_columns(p, wlmi_result_width(kind));
  const int64_t ld = width + (int64_t)(test_draw(random, 2) ? 0 : test_draw(random, 2) ? 8 : 5);
  wlm_status status;
  o->call.result_ld[r] = ld;
  WLM_TRY(make(&o->out[r], lines, width, ld, wlmi_type_size(type_of_result(o, r)), 1));
  if (p->want_argmax && wlmi_result_is_extreme(kind))
    WLM_TRY(make(&o->places[r], lines, width, ld, wlmi_index_size(p->argmax_type), 1));
done:
  return status;
}

static wlm_status operands_make(const kernel_check *check, int64_t step, int shape, test_random *random, operands *o) {
  const wlm_message_args none = WLM_MESSAGE_ARGS_INIT;
  wlm_status status;
  *o = (operands){.shape = test_shape_name(shape), .spec = *check->spec, .call = none};
  WLM_TRY(wlmi_message_parse(o->spec.custom, &o->message));
  WLM_TRY(test_shape_make(shape, step, 577, random, &o->a));
  o->seed = test_draw(random, 2) ? test_draw(random, 1 << 30) : 0;
  WLM_TRY(make_order(o));
  WLM_TRY(make_shares(o));
  WLM_TRY(make_indices(&o->rowptr, o->spec.rowptr_type, o->spec.base, o->a.rowptr, NULL, o->a.rows + 1));
  WLM_TRY(make_indices(&o->colind, o->spec.colind_type, o->spec.base, NULL, o->a.colind, o->a.nnz));
  WLM_TRY(make_indices(&o->order_array, o->spec.rowptr_type, 0, o->order, NULL, o->a.nnz));
  WLM_TRY(make_indices(&o->a_rowptr_array, o->spec.rowptr_type, o->spec.base, o->a_rowptr, NULL, rows_of_a(o) + 1));
  WLM_TRY(make_values(o, random));
  if (check->spec->problem.epilogue.bias) {
    const wlm_problem *p = &o->spec.problem;
    WLM_TRY(make(&o->bias, 1, p->n, p->n, wlmi_type_size(p->dense_type), 0));
    for (int64_t j = 0; j < p->n; j++) wlmi_element_put(p->dense_type, o->bias.host, j, draw_value(o, random));
  }
  for (int i = 0; i < o->message.operands; i++) WLM_TRY(make_operand(o, random, i));
  for (int r = 0; r < o->message.results; r++) WLM_TRY(make_result(o, random, r));
done:
  return status;
}

static void drop(wlmi_device *device, array *x) {
  wlmi_free(x->host);
  wlmi_free(x->after);
  wlmi_free(x->first);
  if (x->device) device->ops->release(device, x->device);
}

static void operands_release(wlmi_device *device, operands *o) {
  array *const single[] = {&o->rowptr,         &o->colind,    &o->values,   &o->order_array,
                           &o->a_rowptr_array, &o->workspace, &o->prepared, &o->bias};
  for (size_t i = 0; i < sizeof single / sizeof *single; i++) drop(device, single[i]);
  for (int i = 0; i < WLM_MAX_OPERANDS; i++) drop(device, &o->in[i]);
  for (int r = 0; r < WLM_MAX_RESULTS; r++) drop(device, &o->out[r]), drop(device, &o->places[r]);
  wlmi_csr_host_release(&o->a);
  wlmi_free(o->order);
  wlmi_free(o->a_rowptr);
  wlmi_message_release(&o->message);
}

/* ---- on the device -------------------------------------------------------------------------------- */

static size_t whole(const array *x) { return bytes(x) + (x->after ? 2 * GUARD : 0); }

/* Copies the array to the device; *to is where its first element lies. */
static wlm_status put(wlmi_device *device, array *x, void **to) {
  wlm_status status = WLM_OK;
  if (!x->host) return WLM_OK;
  if (!x->device) WLM_TRY(device->ops->allocate(device, whole(x) + 1, (void **)&x->device));
  if (whole(x)) WLM_TRY(device->ops->copy_in(device, x->device, x->host, whole(x)));
  if (to) *to = x->device + (x->after ? GUARD : 0);
done:
  return status;
}

static wlm_status put_poison(wlmi_device *device, size_t size, array *x) {
  if (!size) return WLM_OK;
  const wlm_status status = x->device ? WLM_OK : device->ops->allocate(device, size, (void **)&x->device);
  return status == WLM_OK ? device->ops->fill(device, x->device, 0xff, size) : status;
}

static wlm_status put_all(wlmi_device *device, operands *o, wlm_message_args *message) {
  array *const pattern[] = {&o->rowptr, &o->colind, &o->values, &o->order_array, &o->a_rowptr_array, &o->bias};
  wlm_status status;
  *message = o->call;
  for (size_t i = 0; i < sizeof pattern / sizeof *pattern; i++) WLM_TRY(put(device, pattern[i], NULL));
  for (int i = 0; i < o->message.operands; i++) WLM_TRY(put(device, &o->in[i], (void **)&message->operands[i]));
  for (int r = 0; r < o->message.results; r++) {
    WLM_TRY(put(device, &o->out[r], &message->results[r]));
    WLM_TRY(put(device, &o->places[r], &message->positions[r]));
  }
done:
  return status;
}

static wlm_status run(const kernel_check *check, const wlmi_program *program, void *const kernels[WLMI_MAX_PASSES],
                      operands *o, int number) {
  wlmi_device *device = check->device;
  wlm_plan plan = {0};
  wlm_message_args message;
  wlm_status status;
  WLM_TRY(put_all(device, o, &message));
  wlm_csr csr = CSR(.rows = o->a.rows, .cols = o->a.cols, .nnz = o->a.nnz, .rowptr = o->rowptr.device,
                    .colind = o->colind.device, .values = o->values.device, .rowptr_type = o->spec.rowptr_type,
                    .colind_type = o->spec.colind_type, .value_type = o->spec.value_type);
  WLM_TRY(bare_plan_fill(&plan, device, program, kernels, &csr, &o->spec));
  plan.bound.args.order = o->spec.problem.transpose ? o->order_array.device : NULL;
  plan.bound.args.a_rowptr = o->a_rowptr_array.device;
  WLM_TRY(put_poison(device, wlm_plan_workspace_size(&plan), &o->workspace));
  WLM_TRY(put_poison(device, wlm_plan_prepared_size(&plan), &o->prepared));
  if (check->before_run) check->before_run(check->user, number);
  if (wlm_plan_prepared_size(&plan)) WLM_TRY(wlm_plan_prepare(&plan, o->prepared.device, NULL));
  wlm_execute_args call =
      EXECUTE_ARGS(.operands = &message, .seed = o->seed, .bias = o->bias.device, .workspace = o->workspace.device);
  WLM_TRY(test_execute_args(&plan, call));
  WLM_TRY(device->ops->synchronize(device, NULL));
  for (int r = 0; r < o->message.results; r++) {
    array *const results[] = {&o->out[r], &o->places[r]};
    for (int i = 0; i < 2; i++)
      if (results[i]->after)
        WLM_TRY(device->ops->copy_out(device, results[i]->after, results[i]->device, whole(results[i])));
  }
done:
  return status;
}

/* ---- comparing ------------------------------------------------------------------------------------ */

static wlm_status check_outside(const wlmi_program *program, const operands *o, const array *x, int r) {
  const char *before = x->host, *after = x->after;
  int outside = memcmp(before, after, GUARD) || memcmp(before + GUARD + bytes(x), after + GUARD + bytes(x), GUARD);
  for (int64_t line = 0; line < x->lines && x->ld > x->width; line++) {
    const size_t at = GUARD + (size_t)(line * x->ld + x->width) * x->size;
    outside |= memcmp(before + at, after + at, (size_t)(x->ld - x->width) * x->size) != 0;
  }
  if (!outside) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: writes outside of result %d", program->variant, o->shape, r);
}

static wlm_status compare(const wlmi_program *program, const operands *o, int r,
                          const wlmi_reference_result *expected) {
  const wlm_problem *p = &o->spec.problem;
  const array *x = &o->out[r];
  const wlm_type sums = wlmi_accumulator_type(p->dense_type), type = type_of_result(o, r);
  int64_t longest = 0;
  for (int64_t row = 0; row < o->a.rows; row++)
    if (o->a.rowptr[row + 1] - o->a.rowptr[row] > longest) longest = o->a.rowptr[row + 1] - o->a.rowptr[row];
  const double roundings = wlmi_expression_roundings(&o->message.result[r].value);
  const double allowed = (8 + roundings + 2 * sqrt((double)(longest + p->n))) * wlmi_element_unit(sums) +
                         (type == sums ? 0 : wlmi_element_unit(type));
  const wlm_status status = check_outside(program, o, x, r);
  if (status != WLM_OK) return status;
  const double worst =
      wlmi_reference_error(type, x->after + GUARD, x->ld, NULL, x->lines, x->width, expected->value, expected->scale);
  if (worst <= allowed) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: result %d of %s: max_rel_err %.3g, allowed %.3g", program->variant,
                   o->shape, r, o->spec.custom, worst, allowed);
}

static wlm_status compare_places(const wlmi_program *program, const operands *o, int r, const int64_t *expected) {
  const array *x = &o->places[r];
  if (!x->after) return WLM_OK;
  const wlm_status status = check_outside(program, o, x, r);
  for (int64_t i = 0; status == WLM_OK && i < x->lines * x->width; i++) {
    const int64_t at = i / x->width * x->ld + i % x->width;
    const int64_t place = x->size == sizeof(int64_t) ? ((const int64_t *)(x->after + GUARD))[at]
                                                     : ((const int32_t *)(x->after + GUARD))[at];
    if (place != expected[i])
      return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: position [%lld,%lld] of result %d is %lld, not %lld",
                       program->variant, o->shape, (long long)(i / x->width), (long long)(i % x->width), r,
                       (long long)place, (long long)expected[i]);
  }
  return status;
}

/* Edge results are compared in the order of A. */
static wlm_status results_make(const operands *o, wlmi_reference_result *results) {
  const wlmi_message_walk walk = {&o->a,    &o->spec.problem, &o->message,  &o->call,
                                  o->order, o->a_rowptr,      o->bias.host, o->seed};
  wlm_status status;
  for (int r = 0; r < o->message.results; r++) {
    const array *x = &o->out[r];
    WLM_TRY(wlmi_alloc_array(x->lines * x->width, sizeof(double), "reference", (void **)&results[r].value));
    WLM_TRY(wlmi_alloc_array(x->lines * x->width, sizeof(double), "reference", (void **)&results[r].scale));
    if (o->places[r].host)
      WLM_TRY(wlmi_alloc_array(x->lines * x->width, sizeof(int64_t), "reference", (void **)&results[r].positions));
  }
  status = wlmi_reference_message(&walk, NULL, o->a.rows, o->a.rowptr, results);
done:
  return status;
}

static wlm_status reorder(const operands *o, int64_t width, double *edges) {
  WLM_FREED double *copy = NULL;
  const wlm_status status = wlmi_alloc_array(o->a.nnz * width, sizeof *copy, "reference", (void **)&copy);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < o->a.nnz * width; i++) copy[o->order[i / width] * width + i % width] = edges[i];
  memcpy(edges, copy, (size_t)(o->a.nnz * width) * sizeof *copy);
  return WLM_OK;
}

static wlm_status check_same_bits(const wlmi_program *program, const operands *o, int number, array *x) {
  if (!x->after) return WLM_OK;
  if (!number) memcpy(x->first, x->after, whole(x));
  if (!memcmp(x->first, x->after, whole(x))) return WLM_OK;
  return wlmi_fail(WLM_ERR_MISMATCH, "%s, %s: run %d gives other bits than the first", program->variant, o->shape,
                   number);
}

static wlm_status check_shape(const kernel_check *check, const wlmi_program *program,
                              void *const kernels[WLMI_MAX_PASSES], int64_t step, int shape, test_random *random) {
  operands o = {0};
  wlmi_reference_result results[WLM_MAX_RESULTS] = {{0}};
  wlm_status status;
  WLM_TRY(operands_make(check, step, shape, random, &o));
  WLM_TRY(results_make(&o, results));
  for (int r = 0; r < o.message.results; r++) {
    if (wlmi_result_is_of_row(o.message.result[r].kind)) continue;
    WLM_TRY(reorder(&o, o.out[r].width, results[r].value));
    WLM_TRY(reorder(&o, o.out[r].width, results[r].scale));
  }
  for (int number = 0; number < check->runs; number++) {
    WLM_TRY(run(check, program, kernels, &o, number));
    for (int r = 0; r < o.message.results; r++) {
      WLM_TRY(compare(program, &o, r, &results[r]));
      WLM_TRY(compare_places(program, &o, r, results[r].positions));
      WLM_TRY(check_same_bits(program, &o, number, &o.out[r]));
      WLM_TRY(check_same_bits(program, &o, number, &o.places[r]));
    }
  }
done:
  operands_release(check->device, &o);
  for (int r = 0; r < WLM_MAX_RESULTS; r++) {
    wlmi_free(results[r].value);
    wlmi_free(results[r].scale);
    wlmi_free(results[r].positions);
  }
  return status;
}

wlm_status message_check_program(const kernel_check *check, const wlmi_program *program,
                                 void *const kernels[WLMI_MAX_PASSES]) {
  const wlmi_pass *pass = wlmi_program_first_execute(program);
  const int64_t step = pass->units == WLMI_UNITS_NNZ || pass->units == WLMI_UNITS_ROWS_NNZ ? pass->units_per_block : 32;
  test_random random = {check->seed * 0x9E3779B97F4A7C15u | 1};
  wlm_status status = WLM_OK;
  for (int shape = 0; shape < test_shape_count() && status == WLM_OK; shape++)
    status = check_shape(check, program, kernels, step < 500 ? step : 500, shape, &random);
  return status;
}
