/* A problem bound to a matrix and to loaded code: everything that execute needs, computed beforehand. */
#ifndef WLM_RUNTIME_DISPATCH_PLAN_H
#define WLM_RUNTIME_DISPATCH_PLAN_H

#include "runtime/dispatch/device.h"
#include "select/select.h"

enum { WLM_BACKWARD_PASSES = 2 };

struct wlm_plan {
  wlmi_device *device;
  struct wlm_args args; /* complete but for B, C, workspace */
  int empty;            /* no rows or no columns: nothing to do */
  int is_sddmm, wants_arg, samples, uses_b, backward_uses_b;
  size_t dense_size, sum_size, arg_size; /* of an element of B and C, of an accumulator, of a position */
  int pass_count;
  wlmi_when when[WLM_MAX_PASSES];
  wlmi_launch launches[WLM_MAX_PASSES];
  size_t workspace_size, prepared_size;
  int is_prepared;
  /* What explain tells. */
  wlmi_decision decision;
  wlm_stats stats;
  char problem_key[WLM_SPEC_KEY];
  char split[16];
  int deterministic;
  double transpose_seconds; /* of making A^T, when that was done; 0 where the plan is for A */
  size_t transpose_bytes;
  /* Of a plan with positions: their gradients, clear and scatter; or why there are none. */
  wlmi_launch backward[WLM_BACKWARD_PASSES];
  struct wlm_args backward_args;
  const char *no_backward;
};

/* Fills launches and sizes from a program whose kernels are loaded. WLM_ERR_OVERFLOW where the grid or a
 * size is past what the device can take. */
wlm_status wlmi_plan_fill(wlm_plan *plan, wlmi_device *device, const wlmi_program *program,
                          void *const kernels[WLM_MAX_PASSES], const wlm_csr *csr, const wlmi_spec *spec);

/* The same of the program of the gradients by arg, behind wlmi_plan_fill; csr is A itself. */
wlm_status wlmi_plan_fill_backward(wlm_plan *plan, const wlmi_program *program, void *const kernels[WLM_MAX_PASSES],
                                   const wlm_csr *csr, const wlmi_spec *spec);

/* The grid of one pass. */
wlm_status wlmi_launch_make(const wlmi_pass *pass, wlmi_target target, int64_t units, int64_t n, void *kernel,
                            wlmi_launch *launch);

#endif
