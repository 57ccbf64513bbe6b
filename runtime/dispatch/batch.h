/* The products of a batch: how many a launch computes, and where the arrays of each are. */
#pragma once

#include "runtime/dispatch/plan.h"

/* Decides how many products a launch computes, and makes the workspace large enough for them. Of a problem without a
 * batch that is one. Kernels that compute no batch, and a slow axis that needs z of the grid
 * (templates/prelude/cuda_batch.h), get one at a time, too. */
void wlmi_batch_bind(const wlmi_shape *shape, wlmi_bound *bound);

/* Checks the strides of a call and copies them to the arguments of its kernels, which have its arrays already.
 * WLM_ERR_INVALID_ARGUMENT where the products' parts of a result overlap. */
wlm_status wlmi_batch_take(const char *function, const wlmi_shape *shape, const wlmi_bound *bound,
                           const wlm_execute_args *call, struct wlm_batch_launch *kernel);

/* The arguments of the launch whose first product is `first`. */
struct wlm_batch_launch wlmi_batch_part(const wlmi_shape *shape, const wlmi_bound *bound,
                                        const struct wlm_batch_launch *all, int64_t first);

/* Of an array: bytes from one product's to the next one's. */
int64_t wlmi_batch_stride(const wlmi_array *array, const void *kernel);
