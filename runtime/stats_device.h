/* Measures the stats of a matrix in device memory. */
#pragma once

#include "runtime/dispatch/device.h"

/* `kernels` are those of WLMI_HELPER_STATS for csr's rowptr. With them the device measures;
 * with NULL (the host device, or no compiler) the host does, after a copy of rowptr, and needs no scratch. All work is
 * in the stream's order, and the calls return when it has ended. */

/* Bytes of device memory for `scratch` below, aligned to 16. Its content does not matter. */
size_t wlmi_stats_scratch_size(const wlm_csr *csr);

/* Computes everything but the fingerprint, which is 0, 0, by one launch and one copy of about 100 bytes. Equal to
 * core/csr/stats.c, except that top_share may differ by 1 % if rows of 1,024 or more non-zeros contribute to it.
 * WLM_ERR_INVALID_ARGUMENT names what is wrong with rowptr. */
wlm_status wlmi_stats_measure(wlmi_device *device, void *const *kernels, const wlm_csr *csr, void *stream,
                              void *scratch, wlm_stats *stats);

/* Adds the fingerprint to measured stats: copies rowptr and 4,096 elements of colind to the host.
 * WLM_ERR_INVALID_ARGUMENT names an element that is no column. */
wlm_status wlmi_stats_measure_fingerprint(wlmi_device *device, void *const *kernels, const wlm_csr *csr, void *stream,
                                          void *scratch, wlm_stats *stats);
