/* wlm_csr_from_bsr: writes the elements of blocks as CSR on their device. */
#include "core/base/pointer.h"
#include "core/csr/blocks.h"
#include "core/problem/element.h"
#include "core/problem/size.h"
#include "core/problem/structs.h"
#include "runtime/helper.h"

static const char function[] = "wlm_csr_from_bsr";

static wlm_status check_size(const char *name, int64_t blocks, int64_t of_block, int64_t *size) {
  if (of_block < 1 || !wlmi_is_size(of_block))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_bsr.block_%s is %lld, must be 1 or more", name,
                     (long long)of_block);
  if (__builtin_mul_overflow(blocks, of_block, size) || !wlmi_is_size(*size))
    return wlmi_fail(WLM_ERR_OVERFLOW, "%s: %lld block %s of %lld do not fit 64 bits", function, (long long)blocks,
                     name, (long long)of_block);
  return WLM_OK;
}

static wlm_csr csr_of(const wlm_bsr *bsr) {
  wlm_csr csr = WLM_CSR_INIT;
  csr.rows = bsr->rows, csr.cols = bsr->cols, csr.nnz = bsr->blocks;
  csr.rowptr = bsr->rowptr, csr.colind = bsr->colind, csr.values = bsr->values;
  csr.rowptr_type = bsr->rowptr_type, csr.colind_type = bsr->colind_type, csr.value_type = bsr->value_type;
  csr.base = bsr->base;
  return csr;
}

/* Checks the blocks as a matrix of their own, then the result. */
static wlm_status check(const wlm_bsr *bsr, wlm_csr *result) {
  wlm_csr blocks = csr_of(bsr);
  int64_t elements;
  *result = blocks;
  if (bsr->order != WLM_ROW_MAJOR && bsr->order != WLM_COLUMN_MAJOR)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_bsr.order is %d, which is not in its enum", (int)bsr->order);
  if (!bsr->values != !bsr->to_values)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_bsr.%s is NULL, and %s is not; give both or none",
                     bsr->values ? "to_values" : "values", bsr->values ? "values" : "to_values");
  WLM_CHECK(wlmi_check_base("wlm_bsr.base", bsr->base));
  wlm_status status = wlmi_matrix_check(&blocks);
  if (status != WLM_OK) return wlmi_fail_in(status, "%s: the blocks", function);
  WLM_CHECK(check_size("rows", bsr->rows, bsr->block_rows, &result->rows));
  WLM_CHECK(check_size("cols", bsr->cols, bsr->block_cols, &result->cols));
  if (__builtin_mul_overflow(bsr->block_rows, bsr->block_cols, &elements) ||
      __builtin_mul_overflow(bsr->blocks, elements, &result->nnz))
    return wlmi_fail(WLM_ERR_OVERFLOW, "%s: the elements of all blocks do not fit 64 bits", function);
  result->rowptr = bsr->to_rowptr, result->colind = bsr->to_colind, result->values = bsr->to_values;
  status = wlmi_matrix_check(result);
  return status == WLM_OK ? WLM_OK : wlmi_fail_in(status, "%s: the result", function);
}

static wlm_status convert_by_host(wlmi_device *device, wlm_bsr bsr, const wlm_csr *to) {
  const size_t offset = wlmi_index_size(bsr.rowptr_type), index = wlmi_index_size(bsr.colind_type);
  const size_t value = wlmi_type_size(bsr.value_type);
  wlmi_mirror arrays[] = {{"rowptr", &bsr.rowptr, bsr.rows + 1, offset, 0, NULL},
                          {"colind", &bsr.colind, bsr.blocks, index, 0, NULL},
                          {"values", &bsr.values, to->nnz, value, 0, NULL},
                          {"to_rowptr", &bsr.to_rowptr, to->rows + 1, offset, 1, NULL},
                          {"to_colind", &bsr.to_colind, to->nnz, index, 1, NULL},
                          {"to_values", &bsr.to_values, to->nnz, value, 1, NULL}};
  const int count = sizeof arrays / sizeof *arrays;
  const wlm_status status = wlmi_mirror_open(device, bsr.stream, arrays, count);
  if (status == WLM_OK) wlmi_bsr_to_csr(&bsr);
  return wlmi_mirror_close(device, bsr.stream, arrays, count, status);
}

static wlm_status enqueue(const wlmi_device *device, void *const kernels[WLMI_MAX_PASSES], const wlm_bsr *bsr,
                          const wlm_csr *to) {
  const int of_values = wlmi_size_class(wlmi_type_size(bsr->value_type));
  const int64_t threads = to->nnz > to->rows ? to->nnz : to->rows + 1;
  const struct wlm_args args = {.rows = bsr->rows,
                                .nnz = bsr->blocks,
                                .heads = bsr->block_rows,
                                .head_width = bsr->block_cols,
                                .rowptr = bsr->rowptr,
                                .colind = bsr->colind,
                                .values = bsr->values,
                                .sample_width = bsr->base,
                                .scaled = bsr->order == WLM_COLUMN_MAJOR,
                                .prepared = bsr->to_rowptr,
                                .arg = bsr->to_colind,
                                .c = bsr->to_values};
  return wlmi_help_launch(device, kernels[of_values], wlmi_divide_up(threads, 256), 256, 0, &args, bsr->stream);
}

wlm_status wlm_csr_from_bsr(wlm_context *context, const wlm_bsr *given) {
  wlmi_help help;
  wlm_bsr bsr;
  wlm_csr to, types = WLM_CSR_INIT;
  WLM_CHECK(wlmi_need(function, "context bsr", context, given));
  WLM_CHECK(wlmi_struct_read(&wlmi_struct_bsr, given, &bsr));
  WLM_CHECK(check(&bsr, &to));
  types.rowptr_type = bsr.rowptr_type;
  types.colind_type = bsr.colind_type;
  wlm_status status = wlmi_help_begin(context, WLMI_HELPER_BLOCKS, &types, 1, bsr.stream, 0, &help);
  if (status == WLM_OK)
    status =
        help.kernels ? enqueue(context->device, help.kernels, &bsr, &to) : convert_by_host(context->device, bsr, &to);
  wlmi_help_end(context, bsr.stream, &help);
  return wlmi_finish(status);
}
