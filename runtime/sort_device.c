/* Keys and positions alternate between two buffers each; the last round writes the first ones. */
#include "runtime/sort_device.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, THREADS = 512, MOST_TILES = 384, LEAST_ENTRIES = 4096 };
enum { FINISH_THREADS = 256 };
enum { COUNT, SCATTER, FINISH };

static int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

size_t wlmi_sort_round_up(size_t size) { return (size + 255) / 256 * 256; }

static int rounds_for(int64_t keys) {
  int rounds = 1;
  while (rounds * DIGIT_BITS < 62 && keys - 1 >= (int64_t)1 << (rounds * DIGIT_BITS)) rounds++;
  return rounds;
}

wlm_status wlmi_sort_make(int64_t nnz, int64_t keys, wlmi_sort *sort) {
  int64_t units = divide_up(nnz, MOST_TILES);
  units = units > LEAST_ENTRIES ? divide_up(units, THREADS) * THREADS : LEAST_ENTRIES;
  if (nnz > INT64_MAX / 64 || keys > INT64_MAX / 64 || units > UINT32_MAX)
    return wlmi_fail(WLM_ERR_OVERFLOW, "sorting %lld entries by %lld keys", (long long)nnz, (long long)keys);
  sort->rounds = rounds_for(keys);
  sort->units = units;
  sort->tiles = nnz ? divide_up(nnz, units) : 1;
  sort->counts = wlmi_sort_round_up((size_t)(DIGITS * sort->tiles) * sizeof(uint32_t));
  return WLM_OK;
}

static wlm_status launch(const wlmi_device *device, void *kernel, int64_t blocks, unsigned int threads,
                         const struct wlm_args *args, void *stream) {
  if (blocks > INT32_MAX) return wlmi_fail(WLM_ERR_OVERFLOW, "%lld blocks", (long long)blocks);
  const wlmi_launch one = {.kernel = kernel, .grid = {(unsigned int)blocks, 1, 1}, .threads = threads, .dependent = 1};
  return device->ops->launch(device, &one, args, stream);
}

wlm_status wlmi_sort_enqueue(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlmi_sort *sort,
                             void *const keys[2], void *const order[2], struct wlm_args *args, void *stream) {
  args->blocks = sort->tiles;
  args->units = sort->units;
  for (int round = 0; args->nnz && round < sort->rounds; round++) {
    const int to = (sort->rounds - 1 - round) % 2;
    args->c = keys[to];
    args->arg = order[to];
    args->seed = (unsigned long long)round * DIGIT_BITS;
    WLM_CHECK(launch(device, kernels[COUNT], sort->tiles, THREADS, args, stream));
    WLM_CHECK(launch(device, kernels[SCATTER], sort->tiles, THREADS, args, stream));
    args->b = args->c;
    args->values = args->arg;
  }
  return WLM_OK;
}

wlm_status wlmi_sort_finish(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], int64_t threads,
                            const struct wlm_args *args, void *stream) {
  return launch(device, kernels[FINISH], divide_up(threads, FINISH_THREADS), FINISH_THREADS, args, stream);
}
