/* A problem bound to a matrix and to loaded code: everything that execute needs, computed beforehand. */
#ifndef WLM_RUNTIME_DISPATCH_PLAN_H
#define WLM_RUNTIME_DISPATCH_PLAN_H

#include "runtime/dispatch/choose.h"
#include "runtime/dispatch/device.h"

struct wlm_plan {
  wlm_device *device;
  struct wlm_args args; /* complete but for B, C, workspace */
  int empty;            /* no rows or no columns: nothing to do */
  int is_sddmm;
  int pass_count;
  wlm_when when[WLM_MAX_PASSES];
  wlm_launch launches[WLM_MAX_PASSES];
  size_t workspace_size, prepared_size;
  int is_prepared;
  /* What explain tells. */
  wlm_decision decision;
  wlm_stats stats;
  char problem_key[WLM_SPEC_KEY];
  char split[16];
  int deterministic;
  double transpose_seconds; /* of making A^T, when that was done; 0 where the plan is for A */
  size_t transpose_bytes;
};

/* Fills launches and sizes from a program whose kernels are loaded. WLM_ERR_OVERFLOW where the grid or a
 * size is past what the device can take. */
wlm_status wlm_plan_fill(wlm_plan *plan, wlm_device *device, const wlm_program *program,
                         void *const kernels[WLM_MAX_PASSES], const wlm_csr *csr, const wlm_spec *spec);

/* The grid of one pass. */
wlm_status wlm_launch_make(const wlm_pass *pass, wlm_target target, int64_t units, int64_t n, void *kernel,
                           wlm_launch *launch);

#endif
