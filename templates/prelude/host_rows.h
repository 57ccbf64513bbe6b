/* Whole rows on the host: each is walked once for every @{tile} columns and once for the rest. A row begins where the one
 * before it ends, so one offset is loaded for each row. */
WLM_FN void wlm_row_tile(const struct wlm_args *args, long long row, long long begin, long long degree,
                         struct wlm_sample_state state, long long column, int width) {
  const long long kept = wlm_kept(degree);
  @{folded} acc[@{tile // 16}][WLM_PIECE];@{not problem.walk and from(" wlm_place_t place[" .. tile // 16 .. "][WLM_PIECE];") or ""}
  const long long folded = wlm_fold(args, begin, kept, degree, state, column, width, acc@{at "place"}@{of "row"});
  wlm_store_fold(args, row, folded, degree, column, width, acc@{at "place"});
}

@{row_lanes and "static __attribute__((noinline))" or "WLM_FN"} void wlm_rows_from(const struct wlm_args *args, long long row, long long last) {
  for (long long begin = wlm_begin(args, row), end; row < last; row++, begin = end) {
    end = wlm_begin(args, row + 1);
    const long long degree = end - begin;
    const struct wlm_sample_state state = wlm_sample_begin(args, row, degree);
    long long column = 0;
% if any_width or problem.n >= tile then
    for (; column + @{tile} <= args->n; column += @{tile})
      wlm_row_tile(args, row, begin, degree, state, column, @{tile});
% end
% if any_width or problem.n % tile > 0 then
    @{any_width and "if (column < args->n) " or ""}wlm_row_tile(args, row, begin, degree, state, column, @{any_width and "(int)(args->n - column)" or problem.n % tile});
% end
  }
}

% if row_lanes then
/* Rows of one column in lanes, of a C without gaps and not scaled. */
static __attribute__((noinline)) void wlm_rows_in_lanes(const struct wlm_args *args, long long row, long long last) {
  struct wlm_args dense = *args;
  dense.scaled = 0;
  dense.ldb = 1;
  wlm_c_t *restrict c = dense.c;
  for (long long begin = wlm_begin(&dense, row), end; row < last; row++, begin = end) {
    end = wlm_begin(&dense, row + 1);
    wlm_store(&dense, c + row, 0, wlm_finish(wlm_fold_lanes(&dense, begin, end), end - begin));
  }
}

% end
static void wlm_rows(const struct wlm_args *args, long long row, long long last) {
% if row_lanes then
  if (!args->scaled && args->ldc == 1) {
    const long long first = row, begin = wlm_begin(args, row);
    for (row = last; row > first && !wlm_has_lanes(args, begin, wlm_begin(args, row));) row--;
    wlm_rows_in_lanes(args, first, row);
    if (row == last) return;
  }
% end
  wlm_rows_from(args, row, last);
}
