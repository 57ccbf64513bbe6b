/* Rounds of a radix sort. Columns and positions go to and fro between two buffers each; the last round leaves the
 * positions where they belong and the columns in a buffer of their own, out of which rowptr is made. */
#include "runtime/transpose_device.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, MOST_CHUNKS = 4096, LEAST_ENTRIES = 1024 };
enum { COUNT, SCAN, SCATTER, FINISH };

static int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static int rounds_for(int64_t cols) {
  int rounds = 1;
  while (rounds * DIGIT_BITS < 62 && cols - 1 >= (int64_t)1 << (rounds * DIGIT_BITS)) rounds++;
  return rounds;
}

static wlm_status launch(const wlmi_device *device, void *kernel, int64_t blocks, unsigned int threads,
                         const struct wlm_args *args) {
  if (blocks > INT32_MAX) return wlmi_fail(WLM_ERR_OVERFLOW, "%lld blocks", (long long)blocks);
  const wlmi_launch one = {.kernel = kernel, .grid = {(unsigned int)blocks, 1, 1}, .threads = threads};
  return device->ops->launch(device, &one, args, NULL);
}

wlm_status wlmi_transpose_on_device(wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlm_csr *csr,
                                    void *rowptr, void *colind, void *order) {
  const size_t index = (size_t)csr->nnz * wlmi_index_size(csr->colind_type);
  const size_t offset = (size_t)csr->nnz * wlmi_index_size(csr->rowptr_type);
  const int rounds = rounds_for(csr->cols);
  void *spare_columns = NULL, *spare_order = NULL;
  wlm_status status;
  struct wlm_args args = {.rows = csr->rows, .cols = csr->cols, .nnz = csr->nnz, .rowptr = csr->rowptr};
  args.units = divide_up(csr->nnz, MOST_CHUNKS) > LEAST_ENTRIES ? divide_up(csr->nnz, MOST_CHUNKS) : LEAST_ENTRIES;
  args.blocks = divide_up(csr->nnz, args.units);
  if (!csr->nnz) args.blocks = 1;
  WLM_TRY(device->ops->allocate(device, (size_t)(DIGITS * args.blocks) * sizeof(int64_t), &args.workspace));
  WLM_TRY(device->ops->allocate(device, index ? index : 1, &spare_columns));
  WLM_TRY(device->ops->allocate(device, offset ? offset : 1, &spare_order));
  args.b = csr->colind;
  for (int round = 0; round < rounds; round++) {
    const int last = (rounds - 1 - round) % 2 == 0; /* goes where the last round goes */
    args.c = last ? spare_columns : colind;
    args.arg = last ? order : spare_order;
    args.seed = (unsigned long long)round * DIGIT_BITS;
    WLM_TRY(launch(device, kernels[COUNT], divide_up(args.blocks, 4), 128, &args));
    WLM_TRY(launch(device, kernels[SCAN], 1, 1024, &args));
    WLM_TRY(launch(device, kernels[SCATTER], divide_up(args.blocks, 4), 128, &args));
    args.b = args.c;
    args.values = args.arg;
  }
  args.c = rowptr;
  args.arg = colind;
  WLM_TRY(launch(device, kernels[FINISH], divide_up(csr->nnz + 1, 256), 256, &args));
  status = device->ops->synchronize(device, NULL);
done:
  if (status != WLM_OK) device->ops->synchronize(device, NULL);
  if (args.workspace) device->ops->release(device, args.workspace);
  if (spare_columns) device->ops->release(device, spare_columns);
  if (spare_order) device->ops->release(device, spare_order);
  return status;
}
