/* Refuses a call whose results would overwrite another array. */
#pragma once

#include "runtime/dispatch/plan.h"

/* Memory of a call beside its arrays: the workspace and its bytes, and those of what was prepared. */
typedef struct wlmi_work {
  const void *workspace;
  size_t workspace_size, prepared;
} wlmi_work;

/* WLM_ERR_INVALID_ARGUMENT if the workspace or prepared memory shares memory with the other, or with an array of A. */
wlm_status wlmi_check_work(const char *function, const wlmi_shape *shape, const wlmi_work *work,
                           const struct wlm_args *args);

/* The same, and where an array that the call writes, or memory of the work, shares memory with another array or with
 * those of A. Arrays whose lines lie between each other, such as columns of one larger array, do not. `kernel` has the
 * arguments of the kernels, of which struct wlm_args comes first. */
wlm_status wlmi_check_overlap(const char *function, const wlmi_shape *shape, const wlmi_work *work, const void *kernel);
