/* The operands and results of a message's plan, and how a call of it is run. */
#ifndef WLM_RUNTIME_DISPATCH_MESSAGE_H
#define WLM_RUNTIME_DISPATCH_MESSAGE_H

#include "core/problem/spec.h"
#include "templates/prelude/args.h"
#include "templates/prelude/message_args.h"
#include "warploom/warploom_message.h"

/* An array of the call. */
typedef struct wlmi_array {
  char name[WLM_OPERAND_NAME];
  wlm_place place; /* of A */
  size_t size;     /* of an element; 0 = there is no array */
  int64_t width;   /* elements of a line */
} wlmi_array;

typedef struct wlmi_message_shape {
  int operands, results;
  wlmi_array operand[WLM_MAX_OPERANDS], result[WLM_MAX_RESULTS], positions[WLM_MAX_RESULTS];
  int is_number[WLM_MAX_OPERANDS];
  int has_positions; /* reads or writes positions of edges */
  int main;          /* the operand that kernels get as B: the first of n columns that an edge looks up; -1 = none */
} wlmi_message_shape;

/* For a spec whose operation is WLM_MESSAGE. */
wlm_status wlmi_message_shape_make(const wlmi_spec *spec, wlmi_message_shape *shape);
/* The lines of an array for a matrix of this size. */
int64_t wlmi_array_lines(const wlmi_array *array, int64_t rows, int64_t cols, int64_t nnz);

/* The argument struct of a message's kernels. */
struct wlm_message_launch {
  struct wlm_args args;
  struct wlm_operands operands;
};

/* Checks the call's operands and results, of a matrix with or without edges, and fills the arguments of the kernels,
 * except what all operations have. */
wlm_status wlmi_message_take(const wlmi_message_shape *shape, const wlm_message_args *call, int has_edges,
                             struct wlm_message_launch *launch);

#endif
