/* Every operation as a table of the arrays that it reads and writes. The checks of a call, the arguments of its
 * kernels, the operands that the tuner makes, the comparison of results and a table in docs/operators.md follow from
 * it. */
#pragma once

#include "core/problem/spec.h"
#include "templates/prelude/args.h"
#include "templates/prelude/attention_args.h"
#include "templates/prelude/batch_args.h"
#include "templates/prelude/message_args.h"
#include "templates/prelude/product_args.h"
#include "templates/prelude/steps_args.h"
#include "warploom/warploom_attention.h"
#include "warploom/warploom_message.h"

/* What the kernels of attention get, of messages and of batches: struct wlm_args as in their sources. */
struct wlm_attention_args {
  struct wlm_args args;
  struct wlm_attention attention;
  struct wlm_products products; /* only some sources have it */
};
struct wlm_message_launch {
  struct wlm_args args;
  struct wlm_operands operands;
};
struct wlm_batch_launch {
  struct wlm_args args;
  struct wlm_batch batch;
  struct wlm_steps steps; /* only some sources have it */
};

/* The structs of a call. */
typedef enum wlmi_call_struct { WLMI_IN_ARGS, WLMI_IN_ATTENTION, WLMI_IN_MESSAGE, WLMI_CALL_STRUCTS } wlmi_call_struct;
typedef struct wlmi_call {
  const void *structs[WLMI_CALL_STRUCTS]; /* NULL = the operation has none */
} wlmi_call;

/* Of which type: dense_type, the accumulator's, or argmax_type. */
typedef enum wlmi_element { WLMI_ELEMENT_DENSE, WLMI_ELEMENT_SUM, WLMI_ELEMENT_POSITION } wlmi_element;

/* What a call must have for an array to be needed: a result that is not empty, or edges besides. */
typedef enum wlmi_need_for {
  WLMI_NEED_NEVER,
  WLMI_NEED_ROWS,
  WLMI_NEED_EDGES,
  WLMI_NEED_REFUSED /* must be NULL */
} wlmi_need_for;

/* Which problems of the operation have an array. */
typedef enum wlmi_condition {
  WLMI_IF_ANY,
  WLMI_IF_BIAS,
  WLMI_IF_ARGMAX,
  WLMI_IF_GAT,
  WLMI_IF_GATV2,
  WLMI_IF_DOT,
  WLMI_IF_SUM, /* GATV2 or DOT */
  WLMI_IF_NOT_DOT,
  WLMI_CONDITIONS
} wlmi_condition;
extern const char *const wlmi_condition_texts[WLMI_CONDITIONS];

/* Numbers of results (wlmi_array.result) besides the main one, which is 0. */
enum {
  WLMI_RESULT_OF_SOFTMAX = 1,
  WLMI_RESULT_OF_ARGMAX_DVALUES = 1,
  WLMI_RESULT_OF_DSCORES = 1,
  WLMI_RESULT_OF_DATT = 1,
  WLMI_RESULT_OF_DRIGHT,
  WLMI_RESULT_OF_DK
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
  /* Of a batch: the elements from one product's array to the next one's, which kernels get in bytes; NULL = none. */
  const char *stride_name;
  size_t stride_from, stride_to;
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
enum { WLMI_BUILTINS = 6 };
extern const wlmi_builtin wlmi_builtins[WLMI_BUILTINS];

enum { WLMI_MAX_ARRAYS = WLM_MAX_OPERANDS + 2 * WLM_MAX_RESULTS + 1 }; /* 1: the bias */

/* The arrays of a spec, the main result first among the outputs. */
typedef struct wlmi_arrays {
  const char *unscaled;
  int operands;      /* of a message */
  int as_b, as_c;    /* of a message: the operand and the result that kernels get as B and C; -1 = none */
  int kept;          /* of a message: the operand that says which edges dropout keeps; -1 = none */
  int has_positions; /* reads or writes positions of edges */
  int count;
  wlmi_array list[WLMI_MAX_ARRAYS];
} wlmi_arrays;

wlm_status wlmi_arrays_make(const wlmi_spec *spec, wlmi_arrays *arrays);
/* Permits NULL for an array, which no kernel reads. */
void wlmi_arrays_make_optional(wlmi_arrays *arrays, const char *name);
/* The lines of an array for a matrix A of this size. */
int64_t wlmi_array_lines(const wlmi_array *array, int64_t rows, int64_t cols, int64_t nnz);
/* The bytes of all operands and of all results of a message for a matrix of this size; 0 for other operations. */
wlm_status wlmi_message_bytes(const wlmi_spec *spec, const wlm_stats *a, double *operands, double *results);
/* The type of its numbers; not for positions. */
wlm_type wlmi_array_type(const wlmi_array *array, const wlm_problem *problem);
