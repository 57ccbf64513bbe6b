/* The operands of a checked or timed call: on the device B, C, bias and argmax indices (or dC and the values of an
 * SDDMM, or the operands of attention or of a message), and on the host the copies that the reference reads.
 *
 * B and the bias are random numbers from a seed, uniform in [-1, 1] and rounded to the dense type. If the call reads C
 * (beta is not 0), C begins with such numbers too. */
#ifndef WLM_TUNER_OPERANDS_H
#define WLM_TUNER_OPERANDS_H

#include "core/csr/csr.h"
#include "runtime/context.h"
#include "tuner/buffer.h"
#include "warploom/warploom_message.h"

/* An array that the call writes. */
typedef struct wlmi_output {
  const char *name;
  int result;       /* the numbers and the positions of one result have the same one */
  int is_positions; /* it holds positions of edges, not numbers */
  int of_edges;     /* its lines are the edges of A; otherwise the rows of the result */
  int moves;        /* whether a shift moves it */
  int byte;         /* that it is filled with before a call */
  wlm_type type;    /* of numbers */
  size_t size;      /* of an element */
  int64_t lines, width, ld;
  int64_t more_terms; /* that an element is the sum of, besides the edges of its row */
  wlmi_buffer buffer;
  const void *before; /* on the host: what it holds before a call; NULL = `byte` */
} wlmi_output;

enum { WLM_MAX_OUTPUTS = 2 * WLM_MAX_RESULTS };

typedef struct wlmi_operands {
  wlm_context *context;
  wlmi_device *device;
  const wlm_matrix *matrix;
  wlmi_spec spec;
  wlm_execute_args call; /* complete except workspace and stream; ldb and ldc are 0 only if n is */
  wlmi_csr_host a;       /* op(A), read back from the device, with the shares of its edges if A is sampled */
  int64_t edges;         /* edges that the problem uses: nnz, or fewer with sampling */
  /* Of the dense type. */
  void *b_host;    /* cols x ldb; of attention's gradient rows x ldb */
  void *c_old;     /* rows x ldc; NULL where beta is 0 */
  void *bias_host; /* n; NULL where there is no bias */
  void *x_host;    /* dC: of an sddmm rows x ldc, of attention's gradient cols x ldc */
  int64_t *order;  /* with transpose: the position in A of each entry of op(A); NULL = its own position */
  wlmi_buffer b, c, arg, x, bias;
  /* The shape of the result, with rows `result_ld` elements apart: C, or the nnz values of an SDDMM. */
  int64_t result_rows, result_columns, result_ld;
  double *terms[5];                      /* of attention: left, right, lse, delta and att */
  void *sides_host[2];                   /* q and k, rows and columns of A x n, of dense_type */
  wlmi_buffer attention[11];             /* the same on the device, then dvalues, dright, datt and dk */
  struct wlmi_message_operands *message; /* of a message, which has none of the arrays above; otherwise NULL */
  wlmi_output output[WLM_MAX_OUTPUTS];   /* all that the call writes; buffers belong to the arrays above */
  int outputs;
  uint64_t seed;
  int shift;    /* elements that B and C lie behind their aligned memory; 0 or 1 */
  int borrowed; /* a, b_host, b and c belong to other operands */
} wlmi_operands;

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
/* Where an output begins at present. */
char *wlmi_output_memory(const wlmi_operands *operands, const wlmi_output *output);
size_t wlmi_output_bytes(const wlmi_output *output);
/* Appends to the list. Sets the byte and the size of an element. */
void wlmi_operands_add_output(wlmi_operands *operands, wlmi_output output);
/* The bytes that moving the operands copies. */
size_t wlmi_operands_moved(const wlmi_operands *operands);
/* Moves B and C by this many elements (0 or 1), so that their rows are not aligned for vectors; copies B again. Of a
 * message all operands and results move whose lines have n elements. */
wlm_status wlmi_operands_shift(wlmi_operands *operands, int shift);
/* Enqueues one call of a plan, which is prepared if it needs that, with the given workspace. */
wlm_status wlmi_operands_call(const wlmi_operands *operands, const wlm_plan *plan, void *workspace, void *stream);

#endif
