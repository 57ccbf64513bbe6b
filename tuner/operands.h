/* The arrays of a checked or timed call on the device, and on the host the copies that the reference reads. They follow
 * from the operation's table (core/problem/operation.h): the place of an array gives its lines, its width the elements
 * of a line.
 *
 * Operands are random numbers from a seed, uniform in [-1, 1] and rounded to their type; largest scores are in
 * [1, 3], and the scales beside them in [0, 1], so that weights are small. Positions are those of random edges of the
 * row, or -1. If the call reads the old result (beta is not 0), that begins with such numbers too. */
#pragma once

#include "core/csr/csr.h"
#include "core/problem/message.h"
#include "core/problem/operation.h"
#include "runtime/context.h"

/* An array in device memory, with a guard zone behind it that must not be written. */
typedef struct wlmi_buffer {
  void *memory; /* on the device */
  size_t size;
} wlmi_buffer;

/* The size of a guard zone, and what results and positions are filled with before a call: NaN, and an invalid
 * position. */
enum { WLMI_GUARD = 4096, WLMI_RESULT_POISON = 0xFF, WLMI_POSITION_POISON = 0xA5 };

/* An array that the call reads or writes. On the host it is row-major; on the device column-major without padding, if
 * the problem says so. */
typedef struct wlmi_call_array {
  const wlmi_array *array; /* its row of the table */
  const char *name;
  int result;       /* of an output: the numbers and the positions of one result have the same one */
  int is_positions; /* it holds positions of edges, not numbers */
  int of_edges;     /* its lines are the edges of A */
  int by_columns;   /* it is column-major on the device, and has two or more columns */
  int moves;        /* whether a shift moves it: its lines have n elements */
  int byte;         /* that an output is filled with before a call */
  wlm_type type;    /* of numbers */
  size_t size;      /* of an element */
  int64_t lines, width, ld;
  int64_t more_terms; /* that an element of an output is the sum of, besides the edges of its row */
  wlmi_buffer buffer;
  void *host; /* what it holds before a call; NULL = `byte` */
} wlmi_call_array;

enum { WLMI_MAX_OUTPUTS = 2 * WLM_MAX_RESULTS };

/* What only messages have. */
typedef struct wlmi_message_operands {
  wlmi_message message;
  wlm_message_args call, host; /* what the call gets, and the same on the host */
  int64_t *rowptr;             /* of A, where op(A) is A^T; otherwise NULL */
} wlmi_message_operands;

typedef struct wlmi_operands {
  wlm_context *context;
  wlmi_device *device;
  const wlm_matrix *matrix;
  wlmi_spec spec;
  wlm_execute_args call; /* complete except workspace and stream; ldb and ldc are 0 only if n is */
  wlm_execute_args host; /* the same with arrays of the host: of an output what it holds before, or NULL */
  wlm_attention_operands attention[2]; /* of attention: those of the call and of the host */
  wlmi_csr_host a; /* op(A), read back from the device, with the shares of its edges if A is sampled */
  int64_t *order;  /* with transpose: the position in A of each entry of op(A); NULL = its own position */
  int64_t edges;   /* edges that the problem uses: nnz, or fewer with sampling */
  wlmi_arrays arrays;
  wlmi_call_array input[WLMI_MAX_ARRAYS], output[WLMI_MAX_OUTPUTS]; /* output[0] is the main result */
  int inputs, outputs;
  wlmi_message_operands *message; /* of a message; otherwise NULL */
  uint64_t seed;
  int shift;    /* elements that arrays lie behind their aligned memory; 0 or 1 */
  int borrowed; /* a, inputs and outputs belong to other operands */
} wlmi_operands;

/* WLM_ERR_UNSUPPORTED for problems whose kernels are not compared: batches, and an operation with one kernel. */
wlm_status wlmi_check_comparable(const wlm_problem *problem);

/* Reads alpha, beta, seed, ldb, ldc and stream of args (NULL = the defaults), and waits for the stream. `seed` is that
 * of the random numbers. */
