#include "runtime/dispatch/batch.h"

#include <string.h>

#include "core/base/pointer.h"

/* What a launch computes at most: z of its grid counts the products. */
enum { MOST_TOGETHER = WLMI_GRID_FOLD };
/* From this size on, the products of a batch fill a device without each other. */
static const size_t most_workspace = 32 << 20;

static int needs_z(const wlmi_shape *shape, const wlmi_bound *bound) {
  for (int i = 0; i < shape->loaded.program.pass_count; i++)
    if (bound->launches[i].grid[1] >= WLMI_GRID_FOLD) return 1;
  for (int i = 0; i < bound->layout.count; i++)
    if (bound->layout.copies[i].launch.grid[1] >= WLMI_GRID_FOLD) return 1;
  return 0;
}

void wlmi_batch_bind(const wlmi_shape *shape, wlmi_bound *bound) {
  const size_t aligned = (bound->workspace_size + WLMI_WORK_ALIGNMENT - 1) / WLMI_WORK_ALIGNMENT * WLMI_WORK_ALIGNMENT;
  const int64_t fitting = aligned ? (int64_t)(most_workspace / aligned) : MOST_TOGETHER;
  int64_t most = fitting < 1 ? 1 : fitting < MOST_TOGETHER ? fitting : MOST_TOGETHER;
  if (!shape->loaded.program.is_batched || needs_z(shape, bound)) most = 1;
  bound->together = shape->batch < most ? shape->batch : most;
  if (bound->together > 1) bound->workspace_size = aligned * (size_t)bound->together;
}

int64_t wlmi_batch_stride(const wlmi_array *array, const void *kernel) {
  long long bytes = 0;
  if (array->stride_name) memcpy(&bytes, (const char *)kernel + array->stride_to, sizeof bytes);
  return bytes;
}

static wlm_status take_stride(const char *function, const char *name, const char *array, int64_t stride, size_t size,
                              int64_t batch, long long *bytes) {
  int64_t all;
  if (stride < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: %s is %lld, must be 0 or more", function, name, (long long)stride);
  if (__builtin_mul_overflow(stride, (int64_t)size, bytes) || __builtin_mul_overflow((int64_t)*bytes, batch, &all))
    return wlmi_fail(WLM_ERR_OVERFLOW, "%s: %s is %lld, with which %s does not fit 64 bits", function, name,
                     (long long)stride, array);
  return WLM_OK;
}

static const char *address_of(const wlmi_array *array, const void *kernel) {
  const char *address;
  memcpy(&address, (const char *)kernel + array->to, sizeof address);
  return address;
}

/* Whether the products' results are apart: behind each other, or side by side in lines that are long enough. */
static wlm_status check_result(const char *function, const wlmi_shape *shape, const wlmi_array *array, int64_t stride,
                               const struct wlm_batch_launch *kernel) {
  long long ld = array->columns;
  const int by_columns = array->by_columns && array->columns > 1;
  const int64_t lines = wlmi_lines_of(shape, &kernel->args, array);
  const int64_t count = by_columns ? array->columns : lines, used = by_columns ? lines : array->columns;
  if (array->ld_name) memcpy(&ld, (const char *)kernel + array->ld_to, sizeof ld);
  const int64_t whole = (count - 1) * ld + used;
  if (stride >= whole || (stride >= used && stride * (shape->batch - 1) + used <= ld)) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                   "%s: %s is %lld, with which the products of the batch overlap in %s; it must be %lld or more%s%s",
                   function, array->stride_name, (long long)stride, array->name, (long long)whole,
                   array->ld_name ? ", or lie within lines of " : "", array->ld_name ? array->ld_name : "");
}

wlm_status wlmi_batch_take(const char *function, const wlmi_shape *shape, const wlmi_bound *bound,
                           const wlm_execute_args *call, struct wlm_batch_launch *kernel) {
  const wlmi_arrays *arrays = &shape->arrays;
  kernel->batch = (struct wlm_batch){.count = bound->together};
  if (bound->together > 1) kernel->batch.workspace = (long long)bound->workspace_size / bound->together;
  for (int i = 0; i < arrays->count; i++) {
    const wlmi_array *array = &arrays->list[i];
    int64_t stride;
    long long bytes = 0;
    if (!array->stride_name) continue;
    memcpy(&stride, (const char *)call + array->stride_from, sizeof stride);
    WLM_CHECK(take_stride(function, array->stride_name, array->name, stride, array->size, shape->batch, &bytes));
    memcpy((char *)kernel + array->stride_to, &bytes, sizeof bytes);
    if (array->is_output && address_of(array, kernel)) WLM_CHECK(check_result(function, shape, array, stride, kernel));
  }
  if (!shape->has_values) return WLM_OK;
  return take_stride(function, "values_stride", "values", call->values_stride, wlmi_type_size(shape->value_type),
                     shape->batch, &kernel->batch.values);
}

struct wlm_batch_launch wlmi_batch_part(const wlmi_shape *shape, const wlmi_bound *bound,
                                        const struct wlm_batch_launch *all, int64_t first) {
  const wlmi_arrays *arrays = &shape->arrays;
  struct wlm_batch_launch part = *all;
  const int64_t left = shape->batch - first;
  if (left < bound->together) part.batch.count = left;
  part.args.values = (const char *)part.args.values + first * part.batch.values;
  for (int i = 0; i < arrays->count; i++) {
    const wlmi_array *array = &arrays->list[i];
    const char *address = address_of(array, all);
    if (!array->stride_name || !address) continue;
    address += first * wlmi_batch_stride(array, all);
    memcpy((char *)&part + array->to, &address, sizeof address);
  }
  return part;
}
