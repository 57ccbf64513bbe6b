/* What all operations launch with: the grid of a pass, and the arguments of a call that they have in common. */
#include <math.h>

#include "runtime/dispatch/plan.h"

wlm_status wlmi_launch_make(const wlmi_pass *pass, wlmi_target target, int64_t units, int64_t n, void *kernel,
                            wlmi_launch *launch) {
  const int64_t fast_limit = INT32_MAX, fold = 65535; /* of a CUDA grid's x, and of its y and z */
  const int64_t columns = wlmi_pass_column_blocks(pass, n);
  *launch = (wlmi_launch){.kernel = kernel,
                          .unit_blocks = units,
                          .threads = (unsigned int)pass->threads,
                          .shared_bytes = (unsigned int)pass->shared_bytes,
                          .dependent = pass->dependent};
  if (target == WLM_TARGET_HOST) return WLM_OK;
  int64_t fast = pass->axis == WLM_AXIS_UNITS_FIRST ? units : columns;
  int64_t slow = pass->axis == WLM_AXIS_UNITS_FIRST ? columns : units;
  if (fast > fast_limit || slow > fold * fold)
    return wlmi_fail(WLM_ERR_OVERFLOW, "kernel %s needs a grid of %lld x %lld blocks, more than the device has",
                     pass->kernel, (long long)fast, (long long)slow);
  int64_t y = slow < fold ? slow : fold;
  launch->grid[0] = (unsigned int)fast;
  launch->grid[1] = (unsigned int)y;
  launch->grid[2] = (unsigned int)(y ? (slow + y - 1) / y : 0);
  return WLM_OK;
}

wlm_status wlmi_launch_all(const wlmi_shape *shape, const wlmi_bound *bound, wlmi_when when,
                           const struct wlm_args *args, void *stream) {
  for (int i = 0; i < shape->pass_count; i++) {
    if (shape->passes[i].when != when || !bound->launches[i].unit_blocks) continue;
    wlm_status status = shape->device->ops->launch(shape->device, &bound->launches[i], args, stream);
    if (status != WLM_OK) return status;
  }
  return WLM_OK;
}

/* Kernels hold the distance in bytes between rows of B and C in 32 bits. */
static wlm_status check_stride(const char *name, int64_t ld, int64_t n, size_t element) {
  const int64_t most = UINT32_MAX / (int64_t)element;
  if (ld < n)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.%s is %lld, less than n = %lld", name, (long long)ld,
                     (long long)n);
  if (ld > most)
    return wlmi_fail(WLM_ERR_OVERFLOW,
                     "wlm_execute_args.%s is %lld: rows lie 4 GiB or more apart, at most %lld elements work", name,
                     (long long)ld, (long long)most);
  return WLM_OK;
}

wlm_status wlmi_check_factors(const wlm_execute_args *call) {
  if (isfinite(call->alpha) && isfinite(call->beta)) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.%s is %g, must be finite",
                   isfinite(call->alpha) ? "beta" : "alpha", isfinite(call->alpha) ? call->beta : call->alpha);
}

wlm_status wlmi_take_call(const wlmi_shape *shape, const wlm_execute_args *call, struct wlm_args *args) {
  args->ldb = call->ldb ? call->ldb : shape->n;
  args->ldc = call->ldc ? call->ldc : shape->n;
  args->alpha = call->alpha;
  args->beta = call->beta;
  args->scaled = call->alpha != 1 || call->beta != 0;
  args->seed = call->seed;
  wlm_status status = wlmi_check_factors(call);
  if (status != WLM_OK) return status;
  if (call->values && !shape->has_values)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.values is given, but the matrix has none");
  if (call->values) args->values = call->values;
  status = check_stride("ldb", args->ldb, shape->n, shape->dense_size);
  return status == WLM_OK ? check_stride("ldc", args->ldc, shape->n, shape->dense_size) : status;
}
