/* Runs a plan once on a tuner's operands and compares the result with float64. */
#ifndef WLM_TESTS_SUPPORT_VERIFIED_H
#define WLM_TESTS_SUPPORT_VERIFIED_H

#include "tuner/verify.h"

/* What a plan needs besides the operands. */
typedef struct plan_memory {
  wlmi_device *device;
  void *workspace, *prepared;
} plan_memory;

/* Prepares the plan, where it needs that, in memory that was full of NaN. Release it also after a failure. */
wlm_status plan_memory_make(const wlmi_operands *operands, wlm_plan *plan, plan_memory *memory);
void plan_memory_release(plan_memory *memory);

/* Runs the plan with this memory over NaN in C and in the workspace, and compares (wlmi_verify_result). */
wlm_status verify_with(wlmi_operands *operands, wlmi_verifier *verifier, wlm_plan *plan, const plan_memory *memory,
                       double *max_rel_err);
/* The same with memory for this run only. */
wlm_status verify_plan(wlmi_operands *operands, wlmi_verifier *verifier, wlm_plan *plan, double *max_rel_err);

#endif
