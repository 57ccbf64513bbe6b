/* Every operation as a table of the arrays that it reads and writes. The checks of a call, the arguments of its
 * kernels, the operands that the tuner makes, the comparison of results and a table in docs/operators.md follow from
 * it. */
#pragma once

#include "core/problem/spec.h"
#include "templates/prelude/args.h"
#include "templates/prelude/attention_args.h"
#include "templates/prelude/message_args.h"
#include "templates/prelude/product_args.h"
#include "warploom/warploom_attention.h"
#include "warploom/warploom_message.h"

/* What the kernels of attention get, and those of messages: struct wlm_args as in their sources. */
struct wlm_attention_args {
  struct wlm_args args;
  struct wlm_attention attention;
  struct wlm_products products; /* only some sources have it */
};
struct wlm_message_launch {
  struct wlm_args args;
  struct wlm_operands operands;
};

/* The structs of a call. */
typedef enum wlmi_call_struct { WLM_IN_ARGS, WLM_IN_ATTENTION, WLM_IN_MESSAGE, WLM_CALL_STRUCTS } wlmi_call_struct;
typedef struct wlmi_call {
  const void *structs[WLM_CALL_STRUCTS]; /* NULL = the operation has none */
} wlmi_call;

/* Of which type: dense_type, the accumulator's, or argmax_type. */
typedef enum wlmi_element { WLM_ELEMENT_DENSE, WLM_ELEMENT_SUM, WLM_ELEMENT_POSITION } wlmi_element;

/* What a call must have for an array to be needed: a result that is not empty, or edges besides. */
typedef enum wlmi_need_for {
  WLM_NEED_NEVER,
  WLM_NEED_ROWS,
  WLM_NEED_EDGES,
  WLM_NEED_REFUSED /* must be NULL */
} wlmi_need_for;

/* Which problems of the operation have an array. */
typedef enum wlmi_condition {
  WLM_IF_ANY,
  WLM_IF_BIAS,
  WLM_IF_ARGMAX,
  WLM_IF_GAT,
  WLM_IF_GATV2,
  WLM_IF_DOT,
  WLM_IF_SUM, /* GATV2 or DOT */
  WLM_IF_NOT_DOT,
  WLM_CONDITIONS
} wlmi_condition;
extern const char *const wlmi_condition_texts[WLM_CONDITIONS];

/* Numbers of results (wlmi_array.result) besides the main one, which is 0. */
enum {
  WLM_RESULT_OF_SOFTMAX = 1,
  WLM_RESULT_OF_ARGMAX_DVALUES = 1,
  WLM_RESULT_OF_DSCORES = 1,
  WLM_RESULT_OF_DATT = 1,
  WLM_RESULT_OF_DRIGHT,
  WLM_RESULT_OF_DK
};

typedef struct wlmi_array {
  char name[WLM_OPERAND_NAME];
  int is_output;
  wlm_place place; /* of A */
  wlm_width width;
  wlmi_element element;
  wlmi_need_for need;
  wlmi_condition condition;
  int result;            /* of an output: the numbers and the positions of a result have the same one */
  wlmi_call_struct in;   /* the struct of the call that has its pointer and leading dimension */
  size_t from, to;       /* where its pointer is: in that struct, in that of the kernels */
  const char *ld_name;   /* of the leading dimension; NULL = lines follow each other */
  size_t ld_from, ld_to; /* where that is */
  /* In the table of a spec: */
  int by_columns;  /* the caller's array is column-major: elements of a column follow each other */
  int64_t columns; /* elements of a line */
  size_t size;     /* bytes of an element */
} wlmi_array;

/* An operation whose arrays are fields of wlm_execute_args and wlm_attention_operands, with those of all its problems.
 */
typedef struct wlmi_builtin {
  const char *name;
  int is_mirrored;      /* with transpose, rows and columns of A change places */
  const char *unscaled; /* in messages: what has no alpha and beta; NULL = it has them */
  const wlmi_array *arrays;
  int count;
} wlmi_builtin;
enum { WLM_BUILTINS = 6 };
extern const wlmi_builtin wlmi_builtins[WLM_BUILTINS];

enum { WLM_MAX_ARRAYS = WLM_MAX_OPERANDS + 2 * WLM_MAX_RESULTS + 1 }; /* 1: the bias */

/* The arrays of a spec, the main result first among the outputs. */
typedef struct wlmi_arrays {
  const char *unscaled;
  int operands;      /* of a message */
  int as_b, as_c;    /* of a message: the operand and the result that kernels get as B and C; -1 = none */
  int kept;          /* of a message: the operand that says which edges dropout keeps; -1 = none */
  int has_positions; /* reads or writes positions of edges */
  int count;
  wlmi_array list[WLM_MAX_ARRAYS];
} wlmi_arrays;

wlm_status wlmi_arrays_make(const wlmi_spec *spec, wlmi_arrays *arrays);
/* Of the gradients by argmax. */
void wlmi_arrays_make_backward(const wlmi_spec *spec, wlmi_arrays *arrays);
/* Permits NULL for an array, which no kernel reads. */
void wlmi_arrays_make_optional(wlmi_arrays *arrays, const char *name);
/* The lines of an array for a matrix A of this size. */
int64_t wlmi_array_lines(const wlmi_array *array, int64_t rows, int64_t cols, int64_t nnz);
/* The bytes of all operands and of all results of a message for a matrix of this size; 0 for other operations. */
wlm_status wlmi_message_bytes(const wlmi_spec *spec, const wlm_stats *a, double *operands, double *results);
/* The type of its numbers; not for positions. */
wlm_type wlmi_array_type(const wlmi_array *array, const wlm_problem *problem);