wlm_status wlmi_operands_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                const wlm_execute_args *args, uint64_t seed, wlmi_operands *operands);
/* The same for another operator, sharing A, B and C with `lender` where they are equal. `lender` has the same context
 * and seed and is released later; only one call at a time may write the shared C. */
wlm_status wlmi_operands_create_beside(const wlmi_operands *lender, wlm_context *context, const wlm_matrix *matrix,
                                       const wlm_problem *problem, const wlm_execute_args *args, uint64_t seed,
                                       wlmi_operands *operands);
void wlmi_operands_release(wlmi_operands *operands); /* also of a zeroed one */

/* The number of edges that the problem uses of a row of op(A). */
int64_t wlmi_edges_of_row(const wlmi_csr_host *a, const wlm_problem *problem, int64_t row);

/* Fills all outputs: numbers with NaN (or with the C that the problem reads), positions with an invalid one, so that a
 * result that is not written is found. */
wlm_status wlmi_operands_poison(wlmi_operands *operands);
/* After a call into poisoned memory: WLM_ERR_MISMATCH if it wrote before or behind an output, or, with `padding`,
 * between its columns and its leading dimension. */
wlm_status wlmi_operands_intact(const wlmi_operands *operands, int padding);
/* Copies to the device what an array holds before a call. */
wlm_status wlmi_call_array_put(const wlmi_operands *operands, const wlmi_call_array *operand);
/* Reads lines of the device's array, of ld elements each. */
wlm_status wlmi_call_array_read(const wlmi_operands *operands, const wlmi_call_array *operand, int64_t first,
                                int64_t lines, char *to);
/* Where an array begins at present, and its size there. */
char *wlmi_call_array_memory(const wlmi_operands *operands, const wlmi_call_array *operand);
size_t wlmi_call_array_bytes(const wlmi_call_array *operand);
/* The lines of an array of the device, read piece by piece. Begin with {.operands = ..., .array = ...}. */
typedef struct wlmi_pieces {
  const wlmi_operands *operands;
  const wlmi_call_array *array;
  int64_t first, lines; /* of the present piece */
  char *data;           /* its lines, of ld elements each */
} wlmi_pieces;
/* The condition of a loop over them: reads the next one. 0 at the end, after an error, which *status gets, and where
 * *status is an error already; loop until then, because only that releases the memory. */
int wlmi_pieces_next(wlmi_pieces *pieces, wlm_status *status);
/* The position in A that element `at` of a copy of an array of positions stands for; it is of this row. */
int64_t wlmi_position_at(const wlmi_operands *operands, const wlmi_call_array *operand, const void *copy, int64_t at,
                         int64_t row);
/* The array of this name; NULL = the problem has none. */
const wlmi_call_array *wlmi_operands_find(const wlmi_operands *operands, const char *name);
/* The bytes that moving the operands copies. */
size_t wlmi_operands_moved(const wlmi_operands *operands);
/* Moves the arrays whose lines have n elements by this many elements (0 or 1), so that they are not aligned for
 * vectors; copies those that are read. */
wlm_status wlmi_operands_shift(wlmi_operands *operands, int shift);
/* Enqueues one call of a plan, which is prepared if it needs that, with the given workspace. */
wlm_status wlmi_operands_call(const wlmi_operands *operands, const wlm_plan *plan, void *workspace, void *stream);

/* ---- outputs.c ---- */

/* Allocates `rows` rows of `ld` elements on the device, with a guard zone, and, if `host` is not NULL, on the host. */
wlm_status wlmi_buffer_make(wlmi_device *device, size_t size, int64_t rows, int64_t ld, const char *what, void **host,
                            wlmi_buffer *buffer);

/* Fills an array of the host with random numbers in [-1, 1), rounded to the type. */
void wlmi_fill_uniform(wlm_type type, void *to, int64_t count, uint64_t seed);

/* WLM_ERR_MISMATCH if one of the bytes is not the one that it was filled with; `what` is for messages, "behind c". */
wlm_status wlmi_guard_check(wlmi_device *device, const void *from, size_t size, int byte, const char *what);
