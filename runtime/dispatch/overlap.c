#include "runtime/dispatch/overlap.h"

#include <stdint.h>
#include <string.h>

#include "runtime/dispatch/batch.h"

/* Memory from `begin` to before `end`. */
typedef struct range {
  uintptr_t begin, end;
} range;

static range range_of(const void *address, int64_t bytes) {
  return (range){(uintptr_t)address, (uintptr_t)address + (address ? (uintptr_t)bytes : 0)};
}

static int meet(range a, range b) { return a.begin < b.end && b.begin < a.end; }

/* Where an array is: its lines, or the columns of a column-major one, follow each other at equal distances. Those of a
 * batch follow each other over all products, or hold the products' side by side, or each product is one line. */
typedef struct place {
  range range;
  int64_t line, used; /* bytes from one to the next, and bytes of one; line 0 = anywhere in the range */
} place;

static place place_of(const wlmi_shape *shape, const wlmi_array *array, const void *kernel) {
  const void *address;
  long long ld = array->columns;
  const int by_columns = array->by_columns && array->columns > 1;
  const int64_t lines = wlmi_lines_of(shape, kernel, array), size = (int64_t)array->size;
  const int64_t count = by_columns ? array->columns : lines, used = (by_columns ? lines : array->columns) * size;
  memcpy(&address, (const char *)kernel + array->to, sizeof address);
  if (array->ld_name) memcpy(&ld, (const char *)kernel + array->ld_to, sizeof ld);
  const int64_t line = ld * size, bytes = lines ? (count - 1) * line + used : 0;
  if (shape->batch < 2 || !array->stride_name) return (place){range_of(address, bytes), line, used};
  const int64_t stride = wlmi_batch_stride(array, kernel), others = stride * (shape->batch - 1);
  const range all = range_of(address, bytes + others);
  if (others + used <= line) return (place){all, line, others + used};
  if (used < line && stride % line == 0) return (place){all, line, used};
  return (place){all, stride >= bytes ? stride : 0, bytes};
}

/* Whether memory lies between two neighbouring lines of an array, whose lines may be anywhere. */
static int is_between(range inner, const place *outer) {
  if (inner.begin < outer->range.begin || outer->line <= 0) return 0;
  const int64_t at = (int64_t)(inner.begin - outer->range.begin) % outer->line;
  return at >= outer->used && at + (int64_t)(inner.end - inner.begin) <= outer->line;
}

/* Whether the lines of two arrays whose ranges meet lie between each other, such as those of some columns of one array
 * and of others. */
static int are_apart(const place *a, const place *b) {
  if (is_between(a->range, b) || is_between(b->range, a)) return 1;
  if (a->line != b->line) return 0;
  const place *first = a->range.begin <= b->range.begin ? a : b, *second = first == a ? b : a;
  const int64_t between = (int64_t)(second->range.begin - first->range.begin) % a->line;
  return between >= first->used && between + second->used <= a->line;
}

static wlm_status refuse(const char *function, const char *one, const char *other) {
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                   "%s: %s and %s share memory, and the call writes to it; give each memory of its own", function, one,
                   other);
}

enum { ROWPTR, COLIND, VALUES, WORKSPACE, PREPARED, OTHERS };
static const char *const names[OTHERS] = {"rowptr", "colind", "values", "workspace", "prepared"};

/* values_of_others: bytes from the values of a batch's first product to those of the last one. */
static void find_others(const wlmi_shape *shape, const wlmi_work *work, const struct wlm_args *args,
                        int64_t values_of_others, range others[OTHERS]) {
  const int64_t rows = wlmi_is_turned(shape) ? args->cols : args->rows;
  others[ROWPTR] = range_of(args->rowptr, (rows + 1) * (int64_t)wlmi_index_size(shape->rowptr_type));
  others[COLIND] = range_of(args->colind, args->nnz * (int64_t)wlmi_index_size(shape->colind_type));
  others[VALUES] =
      range_of(args->values, args->nnz * shape->heads * (int64_t)wlmi_type_size(shape->value_type) + values_of_others);
  others[WORKSPACE] = range_of(work->workspace_size ? work->workspace : NULL, (int64_t)work->workspace_size);
  others[PREPARED] = range_of(work->prepared ? args->prepared : NULL, (int64_t)work->prepared);
}

static wlm_status check_work(const char *function, const range others[OTHERS]) {
  for (int k = WORKSPACE; k < OTHERS; k++)
    for (int i = 0; i < k; i++)
      if (meet(others[k], others[i])) return refuse(function, names[i], names[k]);
  return WLM_OK;
}

wlm_status wlmi_check_work(const char *function, const wlmi_shape *shape, const wlmi_work *work,
                           const struct wlm_args *args) {
  range others[OTHERS];
  find_others(shape, work, args, 0, others);
  return check_work(function, others);
}

wlm_status wlmi_check_overlap(const char *function, const wlmi_shape *shape, const wlmi_work *work,
                              const void *kernel) {
  range others[OTHERS];
  place places[WLMI_MAX_ARRAYS];
  const struct wlm_batch_launch *launch = kernel;
  find_others(shape, work, kernel, shape->batch > 1 ? launch->batch.values * (shape->batch - 1) : 0, others);
  WLM_CHECK(check_work(function, others));
  for (int i = 0; i < shape->arrays.count; i++) {
    const wlmi_array *array = &shape->arrays.list[i];
    places[i] = place_of(shape, array, kernel);
    for (int k = array->is_output ? 0 : WORKSPACE; k < OTHERS; k++)
      if (meet(places[i].range, others[k]) && !is_between(others[k], &places[i]))
        return refuse(function, array->name, names[k]);
    for (int k = 0; k < i; k++) {
      const wlmi_array *before = &shape->arrays.list[k];
      if ((array->is_output || before->is_output) && meet(places[i].range, places[k].range) &&
          !are_apart(&places[i], &places[k]))
        return refuse(function, before->name, array->name);
    }
  }
  return WLM_OK;
}
