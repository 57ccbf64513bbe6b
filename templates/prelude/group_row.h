/* The row of non-zero p, the last that begins at or before it; a group probes @{lanes} rows a round. Whole warps. */
WLM_FN long long wlm_row_of(const struct wlm_args *args, long long p) {
  long long low = 0, high = args->rows;
  while (__any_sync(0xffffffffu, high - low > 1)) {
    const long long step = (high - low + @{lanes - 1}) / @{lanes};
    const long long row = low + (threadIdx.x % @{lanes}u) * step;
    unsigned int before = __ballot_sync(0xffffffffu, row < high && wlm_begin(args, row) <= p);
    before = before >> threadIdx.x % 32u / @{lanes}u * @{lanes}u & @{(1 << lanes) - 1}u;
    low += (__popc(before) - 1) * step;
    if (low + step < high) high = low + step;
  }
  return low;
}

/* The same from a row on that begins at or before p, in steps that grow while rows are empty. */
WLM_FN long long wlm_row_from(const struct wlm_args *args, long long row, long long p) {
  long long step = 1;
  for (; row + step < args->rows && wlm_begin(args, row + step) <= p; step *= 2) row += step;
  while (step > 1) {
    step /= 2;
    if (row + step < args->rows && wlm_begin(args, row + step) <= p) row += step;
  }
  return row;
}
