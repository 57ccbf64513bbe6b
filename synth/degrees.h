/* Row lengths with given moments. */
#ifndef WLM_SYNTH_DEGREES_H
#define WLM_SYNTH_DEGREES_H

#include "common/status.h"

typedef struct wlmi_degrees_wanted {
  int64_t rows, nnz, longest;
  int64_t cv;    /* in millionths */
  int64_t least; /* no row is shorter */
} wlmi_degrees_wanted;

/* Writes `rows` lengths, longest first and otherwise nearly descending, that sum up to nnz exactly; cv is met as
 * far as the other numbers allow it. WLM_ERR_INVALID_ARGUMENT where rows of these bounds cannot sum up to nnz. */
wlm_status wlmi_degrees_make(const wlmi_degrees_wanted *wanted, int32_t *degrees);

#endif
