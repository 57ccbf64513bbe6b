/* The entries of a matrix while a reader collects them: coordinate arrays that grow on demand. */
#pragma once

#include "core/csr/csr.h"

typedef struct wlmi_entries {
  int has_values; /* 0: a pattern */
  int64_t count, capacity;
  int32_t *row, *col;
  float *value; /* NULL for a pattern */
} wlmi_entries;

/* `most`: as many entries as may come. WLM_ERR_OUT_OF_MEMORY */
wlm_status wlmi_entries_add(wlmi_entries *entries, int64_t most, int64_t row, int64_t col, float value);
/* Converts them and releases them, also where that fails. */
wlm_status wlmi_entries_to_csr(wlmi_entries *entries, int64_t rows, int64_t cols, wlmi_csr_host *out);
void wlmi_entries_release(wlmi_entries *entries);
