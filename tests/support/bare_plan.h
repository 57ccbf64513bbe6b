/* Makes a plan from kernels that a test has loaded itself, without a context. */
#pragma once

#include <string.h>

#include "runtime/dispatch/plan.h"

static inline wlm_status bare_plan_fill(wlm_plan *plan, wlmi_device *device, const wlmi_program *program,
                                        void *const kernels[WLMI_MAX_PASSES], const wlm_csr *csr,
                                        const wlmi_spec *spec) {
  wlmi_loaded loaded = {.program = *program};
  memcpy(loaded.kernels, kernels, sizeof loaded.kernels);
  const wlm_status status = wlmi_plan_set_program(plan, device, &loaded, spec);
  return status == WLM_OK ? wlmi_bind(&plan->shape, csr, csr->rowptr, NULL, 0, &plan->bound) : status;
}
