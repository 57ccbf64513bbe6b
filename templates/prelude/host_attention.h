/* Attention on the host, in the place of host_tile.h: edges of a row folded into `width` columns, each with its wlm_mix.
 * What a head has once, its largest score and its sums, stands in the mix of its first column of the tile until the row
 * has ended. A score is made once for each edge and head of the tile. */
enum { WLM_PIECE = 16 };
% local gradient = problem.attention == "gradient"

/* The columns of the head that `column` is of, up to `end`. */
WLM_FN long long wlm_head_end(long long column, long long end) {
  const long long next = (column / @{problem.head_width} + 1) * @{problem.head_width};
  return next < end ? next : end;
}

% if gradient then
WLM_FN wlm_acc_t wlm_head_product(const wlm_b_t *x, const wlm_b_t *b, int head) {
  wlm_acc_t product = 0;
  for (int j = 0; j < @{problem.head_width}; j++)
    product += wlm_load_b(x + head * @{problem.head_width}ll + j) * wlm_load_b(b + head * @{problem.head_width}ll + j);
  return product;
}

/* An edge into the `count` columns of a head from `column` on. */
WLM_FN void wlm_fold_edge(const struct wlm_args *args, long long p, int head, struct wlm_edge edge, wlm_acc_t row_term,
                          const wlm_b_t *b, const wlm_b_t *own, long long column, long long count, struct wlm_mix *mix) {
  const wlm_acc_t weight = wlm_weight(wlm_score(args, row_term, edge.term), edge.lse);
  const wlm_acc_t kept = wlm_weighted(weight, edge);
  for (long long j = 0; j < count; j++) mix[j].value = wlm_reduce(mix[j].value, wlm_message(kept, wlm_load_b(b + column + j)));
  if (column % @{problem.head_width}) return; /* the rest of the head is another tile's */
  const wlm_acc_t dterm = weight * (wlm_weighted(wlm_head_product(b, own, head), edge) - edge.delta) * wlm_slope(args, row_term, edge.term);
  mix->term += dterm;
  wlm_store_edge(args, p, head, dterm);
}
% else
WLM_FN void wlm_fold_edge(const struct wlm_args *args, struct wlm_edge edge, wlm_acc_t row_term, const wlm_b_t *b,
                          long long column, long long count, struct wlm_mix *mix) {
  const wlm_acc_t score = wlm_score(args, row_term, edge.term);
  if (score > mix->most) {
    const wlm_acc_t factor = wlm_exp(mix->most - wlm_base(score));
    mix->most = score;
    mix->total *= factor;
    for (long long j = 0; j < count; j++) mix[j].value *= factor;
  }
  const wlm_acc_t weight = wlm_exp(score - wlm_base(mix->most));
  mix->total += weight;
  const wlm_acc_t kept = wlm_weighted(weight, edge);
  for (long long j = 0; j < count; j++) mix[j].value = wlm_reduce(mix[j].value, wlm_message(kept, wlm_load_b(b + column + j)));
}
% end

WLM_FN long long wlm_fold(const struct wlm_args *args, long long begin, long long kept, long long degree,
                          struct wlm_sample_state state, long long first, int width, struct wlm_mix acc[][WLM_PIECE], long long row) {
  struct wlm_mix *const mix = &acc[0][0];
  const long long end = first + width;
  (void)state;
  (void)degree;
  for (int j = 0; j < width; j++) mix[j] = wlm_begin_mix();
  for (long long p = begin; p < begin + kept; p++) {
    const wlm_colind_t k = wlm_column(args, p);
    const wlm_b_t *b = (const wlm_b_t *)args->b + (long long)k * args->ldb;
    for (long long column = first, next; column < end; column = next) {
      const int head = (int)(column / @{problem.head_width});
      next = wlm_head_end(column, end);
      wlm_fold_edge(args, @{gradient and "p, head, " or ""}wlm_load_edge(args, p, k, head), wlm_row_term(args, row, head), b,
                    @{gradient and "(const wlm_b_t *)args->x + row * args->ldc, " or ""}column, next - column, mix + (column - first));
    }
  }
  for (long long column = first, next; column < end; column = next) {
    next = wlm_head_end(column, end);
    for (long long j = column + 1; j < next; j++) {
% if gradient then
      mix[j - first].term = mix[column - first].term;
% else
      mix[j - first].most = mix[column - first].most;
      mix[j - first].total = mix[column - first].total;
% end
    }
  }
  return kept;
}

WLM_FN void wlm_store_fold(const struct wlm_args *args, long long row, long long kept, long long degree, long long column,
                           int width, struct wlm_mix acc[][WLM_PIECE]) {
  wlm_c_t *c = (wlm_c_t *)args->c + row * args->ldc;
  (void)kept;
  (void)degree;
  for (int j = 0; j < width; j++) wlm_store(args, c + column + j, column + j, acc[j / WLM_PIECE][j % WLM_PIECE], row);
}
