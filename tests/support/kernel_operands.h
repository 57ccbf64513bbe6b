/* A call of an emitted program with everything that it reads and writes, drawn at random.
 *
 * The arrays are those that the operation's table lists. Lines that no edge uses, and the padding of lines, hold NaN
 * and infinities; nothing lies behind the last element of an operand. Outputs begin as NaN where the call does not read
 * them, and have a guard on both sides.
 *   - products: leading dimensions, alignments, alpha and beta differ; some values of B and of single heads are NaN or
 *     infinite, where the caller wants that. Edges behind the last row take no part.
 *   - attention: scores lie on both sides of 0, some far apart; some edges are masked with -inf, and some rows have
 *     masked edges only. The edges of its gradient are in another order than A's.
 *   - gradients by argmax: the winner of an element is a random edge of its row, and dC is NaN where there is none. */
#pragma once

#include "core/problem/message.h"
#include "core/problem/operation.h"
#include "core/reference/reference.h"
#include "support/kernel_check.h"
#include "support/shapes.h"

/* The arrays that every call has; those of the operation's table follow. */
enum { ROWPTR, COLIND, VALUES, ORDER, A_ROWPTR, WORKSPACE, PREPARED, OF_TABLE, ARRAYS = OF_TABLE + WLMI_MAX_ARRAYS };

enum { GUARD = 64 }; /* elements before and after an output that must not be written */

typedef struct array {
  const wlmi_array *row; /* of the table; NULL = of the matrix */
  wlm_type type;         /* of numbers */
  size_t size;           /* of an element */
  int64_t lines, ld;
  int64_t shift;              /* elements before the first one, so that vectors are misaligned */
  char *host, *after, *first; /* before a run, after it, and after the first one */
  void *device;
} array;

/* A call with all structs that one may have. */
typedef struct call {
  wlm_execute_args args;
  wlm_attention_operands attention;
  wlm_message_args message;
} call;

typedef struct operands {
  const char *shape;
  wlmi_csr_host a;      /* op(A), of gradients by argmax A; values are in its order */
  wlmi_csr_host walked; /* of products whose kernels walk A instead of A^T, or sample it: the pattern of A */
  int walks_a;          /* kernels get `walked` */
  int64_t rowless;      /* edges behind the last row, which take no part */
  int64_t *order;       /* where A has each edge */
  int64_t *a_rowptr;    /* of A */
  int64_t *winners;     /* of each element of C: an edge of A, or -1 */
  wlmi_spec spec;
  wlmi_message message;
  call call, host; /* host: with arrays of the host */
  wlmi_arrays table;
  array arrays[ARRAYS];
  wlmi_reference_result results[WLM_MAX_RESULTS];
} operands;

/* Products are drawn for each shape, for two of them again with NaN and infinities, and for N = 0; the others for each
 * shape. */
int operands_count(const kernel_check *check);
wlm_status operands_make(const kernel_check *check, const wlmi_program *program, int number, test_random *random,
                         operands *o);
void operands_release(wlmi_device *device, operands *o);

static inline int is_of(const operands *o, wlm_operation operation) { return o->spec.problem.operation == operation; }
static inline int is_product(const operands *o) { return is_of(o, WLM_SPMM); }
static inline int is_message(const operands *o) { return is_of(o, WLM_MESSAGE); }
static inline int is_argmax(const operands *o) { return is_of(o, WLM_ARGMAX_GRADIENT); }
static inline int walks_transpose(const operands *o) { return o->spec.problem.transpose && !is_argmax(o); }
static inline const wlmi_csr_host *seen_by_kernels(const operands *o) { return o->walks_a ? &o->walked : &o->a; }

static inline int is_output(const array *x) { return x->row && x->row->is_output; }
static inline int is_position(const array *x) { return x->row->element == WLMI_ELEMENT_POSITION; }
/* Elements before the first one of an array, and of the array; bytes of both and of the guard behind. */
static inline int64_t elements_before(const array *x) { return x->shift + (is_output(x) ? GUARD : 0); }
static inline int64_t elements(const array *x) {
  return is_output(x) || !x->row ? x->lines * x->ld : x->lines ? (x->lines - 1) * x->ld + x->row->columns : 0;
}
static inline size_t bytes(const array *x) {
  return (size_t)(elements_before(x) + elements(x) + (is_output(x) ? GUARD : 0)) * x->size;
}
static inline char *at(const array *x, char *memory) {
  return memory ? memory + (size_t)elements_before(x) * x->size : NULL;
}
/* The struct of a call that has an array. */
char *struct_of(const wlmi_array *row, call *c);
