#include "runtime/dispatch/overlap.h"

#include <stdint.h>
#include <string.h>

/* Memory from `begin` to before `end`. */
typedef struct range {
  uintptr_t begin, end;
} range;

static range range_of(const void *address, int64_t bytes) {
  return (range){(uintptr_t)address, (uintptr_t)address + (address ? (uintptr_t)bytes : 0)};
}

static int meet(range a, range b) { return a.begin < b.end && b.begin < a.end; }

/* Bytes between the beginnings of its lines. */
static int64_t line_of(const wlmi_array *array, const void *kernel) {
  long long ld = array->columns;
  if (array->ld_name) memcpy(&ld, (const char *)kernel + array->ld_to, sizeof ld);
  return ld * (int64_t)array->size;
}

static range range_of_array(const wlmi_array *array, const int64_t lines[], const void *kernel) {
  const void *address;
  memcpy(&address, (const char *)kernel + array->to, sizeof address);
  const int64_t count = lines[array->place], used = array->columns * (int64_t)array->size;
  return range_of(address, count ? (count - 1) * line_of(array, kernel) + used : 0);
}

/* Whether memory lies between two neighbouring lines of an array, whose lines may be anywhere. */
static int is_between(range inner, const wlmi_array *array, range outer, const void *kernel) {
  const int64_t line = line_of(array, kernel);
  if (inner.begin < outer.begin || line <= 0) return 0;
  const int64_t at = (int64_t)(inner.begin - outer.begin) % line;
  return at >= array->columns * (int64_t)array->size && at + (int64_t)(inner.end - inner.begin) <= line;
}

/* Whether the lines of two arrays whose ranges meet lie between each other, such as those of some columns of one array
 * and of others. */
static int are_apart(const wlmi_array *a, range of_a, const wlmi_array *b, range of_b, const void *kernel) {
  const int64_t line = line_of(a, kernel);
  if (is_between(of_a, b, of_b, kernel) || is_between(of_b, a, of_a, kernel)) return 1;
  if (line != line_of(b, kernel)) return 0;
  const int a_is_first = of_a.begin <= of_b.begin;
  const int64_t between = (int64_t)(a_is_first ? of_b.begin - of_a.begin : of_a.begin - of_b.begin) % line;
  const wlmi_array *first = a_is_first ? a : b, *second = a_is_first ? b : a;
  return between >= first->columns * (int64_t)first->size && between + second->columns * (int64_t)second->size <= line;
}

static wlm_status refuse(const char *function, const char *one, const char *other) {
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                   "%s: %s and %s share memory, and the call writes to it; give each memory of its own", function, one,
                   other);
}

enum { ROWPTR, COLIND, VALUES, WORKSPACE, PREPARED, OTHERS };
static const char *const names[OTHERS] = {"rowptr", "colind", "values", "workspace", "prepared"};

static void find_others(const wlmi_shape *shape, const wlmi_work *work, const struct wlm_args *args,
                        range others[OTHERS]) {
  others[ROWPTR] = range_of(args->rowptr, work->offsets * (int64_t)wlmi_index_size(shape->rowptr_type));
  others[COLIND] = range_of(args->colind, args->nnz * (int64_t)wlmi_index_size(shape->colind_type));
  others[VALUES] = range_of(args->values, args->nnz * shape->heads * (int64_t)wlmi_type_size(shape->value_type));
  others[WORKSPACE] = range_of(work->workspace ? args->workspace : NULL, (int64_t)work->workspace);
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
  find_others(shape, work, args, others);
  return check_work(function, others);
}

wlm_status wlmi_check_overlap(const char *function, const wlmi_shape *shape, const wlmi_arrays *arrays,
                              const wlmi_work *work, const void *kernel) {
  const struct wlm_args *args = kernel;
  const int64_t lines[] = {[WLM_PLACE_ROW] = shape->is_transposed ? args->cols : args->rows,
                           [WLM_PLACE_COLUMN] = shape->is_transposed ? args->rows : args->cols,
                           [WLM_PLACE_EDGE] = args->nnz,
                           [WLM_PLACE_ALL] = 1};
  range others[OTHERS], ranges[WLM_MAX_ARRAYS];
  find_others(shape, work, args, others);
  WLM_CHECK(check_work(function, others));
  for (int i = 0; i < arrays->count; i++) {
    const wlmi_array *array = &arrays->list[i];
    ranges[i] = range_of_array(array, lines, kernel);
    for (int k = array->is_output ? 0 : WORKSPACE; k < OTHERS; k++)
      if (meet(ranges[i], others[k]) && !is_between(others[k], array, ranges[i], kernel))
        return refuse(function, array->name, names[k]);
    for (int k = 0; k < i; k++) {
      const wlmi_array *before = &arrays->list[k];
      if ((array->is_output || before->is_output) && meet(ranges[i], ranges[k]) &&
          !are_apart(array, ranges[i], before, ranges[k], kernel))
        return refuse(function, before->name, array->name);
    }
  }
  return WLM_OK;
}
