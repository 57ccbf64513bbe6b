#include "runtime/dispatch/layout.h"

#include <stddef.h>
#include <string.h>

#include "core/base/pointer.h"
#include "core/problem/element.h"
#include "runtime/dispatch/batch.h"

static int is_by_columns(const wlmi_array *array) { return array->by_columns && array->columns > 1; }

int wlmi_has_columns(const wlmi_arrays *arrays) {
  int count = 0;
  for (int i = 0; i < arrays->count; i++) count += is_by_columns(&arrays->list[i]);
  return count > 0;
}

/* ---- which arrays stay where they are ------------------------------------------------------------------- */

/* Both ways are compared by the sectors that the caches of a GPU move. A pass more costs about 1.2 us, in which those
 * of an H200 move this many. */
static const double sectors_of_pass = 250e3;
enum { SECTOR = 32, CACHE_LINE = 128 }; /* bytes */

static double products_of(const wlmi_shape *shape) {
  return shape->loaded.program.is_batched ? (double)shape->batch : 1;
}

/* A copied C is moved three times: stored by rows, read and stored by columns. In place a warp stores a sector for each
 * column of the rows that it has at once. */
static int c_stays(const wlmi_shape *shape, const wlmi_array *c, int64_t lines) {
  const double elements = (double)lines * (double)c->columns * products_of(shape), of_sector = SECTOR / (double)c->size;
  const double rows = (double)shape->loaded.program.rows_together, together = rows < of_sector ? rows : of_sector;
  return elements / together <= 3 * elements / of_sector + sectors_of_pass;
}

/* A copied B is read and stored once, and an edge then reads the sectors of a row. In place it reads one for each
 * column, unless B has so few rows that columns share lines of the cache. */
static int b_stays(const wlmi_shape *shape, const wlmi_array *b, int64_t lines, const struct wlm_args *args) {
  const double row = (double)b->columns * (double)b->size, whole = row * (double)lines;
  const double sampled = (double)args->rows * (double)shape->sample_width;
  const double edges = shape->sample_width && sampled < (double)args->nnz ? sampled : (double)args->nnz;
  const double by_rows = row > SECTOR ? row / SECTOR : 1;
  const double shared = whole / CACHE_LINE + 1, apart = (double)b->columns < shared ? (double)b->columns : shared;
  const double more = edges * (apart - by_rows), copied = 2 * whole / SECTOR;
  return shape->loaded.program.takes_b_columns && (more - copied) * products_of(shape) <= sectors_of_pass;
}

static int is_of_b(const wlmi_array *array) { return array->ld_to == offsetof(struct wlm_args, ldb); }

/* Arrays with one leading dimension stay together, as the first of them does. */
static void choose_steps(const wlmi_shape *shape, const struct wlm_args *args, wlmi_layout *layout) {
  const wlmi_arrays *arrays = &shape->arrays;
  layout->has_steps = shape->loaded.program.rows_together > 0;
  for (int i = arrays->count - 1; i >= 0 && layout->has_steps; i--) {
    const wlmi_array *array = &arrays->list[i];
    if (!is_by_columns(array)) continue;
    const int64_t lines = wlmi_lines_of(shape, args, array);
    if (is_of_b(array))
      layout->b_stays = b_stays(shape, array, lines, args);
    else
      layout->c_stays = c_stays(shape, array, lines);
  }
}

int wlmi_is_copied(const wlmi_layout *layout, const wlmi_array *array) {
  return is_by_columns(array) && !(is_of_b(array) ? layout->b_stays : layout->c_stays);
}

/* ---- copies --------------------------------------------------------------------------------------------- */

/* The leading dimension of all copies, which arrays with one leading dimension need: lines begin at multiples of 16
 * bytes, so that kernels load vectors, unless they are shorter. */
static int64_t padded(const wlmi_arrays *arrays, int64_t n) {
  int64_t unit = 1;
  size_t least = 16;
  for (int i = 0; i < arrays->count; i++)
    if (is_by_columns(&arrays->list[i]) && arrays->list[i].size < least) least = arrays->list[i].size;
  while (unit < n && unit * (int64_t)least < 16) unit *= 2;
  return (n + unit - 1) / unit * unit;
}

static wlm_status add_copy(const wlmi_shape *shape, const wlmi_array *array, int64_t lines, wlmi_copy *copy,
                           size_t *size) {
  const wlmi_extent extent = {.rows = lines, .n = array->columns};
  const wlmi_pass *pass = shape->layout.program.passes;
  int64_t elements, bytes, total;
  if (array->columns > (int64_t)UINT32_MAX / (int64_t)array->size - 16)
    return wlmi_fail(WLM_ERR_OVERFLOW, "wlm_problem.n is %lld, and a copy by rows of %s would have lines above 4 GiB",
                     (long long)array->columns, array->name);
  int overflow = __builtin_mul_overflow(lines, copy->ld, &elements);
  overflow |= __builtin_mul_overflow(elements, (int64_t)array->size, &bytes);
  copy->offset = (*size + WLMI_WORK_ALIGNMENT - 1) / WLMI_WORK_ALIGNMENT * WLMI_WORK_ALIGNMENT;
  overflow |= __builtin_add_overflow((int64_t)copy->offset, bytes, &total);
  if (overflow) return wlmi_fail(WLM_ERR_OVERFLOW, "a copy by rows of %s does not fit 64 bits", array->name);
  copy->lines = lines;
  *size = (size_t)total;
  return wlmi_launch_make(pass, shape->device->info.limits.target, wlmi_pass_unit_blocks(pass, &extent, 0),
                          array->columns, NULL, &copy->launch);
}

