/* Computes all stats of a matrix on the host, including the fingerprint, which a wlm_matrix computes only when
 * needed. Include after cmocka. */
#pragma once

#include "core/csr/csr.h"
#include "core/csr/stats.h"
#include "support/asserts.h"

static inline wlm_stats test_stats_of(const wlmi_csr_host *csr) {
  wlm_stats stats;
  assert_status(WLM_OK,
                wlmi_stats_compute(csr->rowptr, WLM_I64, csr->rows, csr->cols, csr->nnz, csr->colind, WLM_I32, &stats));
  return stats;
}
