/* The path's row at a diagonal: how many rows end before item `diagonal`. Whole warp; 32 probes a round. */
WLM_FN long long wlm_path_row(const struct wlm_args *args, long long diagonal) {
  long long low = 0, high = args->rows;
  while (high > low) {
    const long long step = (high - low + 31) / 32;
    const long long row = low + (threadIdx.x % 32u) * step;
    const int ended = row < high && wlm_begin(args, row + 1) + row < diagonal;
    const int count = __popc(__ballot_sync(0xffffffffu, ended));
    if (low + count * step < high) high = low + count * step;
    if (count) low += (count - 1) * step + 1;
  }
  return low;
}
