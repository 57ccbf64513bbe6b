/* The sum of the threads before this one, and that of all. Block of 1024. */
struct wlm_scan { long long before, all; };
WLM_FN struct wlm_scan wlm_scan_block(long long value) {
  __shared__ long long warps[32];
  const int lane = (int)(threadIdx.x % 32u), warp = (int)(threadIdx.x / 32u);
  struct wlm_scan scan = {value, 0};
#pragma unroll 1
  for (int step = 1; step < 32; step *= 2) {
    const long long other = __shfl_up_sync(0xffffffffu, scan.before, step);
    if (lane >= step) scan.before += other;
  }
  __syncthreads(); /* the sums of the scan before were read */
  if (lane == 31) warps[warp] = scan.before;
  __syncthreads();
  scan.before -= value;
#pragma unroll 4
  for (int other = 0; other < 32; other++) {
    if (other < warp) scan.before += warps[other];
    scan.all += warps[other];
  }
  return scan;
}
