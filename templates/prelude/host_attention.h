/* Attention on the host, in the place of host_tile.h: edges of a row folded into `width` columns, each with its wlm_mix.
 * What a head has once, its base and its sums, stands in the mix of its first column of the tile until the row
 * has ended. A score is made once for each edge and head of the tile. */
enum { WLM_PIECE = 16 };
% local gradient, products, rows = problem.attention == "gradient", problem.products, problem.attention == "rows"
% local backward, pair = gradient or rows, products and products.pair
% local row_term = products and "wlm_product(args, row, k, head)" or "wlm_row_term(args, wlm_row_terms(args, row, head), 0)"

/* The columns of the head that `column` is of, up to `end`. */
WLM_FN long long wlm_head_end(long long column, long long end) {
  const long long next = (column / @{problem.head_width} + 1) * @{problem.head_width};
  return next < end ? next : end;
}

% if products then
/* The parts of a score of all columns of a head. */
WLM_FN wlm_acc_t wlm_product(const struct wlm_args *args, long long row, long long k, int head) {
  const wlm_b_t *mine = wlm_row_of_mine(args, row), *other = wlm_row_of_other(args, k);
  const long long first = head * @{problem.head_width}ll;
% include("prelude/host_sum.h", { width = problem.head_width, term = function(j) return ("wlm_column_part(args, wlm_load_b(mine + first + %s), wlm_load_b(other + first + %s), wlm_att(args, first + %s))"):format(j, j, j) end })
  return product;
}

% end
% if backward then
WLM_FN wlm_acc_t wlm_head_product(const wlm_b_t *x, const wlm_b_t *b, int head) {
  x += head * @{problem.head_width}ll;
  b += head * @{problem.head_width}ll;
% include("prelude/host_sum.h", { width = problem.head_width, term = function(j) return ("wlm_load_b(x + %s) * wlm_load_b(b + %s)"):format(j, j) end })
  return product;
}

% end
% if rows then
/* An edge into the `count` columns of a head from `column` on. */
WLM_FN void wlm_fold_edge(const struct wlm_args *args, long long p, int head, struct wlm_edge edge, wlm_acc_t row_term,
                          const wlm_b_t *b, const wlm_b_t *own, long long row, long long column, long long count, struct wlm_mix *mix) {
  const wlm_acc_t weight = wlm_weight(wlm_score(args, row_term, edge), wlm_row_softmax(args, row, head));
  const wlm_acc_t dz = weight * (wlm_weighted(wlm_head_product(own, b, head), edge) - wlm_row_delta(args, row, head));
  const wlm_b_t *mine = wlm_row_of_mine(args, row), *other = wlm_row_of_other(args, wlm_column(args, p));
  for (long long j = column; j < column + count; j++)
    mix[j - column] = wlm_combine(mix[j - column], wlm_slopes(args, dz, wlm_load_b(mine + j), wlm_load_b(other + j)));
}
% elseif gradient then
/* An edge into the `count` columns of a head from `column` on. */
WLM_FN void wlm_fold_edge(const struct wlm_args *args, long long p, int head, struct wlm_edge edge, wlm_acc_t row_term,
                          const wlm_b_t *b, const wlm_b_t *own, @{products and "long long row, " or ""}long long column, long long count, struct wlm_mix *mix) {
  const wlm_acc_t weight = wlm_weight(wlm_score(args, row_term, edge), edge.softmax);
  const wlm_acc_t kept = wlm_weighted(weight, edge);
  for (long long j = 0; j < count; j++) mix[j].value = wlm_reduce(mix[j].value, wlm_message(kept, wlm_load_b(b + column + j)));
% if products then
  const wlm_acc_t dterm = weight * (wlm_weighted(wlm_head_product(b, own, head), edge) - edge.delta);
  const wlm_b_t *mine = wlm_row_of_mine(args, row), *other = wlm_row_of_other(args, wlm_column(args, p));
  for (long long j = column; j < column + count; j++)
    mix[j - column].@{pair and "more" or "value"} += dterm * wlm_column_slope(args, wlm_load_b(mine + j), wlm_load_b(other + j), wlm_att(args, j));
  if (column % @{problem.head_width}) return; /* the rest of the head is another tile's */
% else
  if (column % @{problem.head_width}) return; /* the rest of the head is another tile's */
  const wlm_acc_t dterm = weight * (wlm_weighted(wlm_head_product(b, own, head), edge) - edge.delta) * wlm_slope(args, row_term, edge);
% end
% if not pair then
  mix->term += dterm;
% end
  wlm_store_edge(args, p, head, dterm);
}
% else
WLM_FN void wlm_fold_edge(const struct wlm_args *args, struct wlm_edge edge, wlm_acc_t row_term, const wlm_b_t *b,
                          long long column, long long count, struct wlm_mix *mix) {
  const wlm_acc_t score = wlm_score(args, row_term, edge);
  if (wlm_outgrows(score, mix->base)) {
    const wlm_acc_t factor = wlm_exp(mix->base - score);
    mix->base = score;
    mix->total *= factor;
    for (long long j = 0; j < count; j++) mix[j].value *= factor;
  }
  mix->largest = wlm_larger(mix->largest, score);
  const wlm_acc_t weight = wlm_power(score, mix->base);
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
      wlm_fold_edge(args, @{backward and "p, head, " or ""}wlm_load_edge(args, p, k, head), @{row_term}, b,
                    @{backward and "(const wlm_b_t *)args->x + row * args->ldc, " or ""}@{backward and products and "row, " or ""}column, next - column, mix + (column - first));
    }
  }
% if not pair then
  for (long long column = first, next; column < end; column = next) {
    next = wlm_head_end(column, end);
    for (long long j = column + 1; j < next; j++) {
% if gradient then
      mix[j - first].term = mix[column - first].term;
% else
      mix[j - first].base = mix[column - first].base;
      mix[j - first].total = mix[column - first].total;
      mix[j - first].largest = mix[column - first].largest;
% end
    }
  }
% end
  return kept;
}

WLM_FN void wlm_store_fold(const struct wlm_args *args, long long row, long long kept, long long degree, long long column,
                           int width, struct wlm_mix acc[][WLM_PIECE]) {
  wlm_c_t *c = (wlm_c_t *)args->c + row * args->ldc;
  (void)kept;
  (void)degree;
  for (int j = 0; j < width; j++) wlm_store(args, c + column + j, column + j, acc[j / WLM_PIECE][j % WLM_PIECE], row);
}
