/* Puts rows with common columns next to each other, for windows of @{rows} rows: wlm_order gets the rows in their new
 * order, wlm_edges_before_window the edges before each window. Where the tiles will be is memory for the steps before.
 *
 * One block sorts the rows by their most frequent column of those with at most @{frequent} edges. Then each block orders
 * 1024 of them: the next row has the largest overlap with the rows of the window so far, squared and divided by its
 * length. The columns of a row are a bit set of 1024 hashes, a thread a row. Nothing depends on timing. */

/* Edges of each column (of those that are equal modulo nnz); the key of each row; the other half of the sort. */
WLM_FN int *wlm_frequency(const struct wlm_args *args, wlm_colind_t column) {
  return (int *)wlm_tile_at(args, 0) + column % args->nnz;
}
WLM_FN long long *wlm_keys(const struct wlm_args *args) {
  return (long long *)wlm_tile_at(args, 0) + (args->nnz + 1) / 2;
}

/* The sum of the threads before this one, and that of all. */
struct wlm_scan { long long before, all; };
WLM_FN struct wlm_scan wlm_scan_block(long long value) {
  __shared__ long long warps[32];
  const int lane = (int)(threadIdx.x % 32u), warp = (int)(threadIdx.x / 32u);
  struct wlm_scan scan = {value, 0};
  for (int step = 1; step < 32; step *= 2) {
    const long long other = __shfl_up_sync(0xffffffffu, scan.before, step);
    if (lane >= step) scan.before += other;
  }
  __syncthreads(); /* the sums of the scan before were read */
  if (lane == 31) warps[warp] = scan.before;
  __syncthreads();
  scan.before -= value;
  for (int other = 0; other < 32; other++) {
    if (other < warp) scan.before += warps[other];
    scan.all += warps[other];
  }
  return scan;
}

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

/* The key of a row: its most frequent column that is not too frequent, of equal ones the first. Whole warp. */
WLM_FN long long wlm_key(const struct wlm_args *args, long long row) {
  const long long end = wlm_begin(args, row + 1);
  long long key = args->cols;
  int most = 0;
  for (long long p = wlm_begin(args, row) + threadIdx.x % 32u; p < end; p += 32) {
    const wlm_colind_t column = wlm_column(args, p);
    const int edges = *wlm_frequency(args, column);
    if (edges > @{frequent} || edges < most || (edges == most && column >= key)) continue;
    most = edges;
    key = column;
  }
  for (int step = 16; step > 0; step /= 2) {
    const long long other_key = __shfl_xor_sync(0xffffffffu, key, step);
    const int other = __shfl_xor_sync(0xffffffffu, most, step);
    if (other < most || (other == most && other_key >= key)) continue;
    most = other;
    key = other_key;
  }
  return key;
}

WLM_KERNEL(wlm_windows_sort, 1024) {
  long long *order = wlm_order(&args), *keys = wlm_keys(&args), *other = keys + args.rows;
  for (long long p = threadIdx.x; p < args.nnz; p += 1024) *(wlm_frequency(&args, 0) + p) = 0;
  __syncthreads();
  for (long long p = threadIdx.x; p < wlm_begin(&args, args.rows); p += 1024)
    atomicAdd(wlm_frequency(&args, wlm_column(&args, p)), 1);
  __syncthreads();
  for (long long row = threadIdx.x / 32u; row < args.rows; row += 32) {
    const long long key = wlm_key(&args, row);
    if (threadIdx.x % 32u == 0) {
      keys[row] = key;
      order[row] = row;
    }
  }
  __syncthreads();

  int bits = 0;
  while (args.cols >> bits > 0) bits++;
  wlm_sort(order, other, keys, args.rows, bits);

  /* The edges before every 1024 rows, which are grouped next. */
  long long edges = 0;
  for (long long first = 0; first < args.rows; first += 1024) {
    const long long place = first + threadIdx.x, row = place < args.rows ? order[place] : 0;
    const long long degree = place < args.rows ? wlm_begin(&args, row + 1) - wlm_begin(&args, row) : 0;
    const struct wlm_scan scan = wlm_scan_block(degree);
    if (threadIdx.x == 0) wlm_edges_before_window(&args)[first / @{rows}] = edges;
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
  value = warps[threadIdx.x % 32u];
  for (int step = 16; step > 0; step /= 2) {
    const unsigned long long other = __shfl_xor_sync(0xffffffffu, value, step);
    if (other > value) value = other;
  }
  return value;
}

WLM_KERNEL(wlm_windows_group, 1024) {
  __shared__ unsigned int window[32];
  __shared__ long long edges;
  const long long first = wlm_fast_block() * 1024, place = first + threadIdx.x;
  const int rows = args.rows - first < 1024 ? (int)(args.rows - first) : 1024, here = place < args.rows;
  long long *order = wlm_order(&args), *before = wlm_edges_before_window(&args) + first / @{rows};
  const long long row = here ? order[place] : 0;
  const long long begin = here ? wlm_begin(&args, row) : 0;
  const long long degree = here ? wlm_begin(&args, row + 1) - begin : 0;
  unsigned int set[32] = {0};
  for (long long p = begin; p < begin + (degree < @{longest} ? degree : @{longest}); p++) {
    const wlm_colind_t column = wlm_column(&args, p);
    const unsigned int hash = (unsigned int)column * 0x9e3779b1u >> 22;
    if (*wlm_frequency(&args, column) > @{frequent}) continue;
#pragma unroll
    for (int i = 0; i < 32; i++) set[i] |= (unsigned int)(hash / 32 == i) << hash % 32;
  }
  if (threadIdx.x < 32) window[threadIdx.x] = 0;
  if (threadIdx.x == 0) edges = before[0];
  int taken = !here;
  __syncthreads();
  for (int k = 0; k < rows; k++) {
    int overlap = 0;
#pragma unroll
    for (int i = 0; i < 32; i++) overlap += __popc(set[i] & window[i]);
    union { float value; unsigned int bits; } score = {degree > 0 ? (float)overlap * (float)overlap / (float)degree : 0};
    const unsigned long long mine = taken ? 0 : (unsigned long long)score.bits << 32 | (1024 - threadIdx.x);
    const int winner = 1024 - (int)(wlm_largest(mine) & 0xffffffffu);
    if (winner == (int)threadIdx.x) {
      taken = 1;
      order[first + k] = row;
      if (k % @{rows} == 0) before[k / @{rows}] = edges;
      edges += degree;
#pragma unroll
      for (int i = 0; i < 32; i++) window[i] = k % @{rows} == 0 ? set[i] : window[i] | set[i];
    }
    __syncthreads();
  }
}
