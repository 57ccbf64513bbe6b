/* Everything here follows from the table of operands and results that the message's text names. */
#include "runtime/dispatch/message.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/pointer.h"
#include "core/problem/message.h"
#include "core/problem/structs.h"

_Static_assert((int)WLM_KERNEL_OPERANDS == (int)WLM_MAX_OPERANDS && (int)WLM_KERNEL_RESULTS == (int)WLM_MAX_RESULTS,
               "kernels have room for all");
_Static_assert(offsetof(struct wlm_message_launch, operands) == sizeof(struct wlm_args), "emitted sources count on it");

static int64_t columns_of(const wlm_problem *p, wlm_width width) {
  return width == WLM_WIDTH_HEADS ? p->heads : width == WLM_WIDTH_ONE ? 1 : p->n;
}

static void set_name(wlmi_array *array, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set_name(wlmi_array *array, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(array->name, sizeof array->name, format, arguments);
  va_end(arguments);
}

static void make_operand(const wlm_problem *p, const wlmi_message *message, int i, wlmi_message_shape *shape) {
  const wlmi_message_operand *o = &message->operand[i];
  wlmi_array *array = &shape->operand[i];
  const wlm_place looked_up = p->transpose ? WLM_PLACE_ROW : WLM_PLACE_COLUMN;
  *array = (wlmi_array){.place = o->place, .width = columns_of(p, o->width)};
  set_name(array, "%s", message->name[i]);
  if (o->source == WLM_SOURCE_MEMORY)
    array->size = o->width == WLM_WIDTH_WINS ? wlmi_index_size(p->argmax_type) : wlmi_type_size(p->dense_type);
  shape->has_positions |= o->width == WLM_WIDTH_WINS;
  shape->is_number[i] = o->source == WLM_SOURCE_NUMBER;
  if (shape->main < 0 && o->place == looked_up && o->width == WLM_WIDTH_N) shape->main = i;
}

static void make_result(const wlm_problem *p, const wlmi_message *message, int r, wlmi_message_shape *shape) {
  const wlmi_result_kind kind = message->result[r].kind;
  const int of_row = wlmi_result_is_of_row(kind);
  wlmi_array *array = &shape->result[r];
  *array = (wlmi_array){.place = !of_row        ? WLM_PLACE_EDGE
                                 : p->transpose ? WLM_PLACE_COLUMN
                                                : WLM_PLACE_ROW,
                        .size = wlmi_type_size(p->dense_type),
                        .width = columns_of(p, kind == WLM_RESULT_EDGE_SUM ? WLM_WIDTH_HEADS : WLM_WIDTH_N)};
  set_name(array, "results[%d]", r);
  if (!p->want_argmax || !wlmi_result_is_extreme(kind)) return;
  shape->has_positions = 1;
  shape->positions[r] = *array;
  shape->positions[r].size = wlmi_index_size(p->argmax_type);
  set_name(&shape->positions[r], "positions[%d]", r);
}

wlm_status wlmi_message_shape_make(const wlmi_spec *spec, wlmi_message_shape *shape) {
  wlmi_message message;
  const wlm_status status = wlmi_message_parse(spec->custom, &message);
  if (status != WLM_OK) return status;
  *shape = (wlmi_message_shape){.operands = message.operands, .results = message.results, .main = -1};
  for (int i = 0; i < message.operands; i++) make_operand(&spec->problem, &message, i, shape);
  for (int r = 0; r < message.results; r++) make_result(&spec->problem, &message, r, shape);
  wlmi_message_release(&message);
  return WLM_OK;
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

/* Kernels hold the distance in bytes between the lines of an array in 32 bits. */
static wlm_status take_ld(const wlmi_array *array, int64_t given, long long *ld) {
  *ld = given ? given : array->width;
  if (*ld >= array->width && *ld <= UINT32_MAX / (int64_t)array->size) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "message: the leading dimension of %s is %lld, must be %lld to %lld",
                   array->name, (long long)given, (long long)array->width,
                   (long long)(UINT32_MAX / (int64_t)array->size));
}

wlm_status wlmi_message_take(const wlmi_message_shape *shape, const wlm_message_args *given, int has_edges,
                             struct wlm_message_launch *launch) {
  wlm_message_args copy;
  const void *seen;
  struct wlm_operands *to = &launch->operands;
  wlm_status status;
  if (!given)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.operands is NULL, and a message has operands");
  WLM_TRY(wlmi_struct_see(&wlmi_struct_message_args, given, &copy, &seen));
  const wlm_message_args *call = seen;
  for (int i = 0; i < shape->operands; i++) {
    const wlmi_array *array = &shape->operand[i];
    to->wide[i] = shape->is_number[i] ? call->scalars[i] : 0;
    to->narrow[i] = (float)to->wide[i];
    if (!array->size) continue;
    const wlmi_pointer pointer = {array->name, call->operands[i], array->size, has_edges};
    WLM_TRY(wlmi_check_pointers("message", &pointer, 1));
    to->in[i] = call->operands[i];
    WLM_TRY(take_ld(array, call->operand_ld[i], &to->in_ld[i]));
  }
  for (int r = 0; r < shape->results; r++) {
    const wlmi_array *array = &shape->result[r], *places = &shape->positions[r];
    const int needed = has_edges || array->place != WLM_PLACE_EDGE;
    const wlmi_pointer pointers[] = {{array->name, call->results[r], array->size, needed},
                                     {places->name, places->size ? call->positions[r] : NULL,
                                      places->size ? places->size : 1, places->size && needed}};
    WLM_TRY(wlmi_check_pointers("message", pointers, 2));
    to->out[r] = call->results[r];
    to->place[r] = call->positions[r];
    WLM_TRY(take_ld(array, call->result_ld[r], &to->out_ld[r]));
    if (array->place == WLM_PLACE_EDGE || launch->args.c) continue;
    launch->args.c = to->out[r];
    launch->args.ldc = to->out_ld[r];
  }
  if (shape->main >= 0) {
    launch->args.b = to->in[shape->main];
    launch->args.ldb = to->in_ld[shape->main];
  }
done:
  return status;
}
