/* What a checked or timed call needs around a plan: B, C, bias and positions (or dC and the values of an sddmm),
 * workspace and prepared memory on the device, and on the host the copies that the reference reads.
 *
 * B and the bias are seeded and uniform in [-1, 1], rounded to the dense type. Where the call reads C (beta is not 0),
 * C starts as such numbers too. */
#ifndef WLM_TUNER_OPERANDS_H
#define WLM_TUNER_OPERANDS_H

#include "csr/csr.h"
#include "runtime/context.h"

typedef struct wlmi_buffer {
  void *memory; /* on the device */
  size_t size;
} wlmi_buffer;

/* Bytes behind C, positions, workspace and prepared memory, which are poisoned and which no call may write. */
enum { WLM_GUARD = 4096 };

typedef struct wlmi_operands {
  wlm_context *context;
  wlmi_device *device;
  const wlm_matrix *matrix;
  wlmi_spec spec;
  wlm_execute_args call; /* complete but for the workspace and the stream; ldb and ldc are never 0 unless n is */
  wlmi_csr_host a;       /* op(A), read back from the device, with the shares that a sample of A gives its edges */
  int64_t edges;         /* that the problem uses: nnz, or fewer where it samples */
  /* Of the dense type. */
  void *b_host;    /* cols x ldb */
  void *c_old;     /* rows x ldc; NULL where beta is 0 */
  void *bias_host; /* n; NULL where there is no bias */
  void *x_host;    /* of an sddmm dC, rows x ldc */
  int64_t *order;  /* with transpose, where in A each entry of op(A) is; NULL = at its own position */
  wlmi_buffer b, c, arg, x, bias;
  /* What a call writes into c, of rows that lie `result_ld` elements apart: C, or an sddmm's nnz values. */
  int64_t result_rows, result_columns, result_ld;
  int shift;    /* elements that B and C lie behind their aligned memory; 0 or 1 */
  int borrowed; /* a, b_host, b and c are others' */
} wlmi_operands;

/* Of args alpha, beta, seed, ldb, ldc and stream are read, which is waited for; NULL = the defaults. `seed` is that of
 * the contents. */
wlm_status wlmi_operands_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                const wlm_execute_args *args, uint64_t seed, wlmi_operands *operands);
/* Of another operator beside others of this context and seed, which are released later: A, B and C are theirs where
 * they would be the same, so that one call at a time writes C. Otherwise as above. */
wlm_status wlmi_operands_create_beside(const wlmi_operands *lender, wlm_context *context, const wlm_matrix *matrix,
                                       const wlm_problem *problem, const wlm_execute_args *args, uint64_t seed,
                                       wlmi_operands *operands);
void wlmi_operands_release(wlmi_operands *operands); /* also of a zeroed one */

/* Edges of a row of op(A) that the problem uses. */
int64_t wlmi_edges_of_row(const wlmi_csr_host *a, const wlm_problem *problem, int64_t row);

/* NaN, or what the problem reads, into C and no position into arg: a result that is right then was written. */
wlm_status wlmi_operands_poison(wlmi_operands *operands);
/* After a call into poisoned memory: WLM_ERR_MISMATCH where it wrote behind C or the positions, or, with `padding`,
 * between their n and ldc columns. */
wlm_status wlmi_operands_intact(const wlmi_operands *operands, int padding);
/* The same of a guard zone's first bytes, `what` being "behind C" or so. */
wlm_status wlmi_guard_check(wlmi_device *device, const void *from, size_t size, int byte, const char *what);
/* Moves B and C by so many elements (0 or 1), so that no row of theirs is aligned for vectors; B is copied anew. */
wlm_status wlmi_operands_shift(wlmi_operands *operands, int shift);
/* Enqueues one call of a plan, prepared if it needs that, with a workspace of the size that the plan asks for. */
wlm_status wlmi_operands_call(const wlmi_operands *operands, const wlm_plan *plan, void *workspace, void *stream);

#endif
