/* Loads the kernels of a decision. */
#pragma once

#include "runtime/context_state.h"

/* The kernels of an entry. */
wlmi_wanted wlmi_wanted_of(const wlmi_spec *spec, const wlmi_decision *decision, int entry);

/* Loads the kernels of a helper for a matrix with these index types. They stay loaded. */
wlm_status wlmi_load_helper(wlm_context *context, wlmi_helper helper, const wlm_csr *types,
                            void *kernels[WLMI_MAX_PASSES]);
int wlmi_has_helper(wlm_context *context, wlmi_helper helper, const wlm_csr *types); /* without compiling */

/* Makes the plan's decision a plan: loads the first entry, from `entry` on, that can be loaded. `chosen` is the status
 * of the selection. */
wlm_status wlmi_load_plan(wlm_context *context, const wlmi_spec *spec, wlm_status chosen, int entry, wlm_plan *plan);
