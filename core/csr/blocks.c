#include "core/csr/blocks.h"

#include <string.h>

#include "core/problem/element.h"
#include "core/problem/spec.h"

/* Line `line` of the block at `p`: its elements follow those of the blocks before it in the row. */
static void put_line(const wlm_bsr *bsr, int64_t p, int64_t line, int64_t to) {
  const int64_t width = bsr->block_cols, column = wlmi_index_get(bsr->colind_type, bsr->colind, p) - bsr->base;
  const size_t size = wlmi_type_size(bsr->value_type);
  const int by_columns = bsr->order == WLM_COLUMN_MAJOR;
  for (int64_t j = 0; j < width; j++) {
    const int64_t in_block = by_columns ? j * bsr->block_rows + line : line * width + j;
    wlmi_index_put(bsr->colind_type, bsr->to_colind, to + j, column * width + j + bsr->base);
    if (bsr->values)
      memcpy((char *)bsr->to_values + (size_t)(to + j) * size,
             (const char *)bsr->values + (size_t)(p * bsr->block_rows * width + in_block) * size, size);
  }
}

void wlmi_bsr_to_csr(const wlm_bsr *bsr) {
  int64_t to = 0;
  wlmi_index_put(bsr->rowptr_type, bsr->to_rowptr, 0, bsr->base);
  for (int64_t i = 0; i < bsr->rows; i++) {
    const int64_t begin = wlmi_index_get(bsr->rowptr_type, bsr->rowptr, i) - bsr->base;
    const int64_t end = wlmi_index_get(bsr->rowptr_type, bsr->rowptr, i + 1) - bsr->base;
    for (int64_t line = 0; line < bsr->block_rows; line++) {
      for (int64_t p = begin; p < end; p++, to += bsr->block_cols) put_line(bsr, p, line, to);
      wlmi_index_put(bsr->rowptr_type, bsr->to_rowptr, i * bsr->block_rows + line + 1, to + bsr->base);
    }
  }
}