wlm_status wlmi_layout_bind(const wlmi_shape *shape, const struct wlm_args *args, size_t used, wlmi_layout *layout) {
  *layout = (wlmi_layout){.size = used};
  choose_steps(shape, args, layout);
  for (int i = 0; i < shape->arrays.count; i++) {
    const wlmi_array *array = &shape->arrays.list[i];
    if (!wlmi_is_copied(layout, array)) continue;
    wlmi_copy *copy = &layout->copies[layout->count++];
    *copy = (wlmi_copy){.array = i, .ld = padded(&shape->arrays, array->columns)};
    WLM_CHECK(add_copy(shape, array, wlmi_lines_of(shape, args, array), copy, &layout->size));
  }
  return WLM_OK;
}

enum { TO_ROWS, TO_COLUMNS };

static wlm_status copy_all(const wlmi_shape *shape, const wlmi_array *array, const wlmi_copy *copy, int direction,
                           int64_t products, const wlmi_given *from, const wlmi_given *to, void *stream) {
  const struct wlm_batch_launch launch_args = {
      {.rows = copy->lines, .n = array->columns, .b = from->address, .ldb = from->ld, .c = to->address, .ldc = to->ld},
      {.count = products, .b = from->stride, .c = to->stride},
      {1, 1}};
  wlmi_launch launch = copy->launch;
  if (!launch.unit_blocks) return WLM_OK;
  launch.kernel = shape->layout.kernels[3 * direction + wlmi_size_class(array->size)];
  wlmi_launch_repeat(&launch, products);
  return shape->device->ops->launch(shape->device, &launch, &launch_args.args, stream);
}

static int is_read(const wlmi_array *array, const struct wlm_args *args) {
  return array->is_output ? array->to == offsetof(struct wlm_args, c) && args->beta != 0
                          : array->need != WLMI_NEED_NEVER;
}

/* Bytes from the copies of one product to those of the next one: each product has a workspace of its own. */
static long long stride_of_copies(int64_t products, const void *kernel) {
  const struct wlm_batch_launch *launch = kernel;
  return products > 1 ? launch->batch.workspace : 0;
}

/* Of an array that stays, the caller's leading dimension is the step from column to column. */
static void take_steps(const wlmi_layout *layout, struct wlm_batch_launch *kernel) {
  kernel->steps = (struct wlm_steps){1, 1};
  if (layout->b_stays) kernel->steps.b = kernel->args.ldb, kernel->args.ldb = 1;
  if (layout->c_stays) kernel->steps.c = kernel->args.ldc, kernel->args.ldc = 1;
}

wlm_status wlmi_layout_begin(const wlmi_shape *shape, const wlmi_layout *layout, void *workspace, int64_t products,
                             void *kernel, wlmi_given given[WLMI_MOST_COPIES], void *stream) {
  char *const to = kernel;
  const long long stride = stride_of_copies(products, kernel);
  if (layout->has_steps) take_steps(layout, kernel);
  for (int i = 0; i < layout->count; i++) { /* several may have one leading dimension */
    const wlmi_array *array = &shape->arrays.list[layout->copies[i].array];
    memcpy(&given[i].address, to + array->to, sizeof given[i].address);
    memcpy(&given[i].ld, to + array->ld_to, sizeof given[i].ld);
    given[i].stride = products > 1 ? wlmi_batch_stride(array, kernel) : 0;
  }
  for (int i = 0; i < layout->count; i++) {
    const wlmi_copy *copy = &layout->copies[i];
    const wlmi_array *array = &shape->arrays.list[copy->array];
    const wlmi_given place = {(char *)workspace + copy->offset, copy->ld, stride};
    memcpy(to + array->ld_to, &place.ld, sizeof place.ld);
    if (products > 1) memcpy(to + array->stride_to, &stride, sizeof stride);
    if (!given[i].address) continue;
    memcpy(to + array->to, &place.address, sizeof place.address);
    if (is_read(array, kernel)) WLM_CHECK(copy_all(shape, array, copy, TO_ROWS, products, &given[i], &place, stream));
  }
  return WLM_OK;
}

wlm_status wlmi_layout_end(const wlmi_shape *shape, const wlmi_layout *layout, int64_t products, const void *kernel,
                           const wlmi_given given[WLMI_MOST_COPIES], void *stream) {
  for (int i = 0; i < layout->count; i++) {
    const wlmi_copy *copy = &layout->copies[i];
    const wlmi_array *array = &shape->arrays.list[copy->array];
    wlmi_given place = {NULL, copy->ld, stride_of_copies(products, kernel)};
    if (!array->is_output || !given[i].address) continue;
    memcpy(&place.address, (const char *)kernel + array->to, sizeof place.address);
    WLM_CHECK(copy_all(shape, array, copy, TO_COLUMNS, products, &place, &given[i], stream));
  }
  return WLM_OK;
}
