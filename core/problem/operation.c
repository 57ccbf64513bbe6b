#include "core/problem/operation.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/problem/element.h"
#include "core/problem/message.h"

_Static_assert((int)WLM_KERNEL_OPERANDS == (int)WLM_MAX_OPERANDS && (int)WLM_KERNEL_RESULTS == (int)WLM_MAX_RESULTS,
               "kernels have room for all");
_Static_assert(offsetof(struct wlm_message_launch, operands) == sizeof(struct wlm_args) &&
                   offsetof(struct wlm_batch_launch, batch) == sizeof(struct wlm_args) &&
                   offsetof(struct wlm_batch_launch, steps) == sizeof(struct wlm_args) + sizeof(struct wlm_batch) &&
                   offsetof(struct wlm_attention_args, attention) == sizeof(struct wlm_args) &&
                   offsetof(struct wlm_attention_args, products) ==
                       sizeof(struct wlm_args) + sizeof(struct wlm_attention),
               "emitted sources count on it");

/* ---- the operations of wlm_execute_args ----------------------------------------------------------------- */

/* clang-format off */
#define KERNEL(field) offsetof(struct wlm_attention_args, field)
#define ARRAY(where, type, array, at, wide, of, needed, kernel, ...) \
  .name = #array, .in = where, .from = offsetof(type, array), .place = WLM_PLACE_##at, .width = WLM_WIDTH_##wide, \
  .element = WLMI_ELEMENT_##of, .need = WLMI_NEED_##needed, .to = KERNEL(kernel), .condition = WLMI_IF_##__VA_ARGS__
#define IN(...) {ARRAY(WLMI_IN_ARGS, wlm_execute_args, __VA_ARGS__)}
#define OUT(...) {.is_output = 1, ARRAY(WLMI_IN_ARGS, wlm_execute_args, __VA_ARGS__)}
#define LD(field, kernel) .ld_name = #field, .ld_from = offsetof(wlm_execute_args, field), .ld_to = KERNEL(kernel)
/* Of wlm_attention_operands. */
#define A_IN(...) {ARRAY(WLMI_IN_ATTENTION, wlm_attention_operands, __VA_ARGS__)}
#define A_OUT(...) {.is_output = 1, ARRAY(WLMI_IN_ATTENTION, wlm_attention_operands, __VA_ARGS__)}
#define BATCH(field, kernel) \
  .stride_name = #field, .stride_from = offsetof(wlm_execute_args, field), \
  .stride_to = offsetof(struct wlm_batch_launch, batch.kernel)
#define LDT .ld_name = "ldt", .ld_from = offsetof(wlm_attention_operands, ldt), .ld_to = KERNEL(attention.term_stride)
#define RESULT(which) .result = WLMI_RESULT_OF_##which

