/* Runs a plan once on a tuner's operands and compares the result with float64. */
#pragma once

#include "tuner/verify.h"

/* The memory that a plan needs besides its operands. */
typedef struct plan_memory {
  wlmi_device *device;
  void *workspace, *prepared;
} plan_memory;

/* Allocates the memory, fills it with NaN, and prepares the plan if it needs that. Call the release function also
 * after a failure. */
wlm_status plan_memory_make(const wlmi_operands *operands, wlm_plan *plan, plan_memory *memory);
void plan_memory_release(plan_memory *memory);

/* Executes the plan with this memory, with C and the workspace full of NaN, and compares the result
 * (wlmi_verify_result). */
wlm_status verify_with(wlmi_operands *operands, wlmi_verifier *verifier, wlm_plan *plan, const plan_memory *memory,
                       double *max_rel_err);
/* The same, with memory allocated for this call. */
wlm_status verify_plan(wlmi_operands *operands, wlmi_verifier *verifier, wlm_plan *plan, double *max_rel_err);
