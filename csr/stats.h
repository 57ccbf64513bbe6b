/* Statistics and fingerprint of a matrix, from CSR arrays in host memory. */
#ifndef WLM_CSR_STATS_H
#define WLM_CSR_STATS_H

#include "common/status.h"

enum { WLM_STATS_SAMPLES = 4096 };

/* The fingerprint reads colind only at min(nnz, WLM_STATS_SAMPLES) evenly spaced positions, so that a matrix
 * in device memory need not be copied whole: position k, 0 <= k < wlmi_stats_sample_count(nnz). */
int64_t wlmi_stats_sample_count(int64_t nnz);
int64_t wlmi_stats_sample_position(int64_t nnz, int64_t k);

/* `sample` holds colind at those positions. Checks rowptr (starts at 0, ends at nnz, never falls) and the
 * sample; WLM_ERR_INVALID_ARGUMENT names the row. */
wlm_status wlmi_stats_compute_sampled(const void *rowptr, wlm_index rowptr_type, int64_t rows, int64_t cols,
                                      int64_t nnz, const int64_t *sample, wlm_stats *out);
wlm_status wlmi_stats_compute(const void *rowptr, wlm_index rowptr_type, int64_t rows, int64_t cols, int64_t nnz,
                              const void *colind, wlm_index colind_type, wlm_stats *out);

#endif
