#include "core/problem/program.h"

#include <stdlib.h>

#include "core/base/memory.h"

int64_t wlmi_candidate_misfit(const wlmi_candidate *c, int64_t n) {
  const int64_t width = c->pass.columns_per_block ? c->pass.columns_per_block : n;
  return width >= n ? width - n : (n - width) * 4;
}

void wlmi_program_release(wlmi_program *program) {
  wlmi_free(program->source);
  program->source = NULL;
}

static int compare_with_candidate(const void *variant, const void *candidate) {
  return wlmi_variant_compare(variant, &((const wlmi_candidate *)candidate)->value);
}

const wlmi_candidate *wlmi_candidate_find(const wlmi_candidate_list *list, const wlmi_variant *variant) {
  if (!variant->family || !list->count) return NULL;
  return bsearch(variant, list->candidates, (size_t)list->count, sizeof *list->candidates, compare_with_candidate);
}

const wlmi_candidate *wlmi_candidate_named(const wlmi_candidate_list *list, const char *name) {
  wlmi_variant variant;
  wlmi_variant_recognise(list->families, name, &variant);
  return wlmi_candidate_find(list, &variant);
}

const wlmi_pass *wlmi_program_first_execute(const wlmi_program *program) {
  const wlmi_pass *pass = program->passes;
  while (pass->when != WLMI_WHEN_EXECUTE) pass++;
  return pass;
}

static int64_t blocks_for(int64_t units, int64_t per_block) { return units / per_block + (units % per_block != 0); }

static int64_t units_of(const wlmi_pass *pass, const wlmi_extent *extent, int64_t first_blocks) {
  switch (pass->units) {
    case WLMI_UNITS_ROWS: return extent->rows;
    case WLMI_UNITS_NNZ: return extent->nnz;
    case WLMI_UNITS_ROWS_NNZ:
      return extent->rows + (pass->nonzeros_per_unit ? blocks_for(extent->nnz, pass->nonzeros_per_unit) : extent->nnz);
    case WLMI_UNITS_COLS: return extent->cols;
    case WLMI_UNITS_BLOCKS: return first_blocks;
    default: return 1;
  }
}

int64_t wlmi_pass_unit_blocks(const wlmi_pass *pass, const wlmi_extent *extent, int64_t first_blocks) {
  if ((pass->units == WLMI_UNITS_COLS ? extent->cols : extent->rows) == 0) return 0;
  int64_t blocks = blocks_for(units_of(pass, extent, first_blocks), pass->units_per_block);
  if (!blocks) blocks = 1; /* rows without non-zeros must still be written */
  if (!pass->wave) return blocks;
  const int64_t columns = wlmi_pass_column_blocks(pass, extent->n),
                even = blocks_for(blocks, pass->processors) * pass->processors;
  const int64_t wave = columns < 2 ? pass->wave : columns < pass->wave ? pass->wave / columns : 1; /* of unit blocks */
  return even <= wave ? even : blocks_for(blocks, wave) * wave;
}

int64_t wlmi_pass_units_each(const wlmi_pass *pass, const wlmi_extent *extent, int64_t first_blocks) {
  int64_t blocks = wlmi_pass_unit_blocks(pass, extent, first_blocks);
  if (!pass->wave || !blocks) return pass->units_per_block;
  int64_t each = blocks_for(units_of(pass, extent, first_blocks), blocks);
  return each ? each : 1;
}

int64_t wlmi_pass_column_blocks(const wlmi_pass *pass, int64_t n) {
  return pass->columns_per_block ? blocks_for(n, pass->columns_per_block) : n > 0;
}

wlm_status wlmi_bytes_size(const wlmi_bytes *bytes, const wlmi_extent *extent, int64_t blocks, size_t *size) {
  int64_t total = bytes->one, rows_n, blocks_n, cols_n;
  int overflow = __builtin_mul_overflow(extent->rows, extent->n, &rows_n) && bytes->rows_n;
  overflow |= __builtin_mul_overflow(blocks, extent->n, &blocks_n) && bytes->blocks_n;
  overflow |= __builtin_mul_overflow(extent->cols, extent->n, &cols_n) && bytes->cols_n;
  const int64_t terms[][2] = {{bytes->rows, extent->rows}, {bytes->nnz, extent->nnz}, {bytes->n, extent->n},
                              {bytes->blocks, blocks},     {bytes->rows_n, rows_n},   {bytes->blocks_n, blocks_n},
                              {bytes->cols_n, cols_n}};
  for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
    int64_t term = 0;
    if (terms[i][0]) overflow |= __builtin_mul_overflow(terms[i][0], terms[i][1], &term);
    overflow |= __builtin_add_overflow(total, term, &total);
  }
  if (overflow || total < 0) return wlmi_fail(WLM_ERR_OVERFLOW, "a workspace size does not fit 64 bits");
  *size = (size_t)total;
  return WLM_OK;
}
