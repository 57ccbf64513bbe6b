/* Sorts the entries of one row by column. */
#pragma once

#include <stdint.h>

/* An entry is one word: the column in its high half and a payload, such as the bits of the value, in its low half. */
static inline uint64_t wlmi_entry(int32_t column, uint32_t payload) {
  return (uint64_t)(uint32_t)column << 32 | payload;
}
static inline int32_t wlmi_entry_column(uint64_t entry) { return (int32_t)(entry >> 32); }
static inline uint32_t wlmi_entry_payload(uint64_t entry) { return (uint32_t)entry; }

/* By column, stable; `scratch` has room for `count` entries. */
void wlmi_sort_entries(uint64_t *entries, uint64_t *scratch, int64_t count);
