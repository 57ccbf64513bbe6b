#include "core/csr/entries.h"

#include "core/base/memory.h"

enum { FIRST = 1 << 20 };

static wlm_status grow(wlmi_entries *e, int64_t most) {
  int64_t capacity = e->capacity ? 2 * e->capacity : FIRST;
  if (capacity > most) capacity = most;
  const size_t bytes = (size_t)capacity * 4;
  void *row = wlmi_realloc(e->row, bytes);
  if (row) e->row = row;
  void *col = wlmi_realloc(e->col, bytes);
  if (col) e->col = col;
  void *value = e->has_values ? wlmi_realloc(e->value, bytes) : NULL;
  if (value) e->value = value;
  if (!row || !col || (!value && e->has_values))
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "no memory for %lld entries", (long long)capacity);
  e->capacity = capacity;
  return WLM_OK;
}

wlm_status wlmi_entries_add(wlmi_entries *e, int64_t most, int64_t row, int64_t col, float value) {
  if (e->count == e->capacity) WLM_CHECK(grow(e, most));
  e->row[e->count] = (int32_t)row;
  e->col[e->count] = (int32_t)col;
  if (e->value) e->value[e->count] = value;
  e->count++;
  return WLM_OK;
}

wlm_status wlmi_entries_to_csr(wlmi_entries *e, int64_t rows, int64_t cols, wlmi_csr_host *out) {
  const wlm_status status = wlmi_csr_from_coo(rows, cols, e->count, e->row, e->col, e->value, out);
  wlmi_entries_release(e);
  return status;
}

void wlmi_entries_release(wlmi_entries *e) {
  wlmi_free(e->row);
  wlmi_free(e->col);
  wlmi_free(e->value);
  *e = (wlmi_entries){0};
}