static const wlmi_array spmm[] = {
  OUT(c,       ROW,    N,     DENSE,    ROWS,    args.c,             ANY, LD(ldc, args.ldc), BATCH(c_stride, c)),
  OUT(argmax,  ROW,    N,     POSITION, ROWS,    args.arg,           ARGMAX, LD(ldc, args.ldc), BATCH(c_stride, arg)),
  IN (b,       COLUMN, N,     DENSE,    EDGES,   args.b,             ANY, LD(ldb, args.ldb), BATCH(b_stride, b)),
  IN (bias,    ALL,    N,     DENSE,    ROWS,    args.bias,          BIAS),
};
static const wlmi_array sddmm[] = {
  OUT(dvalues, EDGE,   HEADS, DENSE,    EDGES,   args.c,             ANY, BATCH(dvalues_stride, c)),
  IN (b,       COLUMN, N,     DENSE,    EDGES,   args.b,             ANY, LD(ldb, args.ldb), BATCH(b_stride, b)),
  IN (x,       ROW,    N,     DENSE,    EDGES,   args.x,             ANY, LD(ldc, args.ldc), BATCH(c_stride, x)),
};
/* Its kernels read argmax of every row, and clear argmax_dvalues, which they get as a workspace. */
static const wlmi_array argmax_gradient[] = {
  OUT(argmax_db,      COLUMN, N,     SUM, NEVER, args.c,         ANY, LD(ldb, args.ldb), BATCH(b_stride, c)),
  OUT(argmax_dvalues, EDGE,   HEADS, SUM, NEVER, args.workspace, ANY, BATCH(dvalues_stride, workspace),
      RESULT(ARGMAX_DVALUES)),
  IN (b,       COLUMN, N,     DENSE,    EDGES,   args.b,             ANY, LD(ldb, args.ldb), BATCH(b_stride, b)),
  IN (x,       ROW,    N,     DENSE,    ROWS,    args.x,             ANY, LD(ldc, args.ldc), BATCH(c_stride, x)),
  IN (argmax,  ROW,    N,     POSITION, ROWS,    args.arg,           ANY, LD(ldc, args.ldc), BATCH(c_stride, arg)),
};
static const wlmi_array attention[] = {
  OUT  (c,       ROW,    N,     DENSE,    ROWS,    args.c,             ANY, LD(ldc, args.ldc)),
  A_OUT(softmax, ROW,    BASE,  SUM,      NEVER,   attention.softmax,  ANY, RESULT(SOFTMAX)),
  IN   (b,       COLUMN, N,     DENSE,    EDGES,   args.b,             ANY, LD(ldb, args.ldb)),
  A_IN (left,    ROW,    HEADS, SUM,      EDGES,   attention.left,     GAT, LDT),
  A_IN (right,   COLUMN, HEADS, SUM,      EDGES,   attention.right,    GAT, LDT),
  A_IN (q,       ROW,    N,     DENSE,    EDGES,   products.q,         SUM, LDT),
  A_IN (att,     ALL,    N,     SUM,      EDGES,   products.att,       GATV2),
  A_IN (k,       COLUMN, N,     DENSE,    EDGES,   products.k,         DOT, LDT),
  IN   (bias,    ALL,    N,     DENSE,    ROWS,    args.bias,          BIAS),
};
/* Its kernels walk A^T, so they get dC as B and db as C. */
static const wlmi_array attention_gradient[] = {
  OUT  (db,      COLUMN, N,     DENSE,    ROWS,    args.c,             ANY, LD(ldb, args.ldc)),
  A_OUT(dk,      COLUMN, N,     DENSE,    NEVER,   products.dk,        DOT, RESULT(DK)),
  A_OUT(dscores, EDGE,   HEADS, SUM,      NEVER,   attention.dvalues,  ANY, RESULT(DSCORES)),
  A_OUT(dright,  COLUMN, HEADS, SUM,      NEVER,   attention.dright,   NOT_DOT, RESULT(DRIGHT)),
  A_OUT(dright,  COLUMN, HEADS, SUM,      REFUSED, attention.dright,   DOT, RESULT(DRIGHT)),
  IN   (b,       COLUMN, N,     DENSE,    ROWS,    args.x,             ANY, LD(ldb, args.ldc)),
  IN   (x,       ROW,    N,     DENSE,    EDGES,   args.b,             ANY, LD(ldc, args.ldb)),
  A_IN (left,    ROW,    HEADS, SUM,      EDGES,   attention.left,     GAT, LDT),
  A_IN (right,   COLUMN, HEADS, SUM,      ROWS,    attention.right,    GAT, LDT),
  A_IN (softmax, ROW,    BASE,  SUM,      EDGES,   attention.softmax,  ANY),
  A_IN (delta,   ROW,    HEADS, SUM,      EDGES,   attention.delta,    ANY),
  A_IN (q,       ROW,    N,     DENSE,    EDGES,   products.q,         SUM, LDT),
  A_IN (att,     ALL,    N,     SUM,      EDGES,   products.att,       GATV2),
  A_IN (k,       COLUMN, N,     DENSE,    EDGES,   products.k,         DOT, LDT),
};
static const wlmi_array attention_rows[] = {
  OUT  (c,       ROW,    N,     DENSE,    ROWS,    args.c,             ANY, LD(ldc, args.ldc)),
  A_OUT(datt,    ROW,    N,     SUM,      NEVER,   products.datt,      GATV2, RESULT(DATT)),
  A_OUT(datt,    ROW,    N,     SUM,      REFUSED, products.datt,      DOT, RESULT(DATT)),
  IN   (b,       COLUMN, N,     DENSE,    EDGES,   args.b,             ANY, LD(ldb, args.ldb)),
  IN   (x,       ROW,    N,     DENSE,    EDGES,   args.x,             ANY, LD(ldc, args.ldc)),
  A_IN (softmax, ROW,    BASE,  SUM,      EDGES,   attention.softmax,  ANY),
  A_IN (delta,   ROW,    HEADS, SUM,      EDGES,   attention.delta,    ANY),
  A_IN (q,       ROW,    N,     DENSE,    EDGES,   products.q,         ANY, LDT),
  A_IN (att,     ALL,    N,     SUM,      ROWS,    products.att,       GATV2),
  A_IN (k,       COLUMN, N,     DENSE,    EDGES,   products.k,         DOT, LDT),
};
/* Of a message that has an epilogue. */
static const wlmi_array message_bias =
  IN (bias,    ALL,    N,     DENSE,    ROWS,    args.bias,          BIAS);
