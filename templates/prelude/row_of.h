/* The row that holds non-zero p (p < nnz), or for p = nnz the last row: the last row that begins at or before p. */
static long long wlm_row_of(const struct wlm_args *args, long long p) {
  long long low = 0, high = args->rows; /* begin(low) <= p, begin(high) > p or high = rows */
  while (high - low > 1) {
    const long long middle = low + (high - low) / 2;
    if (wlm_begin(args, middle) <= p) low = middle;
    else high = middle;
  }
  return low;
}
