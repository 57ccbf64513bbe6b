/* Refuses a call whose results would overwrite another array. */
#pragma once

#include "runtime/dispatch/plan.h"

/* WLM_ERR_INVALID_ARGUMENT if an array that the call writes, or its workspace, shares memory with another array or with
 * those of A, whose rowptr has `offsets` elements. Arrays whose lines lie between each other, such as columns of one
 * larger array, do not. `kernel` has the arguments of the kernels, of which struct wlm_args comes first. */
wlm_status wlmi_check_overlap(const char *function, const wlmi_shape *shape, const wlmi_arrays *arrays,
                              size_t workspace_size, int64_t offsets, const void *kernel);
