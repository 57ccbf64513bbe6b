/* The operands and results of a message on the device, and the copies that the reference reads. All of it follows from
 * the message's table: the place of an array gives its lines, its width the elements of a line.
 *
 * Operands are random numbers from a seed, uniform in [-1, 1]; positions (`wins`) are those of random edges of the row,
 * or -1. */
#ifndef WLM_TUNER_MESSAGE_OPERANDS_H
#define WLM_TUNER_MESSAGE_OPERANDS_H

#include "core/reference/message.h"
#include "runtime/dispatch/message.h"
#include "tuner/operands.h"

/* An array of the call; of size 0 where the message has none. */
typedef struct wlmi_message_array {
  const char *name;
  wlmi_buffer buffer;
  void *host; /* of an operand: what it holds */
  int64_t lines, width, ld;
  size_t size; /* of an element */
  int moves;   /* whether a shift moves it: its lines have n elements */
} wlmi_message_array;

typedef struct wlmi_message_operands {
  wlmi_message message;
  wlmi_message_shape shape;
  wlm_message_args host, call; /* the operands of the reference; what the call gets */
  wlmi_message_array operand[WLM_MAX_OPERANDS], result[WLM_MAX_RESULTS], positions[WLM_MAX_RESULTS];
  int64_t *rowptr; /* of A, where op(A) is A^T; otherwise NULL */
} wlmi_message_operands;

/* Fills operands->message and the call. op(A) and its order must be there. */
wlm_status wlmi_message_operands_make(wlmi_operands *operands, uint64_t seed);
void wlmi_message_operands_release(wlmi_operands *operands);

/* The bytes of all operands and of all results for a matrix of this size; 0 for other operations. */
wlm_status wlmi_message_bytes(const wlmi_spec *spec, const wlm_stats *a, double *operands, double *results);

/* What wlmi_operands_moved and _shift do for a message; the latter takes operands->shift. */
size_t wlmi_message_operands_moved(const wlmi_operands *operands);
wlm_status wlmi_message_operands_shift(wlmi_operands *operands);

/* Where the array begins at present. */
char *wlmi_message_array_memory(const wlmi_operands *operands, const wlmi_message_array *array);
/* What the reference needs. */
wlmi_message_walk wlmi_message_operands_walk(const wlmi_operands *operands);

#endif
