/* Puts rows with common columns next to each other, for windows of 8 rows: wlm_order gets the rows in their new
 * order, wlm_edges_before_window the edges before each window. Where the tiles will be is memory for the steps before.
 *
 * Rows of more than twice the mean come first, the longest ones before the others: blocks begin in the order of windows,
 * so the last ones to end are short. Rows of about one length are sorted by their most frequent column of those with at
 * most @{frequent} edges. Then each block orders @{block} of them: the next row has the largest overlap with the rows of
 * the window so far, squared and divided by its length. The columns of a row are a bit set of 1024 hashes, a thread a
 * row. Nothing depends on timing. */

/* The key of each row; the other half of the sort. */
WLM_FN long long *wlm_keys(const struct wlm_args *args) { return (long long *)wlm_tile_at(args, 0); }

WLM_FN long long wlm_degree(const struct wlm_args *args, long long row) {
  return wlm_begin(args, row + 1) - wlm_begin(args, row);
}

/* About how many edges a column has: in most graphs as many as the row of its number. */
WLM_FN long long wlm_frequency(const struct wlm_args *args, wlm_colind_t column) {
  return column < args->rows ? wlm_degree(args, column) : 0;
}

% include "prelude/scan_block.h"

/* Sorts `order`, numbers below `count`, by their keys of `bits` bits and leaves equal ones in their order; `other` is
 * memory for as many. One bit after the other; each thread moves a share of consecutive ones. Block of 1024. */
WLM_FN void wlm_sort(long long *order, long long *other, const long long *keys, long long count, int bits) {
  const long long share = (count + 1023) / 1024, begin = threadIdx.x * share < count ? threadIdx.x * share : count;
  const long long end = begin + share < count ? begin + share : count;
  for (int bit = 0; bit < bits; bit++) {
    long long zeros = 0;
    for (long long i = begin; i < end; i++) zeros += !(keys[order[i]] >> bit & 1);
    const struct wlm_scan scan = wlm_scan_block(zeros);
    long long zero = scan.before, one = scan.all + begin - scan.before;
    for (long long i = begin; i < end; i++) other[keys[order[i]] >> bit & 1 ? one++ : zero++] = order[i];
    __syncthreads();
    for (long long i = threadIdx.x; i < count; i += 1024) order[i] = other[i];
    __syncthreads();
  }
}

/* A row's most frequent column that is not too frequent, of equal ones the first. Whole warp. */
WLM_FN long long wlm_common_column(const struct wlm_args *args, long long row) {
  const long long end = wlm_begin(args, row + 1);
  long long common = args->cols, most = 0;
  for (long long p = wlm_begin(args, row) + threadIdx.x % 32u; p < end; p += 32) {
    const wlm_colind_t column = wlm_column(args, p);
    const long long edges = wlm_frequency(args, column);
    if (edges > @{frequent} || edges < most || (edges == most && column >= common)) continue;
    most = edges;
    common = column;
  }
  for (int step = 16; step > 0; step /= 2) {
    const long long other_common = __shfl_xor_sync(0xffffffffu, common, step);
    const long long other = __shfl_xor_sync(0xffffffffu, most, step);
    if (other < most || (other == most && other_common >= common)) continue;
    most = other;
    common = other_common;
  }
  return common;
}

/* 4 bits that are smaller the longer the row is, and 8 of its column. */
WLM_KERNEL(wlm_windows_keys, @{32 * keyed}) {
  const long long row = wlm_fast_block() * @{keyed} + threadIdx.x / 32u;
  if (row >= args.rows) return;
  const long long common = wlm_common_column(&args, row);
  const int longer = __clzll(args.nnz / args.rows + 1) - __clzll(wlm_degree(&args, row)) - 1;
  if (threadIdx.x % 32u != 0) return;
  const long long length = 15 - (longer < 0 ? 0 : longer > 15 ? 15 : longer);
  wlm_keys(&args)[row] = length << 8 | 256 * common / (args.cols + 1);
  wlm_order(&args)[row] = row;
}

