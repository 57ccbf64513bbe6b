/* wlm_csr_from_bsr on the host device, and arguments that it refuses. */
#include "support/bare_host.h"
#include "support/blocks_check.h"
#include "support/test.h"

TEST_BETWEEN(every_kind_of_blocks, bare_host_begin, bare_host_end) { blocks_check(bare_host); }

static void refused(const wlm_bsr *bsr, wlm_status expected, const char *says) {
  assert_status(expected, wlm_csr_from_bsr(bare_host, bsr));
  assert_contains(wlm_error_detail(), says);
}

TEST_BETWEEN(refuses, bare_host_begin, bare_host_end) {
  static const int32_t rowptr[] = {0, 1, 2}, colind[] = {0, 1};
  static const float values[8] = {1};
  static int32_t to_rowptr[5], to_colind[8];
  static float to_values[8];
  wlm_bsr good = WLM_BSR_INIT, bsr;
  good.rows = good.cols = good.blocks = good.block_rows = good.block_cols = 2;
  good.rowptr = rowptr, good.colind = colind, good.values = values;
  good.to_rowptr = to_rowptr, good.to_colind = to_colind, good.to_values = to_values;
  assert_status(WLM_OK, wlm_csr_from_bsr(bare_host, &good));
  refused(NULL, WLM_ERR_INVALID_ARGUMENT, "wlm_csr_from_bsr: bsr is NULL");
  bsr = good, bsr.blocks = -1;
  refused(&bsr, WLM_ERR_INVALID_ARGUMENT, "nnz = -1");
  bsr = good, bsr.block_rows = 0;
  refused(&bsr, WLM_ERR_INVALID_ARGUMENT, "wlm_bsr.block_rows is 0");
  bsr = good, bsr.block_cols = -2;
  refused(&bsr, WLM_ERR_INVALID_ARGUMENT, "wlm_bsr.block_cols is -2");
  bsr = good, bsr.order = (wlm_order)2;
  refused(&bsr, WLM_ERR_INVALID_ARGUMENT, "wlm_bsr.order is 2");
  bsr = good, bsr.base = 2;
  refused(&bsr, WLM_ERR_INVALID_ARGUMENT, "wlm_bsr.base is 2");
  bsr = good, bsr.values = NULL;
  refused(&bsr, WLM_ERR_INVALID_ARGUMENT, "wlm_bsr.values is NULL, and to_values is not");
  bsr = good, bsr.rowptr = NULL;
  refused(&bsr, WLM_ERR_INVALID_ARGUMENT, "the blocks: wlm_csr: rowptr");
  bsr = good, bsr.to_colind = NULL;
  refused(&bsr, WLM_ERR_INVALID_ARGUMENT, "the result: wlm_csr: colind");
  bsr = good, bsr.value_type = (wlm_type)9;
  refused(&bsr, WLM_ERR_INVALID_ARGUMENT, "value_type is 9");
  bsr = good, bsr.block_rows = INT64_MAX / 32, bsr.rows = 64;
  refused(&bsr, WLM_ERR_OVERFLOW, "block rows");
  bsr = good, bsr.block_cols = 1 << 30; /* columns do not fit i32 */
  refused(&bsr, WLM_ERR_OVERFLOW, "the result");
}