/* clang-format on */

enum { SPMM, SDDMM, ARGMAX_GRADIENT, ATTENTION, ATTENTION_GRADIENT, ATTENTION_ROWS };
#define ARRAYS(list) list, sizeof list / sizeof *list
const wlmi_builtin wlmi_builtins[WLMI_BUILTINS] = {
    [SPMM] = {"WLM_SPMM", 1, NULL, ARRAYS(spmm)},
    [SDDMM] = {"WLM_SDDMM", 0, NULL, ARRAYS(sddmm)},
    [ARGMAX_GRADIENT] = {"WLM_ARGMAX_GRADIENT", 1, NULL, ARRAYS(argmax_gradient)},
    [ATTENTION] = {"WLM_ATTENTION", 0, NULL, ARRAYS(attention)},
    [ATTENTION_GRADIENT] = {"WLM_ATTENTION, transpose", 0, "the gradient of attention", ARRAYS(attention_gradient)},
    [ATTENTION_ROWS] = {"WLM_ATTENTION_ROWS", 0, "the gradient of attention", ARRAYS(attention_rows)},
};

const char *const wlmi_condition_texts[WLMI_CONDITIONS] = {"",
                                                           "epilogue.bias",
                                                           "want_argmax",
                                                           "WLM_SCORE_GAT",
                                                           "WLM_SCORE_GATV2",
                                                           "WLM_SCORE_DOT",
                                                           "WLM_SCORE_GATV2 or _DOT",
                                                           "not WLM_SCORE_DOT"};

static int holds(wlmi_condition condition, const wlm_problem *p) {
  switch (condition) {
    case WLMI_IF_BIAS: return p->epilogue.bias;
    case WLMI_IF_ARGMAX: return p->want_argmax;
    case WLMI_IF_GAT: return p->score == WLM_SCORE_GAT;
    case WLMI_IF_GATV2: return p->score == WLM_SCORE_GATV2;
    case WLMI_IF_DOT: return p->score == WLM_SCORE_DOT;
    case WLMI_IF_SUM: return wlmi_score_is_sum(p->score);
    case WLMI_IF_NOT_DOT: return p->score != WLM_SCORE_DOT;
    default: return 1;
  }
}

/* ---- the table of a spec -------------------------------------------------------------------------------- */

wlm_type wlmi_array_type(const wlmi_array *array, const wlm_problem *p) {
  return array->element == WLMI_ELEMENT_SUM ? wlmi_accumulator_type(p->dense_type) : p->dense_type;
}

static wlm_place mirrored(wlm_place place) {
  return place == WLM_PLACE_ROW ? WLM_PLACE_COLUMN : place == WLM_PLACE_COLUMN ? WLM_PLACE_ROW : place;
}

