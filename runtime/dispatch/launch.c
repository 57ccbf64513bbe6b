/* What all operations launch with: the grid of a pass, and the arguments of a call that they have in common. */
#include <math.h>
#include <string.h>

#include "core/base/pointer.h"
#include "core/problem/message.h"
#include "runtime/dispatch/plan.h"

wlm_status wlmi_launch_make(const wlmi_pass *pass, wlmi_target target, int64_t units, int64_t n, void *kernel,
                            wlmi_launch *launch) {
  const int64_t fast_limit = INT32_MAX, fold = WLMI_GRID_FOLD; /* of a CUDA grid's x, and of its y and z */
  const int64_t columns = wlmi_pass_column_blocks(pass, n);
  *launch = (wlmi_launch){.kernel = kernel,
                          .unit_blocks = units,
                          .products = 1,
                          .threads = (unsigned int)pass->threads,
                          .shared_bytes = (unsigned int)pass->shared_bytes,
                          .dependent = pass->dependent};
  if (target == WLMI_TARGET_HOST) return WLM_OK;
  int64_t fast = pass->axis == WLMI_AXIS_UNITS_FIRST ? units : columns;
  int64_t slow = pass->axis == WLMI_AXIS_UNITS_FIRST ? columns : units;
  if (fast > fast_limit || slow > fold * fold)
    return wlmi_fail(WLM_ERR_OVERFLOW, "kernel %s needs a grid of %lld x %lld blocks, more than the device has",
                     pass->kernel, (long long)fast, (long long)slow);
  int64_t y = slow < fold ? slow : fold;
  launch->grid[0] = (unsigned int)fast;
  launch->grid[1] = (unsigned int)y;
  launch->grid[2] = (unsigned int)(y ? (slow + y - 1) / y : 0);
  return WLM_OK;
}

void wlmi_launch_repeat(wlmi_launch *launch, int64_t products) {
  launch->products = products;
  launch->grid[2] *= (unsigned int)products;
  launch->unit_blocks *= products;
}

wlm_status wlmi_launch_all(const wlmi_shape *shape, const wlmi_bound *bound, wlmi_when when, int64_t products,
                           const struct wlm_args *args, void *stream) {
  for (int i = 0; i < shape->loaded.program.pass_count; i++) {
    wlmi_launch launch = bound->launches[i];
    if (shape->loaded.program.passes[i].when != when || !launch.unit_blocks) continue;
    wlmi_launch_repeat(&launch, products);
    WLM_CHECK(shape->device->ops->launch(shape->device, &launch, args, stream));
  }
  return WLM_OK;
}

/* ---- the arguments of a call ------------------------------------------------------------------------------ */

int64_t wlmi_lines_of(const wlmi_shape *shape, const struct wlm_args *args, const wlmi_array *array) {
  return shape->is_transposed ? wlmi_array_lines(array, args->cols, args->rows, args->nnz)
                              : wlmi_array_lines(array, args->rows, args->cols, args->nnz);
}

/* Of a column-major array with these many rows. Of one column every element is a line of its own. */
static wlm_status take_column_ld(const char *function, const wlmi_array *array, int64_t rows, const char *from,
                                 char *kernel) {
  int64_t given, bytes;
  memcpy(&given, from + array->ld_from, sizeof given);
  const long long ld = array->columns == 1 ? 1 : given ? given : rows;
  memcpy(kernel + array->ld_to, &ld, sizeof ld);
  if (given && given < rows)
    return wlmi_fail(
        WLM_ERR_INVALID_ARGUMENT,
        "%s: %s is %lld, must be %lld or more for %s: it is column-major and its columns have %lld elements", function,
        array->ld_name, (long long)given, (long long)rows, array->name, (long long)rows);
  if (!__builtin_mul_overflow(ld, array->columns * (int64_t)array->size, &bytes)) return WLM_OK;
  return wlmi_fail(WLM_ERR_OVERFLOW, "%s: %s is %lld, with which %s does not fit 64 bits", function, array->ld_name, ld,
                   array->name);
}