WLM_KERNEL(wlm_windows_sort, 1024) {
  long long *order = wlm_order(&args), *keys = wlm_keys(&args), edges = 0;
  wlm_sort(order, keys + args.rows, keys, args.rows, 12);
  for (long long first = 0; first < args.rows; first += 1024) {
    const long long place = first + threadIdx.x;
    const struct wlm_scan scan = wlm_scan_block(place < args.rows ? wlm_degree(&args, order[place]) : 0);
    if (place < args.rows && place % @{block} == 0) wlm_edges_before_window(&args)[place / 8] = edges + scan.before;
    edges += scan.all;
  }
}

/* The largest of all threads' values. */
WLM_FN unsigned long long wlm_largest(unsigned long long value) {
  __shared__ unsigned long long warps[32];
  for (int step = 16; step > 0; step /= 2) {
    const unsigned long long other = __shfl_xor_sync(0xffffffffu, value, step);
    if (other > value) value = other;
  }
  if (threadIdx.x % 32u == 0) warps[threadIdx.x / 32u] = value;
  __syncthreads();
  value = warps[threadIdx.x % @{block // 32}u];
  for (int step = 16; step > 0; step /= 2) {
    const unsigned long long other = __shfl_xor_sync(0xffffffffu, value, step);
    if (other > value) value = other;
  }
  return value;
}

WLM_KERNEL(wlm_windows_group, @{block}) {
  __shared__ unsigned int window[32], added[32], changed; /* by the last row, and which of its words are not 0 */
  __shared__ long long edges;
  const long long first = wlm_fast_block() * @{block}, place = first + threadIdx.x;
  const int rows = args.rows - first < @{block} ? (int)(args.rows - first) : @{block}, here = place < args.rows;
  long long *order = wlm_order(&args), *before = wlm_edges_before_window(&args) + first / 8;
  const long long row = here ? order[place] : 0;
  const long long begin = here ? wlm_begin(&args, row) : 0;
  const long long degree = here ? wlm_degree(&args, row) : 0;
  unsigned int set[32] = {0};
  for (long long p = begin; p < begin + (degree < @{longest} ? degree : @{longest}); p++) {
    const wlm_colind_t column = wlm_column(&args, p);
    const unsigned int hash = (unsigned int)column * 0x9e3779b1u >> 22;
    if (wlm_frequency(&args, column) > @{frequent}) continue;
#pragma unroll
    for (int i = 0; i < 32; i++) set[i] |= (unsigned int)(hash / 32 == i) << hash % 32;
  }
  if (threadIdx.x == 0) edges = before[0];
  int taken = !here, overlap = 0;
  __syncthreads();
  for (int k = 0; k < rows; k++) {
    union { float value; unsigned int bits; } score = {degree > 0 ? (float)overlap * (float)overlap / (float)degree : 0};
    const unsigned long long mine = taken ? 0 : (unsigned long long)score.bits << 32 | (@{block} - threadIdx.x);
    const int winner = @{block} - (int)(wlm_largest(mine) & 0xffffffffu);
    if (winner == (int)threadIdx.x) {
      taken = 1;
      order[first + k] = row;
      if (k % 8 == 0) before[k / 8] = edges;
      edges += degree;
      unsigned int words = 0;
#pragma unroll
      for (int i = 0; i < 32; i++) {
        const unsigned int had = k % 8 == 0 ? 0 : window[i];
        added[i] = set[i] & ~had;
        window[i] = set[i] | had;
        words |= (unsigned int)(added[i] != 0) << i;
      }
      changed = words;
    }
    __syncthreads();
    if (k % 8 == 0) overlap = 0; /* until here with the window before */
#pragma unroll
    for (int i = 0; i < 32; i++)
      if (changed >> i & 1u) overlap += __popc(set[i] & added[i]);
  }
}