static wlm_order order_of(const wlm_problem *p, const wlmi_array *array) {
  if (array->in != WLMI_IN_ARGS || !array->ld_name) return WLM_ROW_MAJOR;
  return array->ld_from == offsetof(wlm_execute_args, ldb) ? p->b_order : p->c_order;
}

static wlmi_array *add(const wlm_problem *p, const wlmi_array *from, wlmi_arrays *arrays) {
  const int is_position = from->element == WLMI_ELEMENT_POSITION;
  wlmi_array *array = &arrays->list[arrays->count++];
  *array = *from;
  array->columns = wlmi_width_columns(p, from->width);
  array->size = is_position ? wlmi_index_size(p->argmax_type) : wlmi_type_size(wlmi_array_type(from, p));
  array->by_columns = order_of(p, from) == WLM_COLUMN_MAJOR;
  arrays->has_positions |= is_position;
  return array;
}

static void add_all(const wlmi_builtin *operation, const wlm_problem *p, wlmi_arrays *arrays) {
  *arrays = (wlmi_arrays){.unscaled = operation->unscaled, .as_b = -1, .as_c = -1, .kept = -1};
  for (const wlmi_array *from = operation->arrays; from < operation->arrays + operation->count; from++) {
    if (!holds(from->condition, p)) continue;
    wlmi_array *array = add(p, from, arrays);
    if (operation->is_mirrored && p->transpose) array->place = mirrored(from->place);
  }
}

/* Where array i of wlm_message_args is in the call and in the arguments of kernels, and its leading dimension. */
#define MESSAGE_ARRAY(call, i, kernel)                                                            \
  .in = WLMI_IN_MESSAGE, .from = offsetof(wlm_message_args, call) + (size_t)(i) * sizeof(void *), \
  .to = offsetof(struct wlm_message_launch, operands.kernel) + (size_t)(i) * sizeof(void *)
#define MESSAGE_LD(call, i, kernel)                                                              \
  .ld_name = #call, .ld_from = offsetof(wlm_message_args, call) + (size_t)(i) * sizeof(int64_t), \
  .ld_to = offsetof(struct wlm_message_launch, operands.kernel) + (size_t)(i) * sizeof(long long)

static void add_operand(const wlm_problem *p, const wlmi_message *message, int i, wlmi_arrays *arrays) {
  const wlmi_message_operand *o = &message->operand[i];
  const wlm_place looked_up = p->transpose ? WLM_PLACE_ROW : WLM_PLACE_COLUMN;
  const int is_position = o->width == WLM_WIDTH_WINS;
  const wlmi_array array = {.place = o->place,
                            .width = o->width,
                            .element = is_position                    ? WLMI_ELEMENT_POSITION
                                       : wlmi_width_is_pair(o->width) ? WLMI_ELEMENT_SUM
                                                                      : WLMI_ELEMENT_DENSE,
                            .need = WLMI_NEED_EDGES,
                            MESSAGE_ARRAY(operands, i, in),
                            MESSAGE_LD(operand_ld, i, in_ld)};
  if (arrays->as_b < 0 && o->place == looked_up && o->width == WLM_WIDTH_N) arrays->as_b = i;
  if (o->source == WLMI_SOURCE_KEPT) arrays->kept = i;
  if (o->source != WLMI_SOURCE_MEMORY) return;
  memcpy(add(p, &array, arrays)->name, message->name[i], WLM_OPERAND_NAME);
}

