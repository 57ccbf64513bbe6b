/* Draws the columns of a synthetic matrix whose row lengths are given. */
#pragma once

#include "core/csr/csr.h"

typedef struct wlmi_columns_wanted {
  int64_t rows, cols;
  const int32_t *degrees; /* by vertex, each at most cols; columns.c explains vertices */
  const int64_t *weights; /* cols + 1: running sum of the weights of the columns, by vertex, from 0 */
  const int32_t *names;   /* the row and column number of a vertex; NULL = the vertex number */
  int64_t communities;    /* 1 to rows; more than 1 only where rows = cols */
  int64_t local;          /* billionths of a row's edges that stay in its community */
  uint64_t seed;
} wlmi_columns_wanted;

wlm_status wlmi_columns_make(const wlmi_columns_wanted *wanted, wlmi_csr_host *out);