/* Kernels hold the distance in bytes between the lines of an array in 32 bits. */
static wlm_status take_ld(const char *function, const wlmi_array *array, const char *from, char *kernel) {
  const int64_t most = UINT32_MAX / (int64_t)array->size;
  int64_t given;
  memcpy(&given, from + array->ld_from, sizeof given);
  const long long ld = given ? given : array->columns;
  memcpy(kernel + array->ld_to, &ld, sizeof ld);
  if (ld >= array->columns && ld <= most) return WLM_OK;
  return wlmi_fail(ld > most ? WLM_ERR_OVERFLOW : WLM_ERR_INVALID_ARGUMENT,
                   "%s: %s is %lld, must be %lld to %lld for %s: its lines have %lld elements and lie less than 4 GiB "
                   "apart",
                   function, array->ld_name, ld, (long long)array->columns, (long long)most, array->name,
                   (long long)array->columns);
}

static wlm_status take_array(const char *function, const wlmi_array *array, wlmi_need_for has, int64_t lines,
                             const char *from, char *kernel) {
  const size_t aligned = wlmi_width_is_pair(array->width) ? 2 * array->size : array->size; /* kernels load pairs */
  wlmi_pointer pointer = {array->name, NULL, aligned, array->need && has >= array->need && lines};
  memcpy(&pointer.address, from + array->from, sizeof pointer.address);
  if (array->need == WLMI_NEED_REFUSED && pointer.address)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: %s with %s, which has no such array; leave it NULL", function,
                     array->name, wlmi_condition_texts[array->condition]);
  const wlm_status status = wlmi_check_pointers(function, &pointer, 1);
  memcpy(kernel + array->to, &pointer.address, sizeof pointer.address);
  if (status != WLM_OK || !array->ld_name) return status;
  return array->by_columns ? take_column_ld(function, array, lines, from, kernel)
                           : take_ld(function, array, from, kernel);
}

wlm_status wlmi_take_arrays(const char *function, const wlmi_shape *shape, const wlmi_bound *bound,
                            const wlmi_call *call, void *kernel) {
  const wlmi_need_for has = bound->empty ? WLMI_NEED_NEVER : bound->args.nnz ? WLMI_NEED_EDGES : WLMI_NEED_ROWS;
  wlm_status status = WLM_OK;
  for (int i = 0; i < shape->arrays.count && status == WLM_OK; i++) {
    const wlmi_array *array = &shape->arrays.list[i];
    status =
        take_array(function, array, has, wlmi_lines_of(shape, &bound->args, array), call->structs[array->in], kernel);
  }
  return status;
}

wlm_status wlmi_check_factors(const wlm_execute_args *call) {
  if (isfinite(call->alpha) && isfinite(call->beta)) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.%s is %g, must be finite",
                   isfinite(call->alpha) ? "beta" : "alpha", isfinite(call->alpha) ? call->beta : call->alpha);
}

wlm_status wlmi_take_call(const char *function, const wlmi_shape *shape, const wlm_execute_args *call,
                          struct wlm_args *args) {
  const wlmi_pointer values = {"values", call->values, wlmi_type_size(shape->value_type), 0};
  WLM_CHECK(wlmi_check_pointers(function, &values, 1));
  WLM_CHECK(wlmi_check_factors(call));
  if (call->values && !shape->has_values)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.values is given, but the matrix has none");
  if (call->bias && !shape->has_bias)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.bias is given, but wlm_problem.epilogue.bias is 0");
  if (call->values) args->values = call->values;
  if (shape->has_values && !args->values && args->nnz)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.values is NULL, and so is wlm_csr.values");
  args->alpha = call->alpha;
  args->beta = call->beta;
  args->scaled = call->alpha != 1 || call->beta != 0;
  args->seed = call->seed;
  if (!args->scaled || !shape->arrays.unscaled) return WLM_OK;
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: %s with alpha %g and beta %g; use 1 and 0", function,
                   shape->arrays.unscaled, call->alpha, call->beta);
}

wlm_status wlmi_take_workspace(const char *function, const wlm_execute_args *call, size_t size) {
  const wlmi_pointer memory = {"workspace", call->workspace, WLMI_WORK_ALIGNMENT, size != 0};
  if (call->workspace_size >= size) return wlmi_check_pointers(function, &memory, 1);
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: workspace_size is %zu, the plan needs %zu", function,
                   call->workspace_size, size);
}
