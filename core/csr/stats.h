/* Statistics and fingerprint of a matrix, from CSR arrays in host memory. */
#pragma once

#include "core/base/status.h"

enum { WLMI_STATS_SAMPLES = 4096 };

/* A fingerprint of 0, 0 was not computed. */
static inline int wlmi_stats_has_fingerprint(const wlm_stats *stats) {
  return stats->fingerprint[0] || stats->fingerprint[1];
}

/* The fingerprint reads colind only at min(nnz, WLMI_STATS_SAMPLES) evenly spaced positions, so that a matrix
 * in device memory need not be copied whole: position k, 0 <= k < wlmi_stats_sample_count(nnz). */
int64_t wlmi_stats_sample_count(int64_t nnz);
int64_t wlmi_stats_sample_position(int64_t nnz, int64_t k);

/* Facts about a rowptr that show whether it is valid: its first and last offset, and the first row that ends before it
 * begins. */
typedef struct wlmi_rowptr_ends {
  wlm_index type;
  int64_t base; /* what the offsets should begin with; those of a base of 1 end with nnz + 1 */
  int64_t first, last;
  int64_t bad_row;  /* -1 = none */
  int64_t from, to; /* of the bad row */
} wlmi_rowptr_ends;
/* WLM_ERR_INVALID_ARGUMENT where it does not start at base, falls, or does not end at nnz + base; names the row. */
wlm_status wlmi_rowptr_check(const wlmi_rowptr_ends *ends, int64_t rows, int64_t nnz);

/* Computes everything but the fingerprint, which is 0, 0. Checks rowptr. */
wlm_status wlmi_stats_rows(const void *rowptr, wlm_index rowptr_type, int64_t base, int64_t rows, int64_t cols,
                           int64_t nnz, wlm_stats *out);
/* Adds the fingerprint of a matrix with these sizes, whose rowptr was checked. `sample` holds colind at the positions
 * above, counted from 0. WLM_ERR_INVALID_ARGUMENT names an index that is no column. */
wlm_status wlmi_stats_fingerprint(const void *rowptr, wlm_index rowptr_type, int64_t base, const int64_t *sample,
                                  wlm_stats *stats);

/* Those of the block-diagonal matrix that repeats the matrix, without a fingerprint. */
void wlmi_stats_repeat(wlm_stats *stats, int64_t times);

/* Computes both for a base of 0; reads colind only where rowptr is right. */
wlm_status wlmi_stats_compute(const void *rowptr, wlm_index rowptr_type, int64_t rows, int64_t cols, int64_t nnz,
                              const void *colind, wlm_index colind_type, wlm_stats *out);