static void add_result(const wlm_problem *p, const wlmi_message *message, int r, wlmi_arrays *arrays) {
  const wlmi_result_kind kind = message->result[r].kind;
  const int of_row = wlmi_result_is_of_row(kind), is_score = kind == WLMI_RESULT_SCORE;
  wlmi_array array = {.is_output = 1,
                      .place = !of_row        ? WLM_PLACE_EDGE
                               : p->transpose ? WLM_PLACE_COLUMN
                                              : WLM_PLACE_ROW,
                      .width = wlmi_result_width(kind),
                      .element = is_score ? WLMI_ELEMENT_SUM : WLMI_ELEMENT_DENSE,
                      .need = is_score ? WLMI_NEED_NEVER
                              : of_row ? WLMI_NEED_ROWS
                                       : WLMI_NEED_EDGES,
                      .result = r,
                      MESSAGE_ARRAY(results, r, out),
                      MESSAGE_LD(result_ld, r, out_ld)};
  if (arrays->as_c < 0 && of_row && !is_score) arrays->as_c = r;
  snprintf(array.name, sizeof array.name, "results[%d]", r);
  add(p, &array, arrays);
  if (!p->want_argmax || !wlmi_result_is_extreme(kind)) return;
  const wlmi_array at = {MESSAGE_ARRAY(positions, r, place)};
  array.from = at.from;
  array.to = at.to;
  array.element = WLMI_ELEMENT_POSITION;
  snprintf(array.name, sizeof array.name, "positions[%d]", r);
  add(p, &array, arrays);
}

static wlm_status make_message(const wlmi_spec *spec, wlmi_arrays *arrays) {
  wlmi_message message;
  WLM_CHECK(wlmi_message_parse(spec->custom, &message));
  *arrays = (wlmi_arrays){.unscaled = "a message", .operands = message.operands, .as_b = -1, .as_c = -1, .kept = -1};
  for (int i = 0; i < message.operands; i++) add_operand(&spec->problem, &message, i, arrays);
  for (int r = 0; r < message.results; r++) add_result(&spec->problem, &message, r, arrays);
  if (holds(message_bias.condition, &spec->problem)) add(&spec->problem, &message_bias, arrays);
  wlmi_message_release(&message);
  return WLM_OK;
}

wlm_status wlmi_arrays_make(const wlmi_spec *spec, wlmi_arrays *arrays) {
  const wlm_problem *p = &spec->problem;
  static const int tables[] = {[WLM_SPMM] = SPMM,
                               [WLM_SDDMM] = SDDMM,
                               [WLM_ATTENTION] = ATTENTION,
                               [WLM_ATTENTION_ROWS] = ATTENTION_ROWS,
                               [WLM_ARGMAX_GRADIENT] = ARGMAX_GRADIENT};
  if (p->operation == WLM_MESSAGE) return make_message(spec, arrays);
  const int is_gradient = p->operation == WLM_ATTENTION && p->transpose;
  add_all(&wlmi_builtins[is_gradient ? ATTENTION_GRADIENT : tables[p->operation]], p, arrays);
  return WLM_OK;
}

void wlmi_arrays_make_optional(wlmi_arrays *arrays, const char *name) {
  for (wlmi_array *array = arrays->list; array < arrays->list + arrays->count; array++)
    if (!strcmp(array->name, name)) array->need = WLMI_NEED_NEVER;
}

int64_t wlmi_array_lines(const wlmi_array *array, int64_t rows, int64_t cols, int64_t nnz) {
  switch (array->place) {
    case WLM_PLACE_ROW: return rows;
    case WLM_PLACE_COLUMN: return cols;
    case WLM_PLACE_EDGE: return nnz;
    case WLM_PLACE_ALL: break;
  }
  return 1;
}

wlm_status wlmi_message_bytes(const wlmi_spec *spec, const wlm_stats *a, double *operands, double *results) {
  wlmi_arrays arrays;
  wlm_status status = WLM_OK;
  *operands = *results = 0;
  if (spec->problem.operation == WLM_MESSAGE) status = wlmi_arrays_make(spec, &arrays);
  for (int i = 0; status == WLM_OK && spec->problem.operation == WLM_MESSAGE && i < arrays.count; i++) {
    const wlmi_array *array = &arrays.list[i];
    *(array->is_output ? results : operands) +=
        (double)wlmi_array_lines(array, a->rows, a->cols, a->nnz) * (double)array->columns * (double)array->size;
  }
  return status;
}
