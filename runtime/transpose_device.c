/* Builds A^T by the rounds of a radix sort. Columns and positions alternate between two buffers each. The last round
 * leaves the positions in `order` and the sorted columns in a buffer from which rowptr is computed. */
#include "runtime/transpose_device.h"

#include "csr/transpose.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, THREADS = 512, MOST_TILES = 384, LEAST_ENTRIES = 4096 };
enum { FINISH_THREADS = 256 };
enum { COUNT, SCATTER, FINISH };

/* The parts of the scratch: counts, then columns, then positions if there is more than one round. */
typedef struct sort_plan {
  int rounds;
  int64_t tiles, units; /* entries of a tile */
  size_t columns, order, size;
} sort_plan;

static int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static size_t round_up(size_t size) { return (size + 255) / 256 * 256; }

static int rounds_for(int64_t cols) {
  int rounds = 1;
  while (rounds * DIGIT_BITS < 62 && cols - 1 >= (int64_t)1 << (rounds * DIGIT_BITS)) rounds++;
  return rounds;
}

static sort_plan plan_for(const wlm_csr *csr) {
  sort_plan plan = {.rounds = rounds_for(csr->cols), .units = divide_up(csr->nnz, MOST_TILES)};
  plan.units = plan.units > LEAST_ENTRIES ? divide_up(plan.units, THREADS) * THREADS : LEAST_ENTRIES;
  plan.tiles = csr->nnz ? divide_up(csr->nnz, plan.units) : 1;
  plan.columns = round_up((size_t)(DIGITS * plan.tiles) * sizeof(uint32_t));
  plan.order = plan.columns + round_up((size_t)csr->nnz * wlmi_index_size(csr->colind_type));
  plan.size = plan.order + (plan.rounds > 1 ? round_up((size_t)csr->nnz * wlmi_index_size(csr->rowptr_type)) : 0);
  return plan;
}

wlm_status wlmi_transpose_layout_of(const wlm_csr *csr, wlmi_transpose_layout *layout) {
  wlm_status status;
  WLM_TRY(wlmi_transpose_fits(csr));
  if (csr->nnz > INT64_MAX / 64 || csr->cols > INT64_MAX / 64 || plan_for(csr).units > UINT32_MAX)
    WLM_TRY(wlmi_fail(WLM_ERR_OVERFLOW, "the transpose of %lld columns and %lld non-zeros", (long long)csr->cols,
                      (long long)csr->nnz));
  layout->rowptr = 0;
  layout->colind = round_up((size_t)(csr->cols + 1) * wlmi_index_size(csr->rowptr_type));
  layout->order = layout->colind + round_up((size_t)csr->nnz * wlmi_index_size(csr->colind_type));
  layout->scratch = layout->order + round_up((size_t)csr->nnz * wlmi_index_size(csr->rowptr_type));
  layout->size = layout->scratch + plan_for(csr).size;
done:
  return status;
}

static wlm_status launch(const wlmi_device *device, void *kernel, int64_t blocks, unsigned int threads,
                         const struct wlm_args *args, void *stream) {
  if (blocks > INT32_MAX) return wlmi_fail(WLM_ERR_OVERFLOW, "%lld blocks", (long long)blocks);
  const wlmi_launch one = {.kernel = kernel, .grid = {(unsigned int)blocks, 1, 1}, .threads = threads, .dependent = 1};
  return device->ops->launch(device, &one, args, stream);
}

wlm_status wlmi_transpose_enqueue(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlm_csr *csr,
                                  void *rowptr, void *colind, void *order, void *scratch, void *stream) {
  const sort_plan plan = plan_for(csr);
  const int64_t threads = csr->nnz > csr->cols + 1 ? csr->nnz : csr->cols + 1;
  struct wlm_args args = {.rows = csr->rows,
                          .cols = csr->cols,
                          .nnz = csr->nnz,
                          .rowptr = csr->rowptr,
                          .b = csr->colind,
                          .workspace = scratch,
                          .blocks = plan.tiles,
                          .units = plan.units};
  wlm_status status;
  for (int round = 0; csr->nnz && round < plan.rounds; round++) {
    const int last = (plan.rounds - 1 - round) % 2 == 0; /* this round writes to the same buffer as the last one */
    args.c = last ? (char *)scratch + plan.columns : colind;
    args.arg = last ? order : (char *)scratch + plan.order;
    args.seed = (unsigned long long)round * DIGIT_BITS;
    WLM_TRY(launch(device, kernels[COUNT], plan.tiles, THREADS, &args, stream));
    WLM_TRY(launch(device, kernels[SCATTER], plan.tiles, THREADS, &args, stream));
    args.b = args.c;
    args.values = args.arg;
  }
  args.c = rowptr;
  args.arg = colind;
  WLM_TRY(launch(device, kernels[FINISH], divide_up(threads, FINISH_THREADS), FINISH_THREADS, &args, stream));
done:
  return status;
}
