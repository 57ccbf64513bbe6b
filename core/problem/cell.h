/* Quantised stats. All matrices of a cell share one decision, which is made for the cell's centre, so it does not
 * depend on which matrix came first. Finer than a bucket (core/problem/bucket.h). */
#pragma once

#include "core/base/status.h"

/* Rows, columns, CV and the longest row in quarter octaves, non-zeros in eighths (small counts exactly); shares in
 * steps. Estimated stats have the first three alone. */
typedef struct wlmi_cell {
  int16_t estimated, rows, cols, nnz, cv, longest, top_share, empty, le_4, le_16;
} wlmi_cell;

void wlmi_cell_of(const wlm_stats *stats, int estimated, wlmi_cell *cell);
/* Stats that lie in the cell; without a fingerprint. */
void wlmi_cell_centre(const wlmi_cell *cell, wlm_stats *stats);
void wlmi_cell_centre_of(const wlm_stats *stats, int estimated, wlm_stats *centre); /* of the cell of these stats */

/* Stats of a matrix of which only the size is known, as if all rows were equally long. */
void wlmi_stats_estimate(int64_t rows, int64_t cols, int64_t nnz, wlm_stats *stats);
