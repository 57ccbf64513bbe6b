/* Makes row lengths with a given sum, CV and longest row. */
#pragma once

#include "core/base/status.h"

typedef struct wlmi_degrees_wanted {
  int64_t rows, nnz, longest;
  int64_t cv;    /* in millionths */
  int64_t least; /* no row is shorter */
} wlmi_degrees_wanted;

/* Writes `rows` lengths, longest first and otherwise nearly descending, that add up to nnz exactly. The CV comes as
 * close to cv as the other numbers allow. WLM_ERR_INVALID_ARGUMENT if rows within these bounds cannot add up to nnz. */
wlm_status wlmi_degrees_make(const wlmi_degrees_wanted *wanted, int32_t *degrees);
