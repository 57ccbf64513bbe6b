/* Counting sort into the rows of a CSR matrix, over offsets and indices of either type. Counts are kept one element
 * further, so that after the prefix sum rowptr[row + 1] is where the row's next entry goes, and at the end where the
 * next row begins. */
#pragma once

#include <string.h>

#include "core/problem/spec.h"

static inline int64_t wlmi_index_get(wlm_index type, const void *from, int64_t i) {
  return type == WLM_I64 ? ((const int64_t *)from)[i] : ((const int32_t *)from)[i];
}

static inline void wlmi_index_put(wlm_index type, void *to, int64_t i, int64_t value) {
  if (type == WLM_I64)
    ((int64_t *)to)[i] = value;
  else
    ((int32_t *)to)[i] = (int32_t)value;
}

static inline void wlmi_places_clear(wlm_index type, void *rowptr, int64_t rows) {
  memset(rowptr, 0, (size_t)(rows + 1) * wlmi_index_size(type));
}

/* Counts an entry of this row. */
static inline void wlmi_places_count(wlm_index type, void *rowptr, int64_t rows, int64_t row) {
  if (row + 2 <= rows) wlmi_index_put(type, rowptr, row + 2, wlmi_index_get(type, rowptr, row + 2) + 1);
}

/* Sums up the counts; called after the last one. */
static inline void wlmi_places_sum(wlm_index type, void *rowptr, int64_t rows) {
  for (int64_t row = 2; row <= rows; row++)
    wlmi_index_put(type, rowptr, row, wlmi_index_get(type, rowptr, row) + wlmi_index_get(type, rowptr, row - 1));
}

/* Returns the position of the row's next entry. */
static inline int64_t wlmi_places_take(wlm_index type, void *rowptr, int64_t row) {
  const int64_t place = wlmi_index_get(type, rowptr, row + 1);
  wlmi_index_put(type, rowptr, row + 1, place + 1);
  return place;
}
