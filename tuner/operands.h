/* What a checked or timed call needs around a plan: B, C, workspace and prepared memory on the device, and
 * on the host the copies that the reference reads.
 *
 * B is seeded and uniform in [-1, 1). Where the problem reads C (beta is not 0), C starts as such numbers too. */
#ifndef WLM_TUNER_OPERANDS_H
#define WLM_TUNER_OPERANDS_H

#include "matrix/csr.h"
#include "runtime/context.h"

typedef struct wlm_buffer {
  void *memory; /* on the device */
  size_t size;
} wlm_buffer;

typedef struct wlm_operands {
  wlm_device *device;
  const wlm_matrix *matrix;
  wlm_spec spec;
  wlm_csr_host a;   /* read back from the device */
  int64_t edges;    /* that the problem uses: nnz, or fewer where it samples */
  float *b_host;    /* cols x ldb */
  float *c_old;     /* rows x ldc; NULL where beta is 0 */
  float *bias_host; /* n; NULL where there is no bias */
  wlm_buffer b, c, workspace, prepared;
} wlm_operands;

wlm_status wlm_operands_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                               uint64_t seed, wlm_operands *operands);
void wlm_operands_release(wlm_operands *operands); /* also of a zeroed one */

/* Workspace and prepared memory for this plan, which is prepared as well, over NaN. Holds until the next bind. */
wlm_status wlm_operands_bind(wlm_operands *operands, wlm_plan *plan);
/* Enqueues the preparing of the plan that was bound. */
wlm_status wlm_operands_prepare(const wlm_operands *operands, wlm_plan *plan, void *stream);
/* NaN, or what the problem reads, into C and NaN into the workspace: a result that is right then was written. */
wlm_status wlm_operands_poison(wlm_operands *operands);
/* Enqueues one call of the plan that was bound. */
wlm_status wlm_operands_execute(const wlm_operands *operands, const wlm_plan *plan, void *stream);

#endif
