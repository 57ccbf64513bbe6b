/* Draws the columns of a synthetic matrix whose row lengths are given. */
#ifndef WLM_SYNTH_WEAVE_H
#define WLM_SYNTH_WEAVE_H

#include "csr/csr.h"

typedef struct wlmi_weave {
  int64_t rows, cols;
  const int32_t *degrees; /* by place, each at most cols; see weave.c for places */
  const int64_t *weights; /* cols + 1: running sum of the popularity of the columns, by place, from 0 */
  const int32_t *names;   /* the row and column number of a place; NULL = the place itself */
  int64_t communities;    /* 1 to rows; more than 1 only where rows = cols */
  int64_t local;          /* billionths of a row's edges that stay in its community */
  uint64_t seed;
} wlmi_weave;

wlm_status wlmi_weave_make(const wlmi_weave *weave, wlmi_csr_host *out);

#endif
