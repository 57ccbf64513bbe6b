% local gradient, products, rows = problem.attention == "gradient", problem.products, problem.attention == "rows"
% local backward, pair = gradient or rows, products and products.pair
% local row_term = products and "wlm_product(args, row, k, head)" or "wlm_row_term(args, wlm_row_terms(args, row, head), 0)"
/* Attention on the host, in the place of host_tile.h: edges of a row folded into `width` columns. A score is made once for
 * each edge and head of the tile. The array of a tile holds what loops over columns read side by side: a sum of each
 * column, and behind these @{pair and "another one of each" or "a struct wlm_head of each head"}. wlm_mix_in gives the wlm_mix of a column. */
enum { WLM_PIECE = 16 };

/* The columns of the head that `column` is of, up to `end`. */
WLM_FN long long wlm_head_end(long long column, long long end) {
  const long long next = (column / @{problem.head_width} + 1) * @{problem.head_width};
  return next < end ? next : end;
}

% if not pair then
/* What a head has once. */
struct wlm_head {
  wlm_acc_t @{gradient and "term" or "base, total, largest"};
};
WLM_FN struct wlm_head *wlm_heads(wlm_acc_t *sums, int width) { return (struct wlm_head *)(sums + width); }

% end
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
                          const wlm_b_t *b, const wlm_b_t *own, long long row, long long column, long long count,
                          wlm_acc_t *restrict sums, wlm_acc_t *restrict more) {
  const wlm_acc_t weight = wlm_weight(wlm_score(args, row_term, edge), wlm_row_softmax(args, row, head));
  const wlm_acc_t dz = weight * (wlm_weighted(wlm_head_product(own, b, head), edge) - wlm_row_delta(args, row, head));
  const wlm_b_t *mine = wlm_row_of_mine(args, row) + column, *other = wlm_row_of_other(args, wlm_column(args, p)) + column;
#pragma omp simd
  for (long long j = 0; j < count; j++) {
    const struct wlm_mix slopes = wlm_slopes(args, dz, wlm_load_b(mine + j), wlm_load_b(other + j));
    sums[j] += slopes.value;
    more[j] += slopes.more;
  }
}
% elseif gradient then
/* An edge into the `count` columns of a head from `column` on. */
WLM_FN void wlm_fold_edge(const struct wlm_args *args, long long p, int head, struct wlm_edge edge, wlm_acc_t row_term,
                          const wlm_b_t *b, const wlm_b_t *own, @{products and "long long row, " or ""}long long column, long long count,
                          wlm_acc_t *restrict sums, @{pair and "wlm_acc_t *restrict more" or "struct wlm_head *of_head"}) {
  const wlm_acc_t weight = wlm_weight(wlm_score(args, row_term, edge), edge.softmax);
  const wlm_acc_t kept = wlm_weighted(weight, edge);
#pragma omp simd
  for (long long j = 0; j < count; j++) sums[j] = wlm_reduce(sums[j], wlm_message(kept, wlm_load_b(b + column + j)));
% if products then
  const wlm_acc_t dterm = weight * (wlm_weighted(wlm_head_product(b, own, head), edge) - edge.delta);
  const wlm_b_t *mine = wlm_row_of_mine(args, row) + column, *other = wlm_row_of_other(args, wlm_column(args, p)) + column;
#pragma omp simd
  for (long long j = 0; j < count; j++)
    @{pair and "more" or "sums"}[j] += dterm * wlm_column_slope(args, wlm_load_b(mine + j), wlm_load_b(other + j), wlm_att(args, column + j));
  if (column % @{problem.head_width}) return; /* the rest of the head is another tile's */
% else
  if (column % @{problem.head_width}) return; /* the rest of the head is another tile's */
  const wlm_acc_t dterm = weight * (wlm_weighted(wlm_head_product(b, own, head), edge) - edge.delta) * wlm_slope(args, row_term, edge);
% end
% if not pair then
  of_head->term += dterm;
% end
  wlm_store_edge(args, p, head, dterm);
}
% else
/* An edge into the `count` columns of a head from those of b on. */
WLM_FN void wlm_fold_edge(const struct wlm_args *args, struct wlm_edge edge, wlm_acc_t row_term, const wlm_b_t *b,
                          long long count, wlm_acc_t *restrict sums, struct wlm_head *head) {
  const wlm_acc_t score = wlm_score(args, row_term, edge);
  if (wlm_outgrows(score, head->base)) {
    if (head->total != 0) { /* else all sums are 0 */
      const wlm_acc_t factor = wlm_exp(head->base - score);
      head->total *= factor;
#pragma omp simd
      for (long long j = 0; j < count; j++) sums[j] *= factor;
    }
    head->base = score;
  }
  head->largest = wlm_larger(head->largest, score);
  const wlm_acc_t weight = wlm_power(score, head->base);
  head->total += weight;
  const wlm_acc_t kept = wlm_weighted(weight, edge);
#pragma omp simd
  for (long long j = 0; j < count; j++) sums[j] = wlm_reduce(sums[j], wlm_message(kept, wlm_load_b(b + j)));
}
% end

WLM_FN long long wlm_fold(const struct wlm_args *args, long long begin, long long kept, long long degree,
                          struct wlm_sample_state state, long long first, int width, struct wlm_mix acc[][WLM_PIECE], long long row) {
  wlm_acc_t *const sums = &acc[0][0].value;
  const long long end = first + width;
  const int first_head = (int)(first / @{problem.head_width});
  (void)state;
  (void)degree;
  for (int j = 0; j < width; j++) sums[j] = 0;
% if pair then
  wlm_acc_t *const more = sums + width;
  for (int j = 0; j < width; j++) more[j] = 0;
% else
  struct wlm_head *const heads = wlm_heads(sums, width);
  for (int h = 0; first_head + h <= (end - 1) / @{problem.head_width}; h++) heads[h] = (struct wlm_head){@{gradient and "0" or "WLM_LEAST, 0, WLM_LEAST"}};
% end
  for (long long p = begin; p < begin + kept; p++) {
    const wlm_colind_t k = wlm_column(args, p);
    const wlm_b_t *b = (const wlm_b_t *)args->b + (long long)k * args->ldb;
    int head = first_head;
    for (long long column = first, next; column < end; column = next, head++) {
      next = wlm_head_end(column, end);
      wlm_fold_edge(args, @{backward and "p, head, " or ""}wlm_load_edge(args, p, k, head), @{row_term}, @{backward and "b" or "b + column"},
                    @{backward and "(const wlm_b_t *)args->x + row * args->ldc, " or ""}@{backward and products and "row, " or ""}@{backward and "column, " or ""}next - column,
                    sums + (column - first), @{pair and "more + (column - first)" or "heads + (head - first_head)"});
    }
  }
  return kept;
}

/* Of column first + j of a tile. */
WLM_FN struct wlm_mix wlm_mix_in(struct wlm_mix acc[][WLM_PIECE], long long first, int width, int j) {
  wlm_acc_t *const sums = &acc[0][0].value;
% if pair then
  (void)first;
  return (struct wlm_mix){sums[j], sums[width + j]};
% else
  const struct wlm_head head = wlm_heads(sums, width)[(first + j) / @{problem.head_width} - first / @{problem.head_width}];
  return (struct wlm_mix){sums[j], @{gradient and "head.term" or "head.base, head.total, head.largest"}};
% end
}

WLM_FN void wlm_store_fold(const struct wlm_args *args, long long row, long long kept, long long degree, long long column,
                           int width, struct wlm_mix acc[][WLM_PIECE]) {
  wlm_c_t *c = (wlm_c_t *)args->c + row * args->ldc;
  (void)kept;
  (void)degree;
% if pair then
  for (int j = 0; j < width; j++) wlm_store(args, c + column + j, column + j, wlm_mix_in(acc, column, width, j), row);
% else
  const long long end = column + width;
  const wlm_acc_t *sums = &acc[0][0].value;
  const struct wlm_head *head = wlm_heads(&acc[0][0].value, width);
  for (long long begin = column, next; begin < end; begin = next, head++) {
    next = wlm_head_end(begin, end);
    if (begin % @{problem.head_width} == 0)
      wlm_store_head(args, row, (int)(begin / @{problem.head_width}), @{gradient and "head->term" or "head->base, head->total, head->largest"});
% if not gradient then
    const wlm_acc_t factor = wlm_reciprocal(head->total);
% end
#pragma omp simd
    for (long long j = begin; j < next; j++) {
      const wlm_acc_t value = @{gradient and "sums[j - column]" or "head->total == 0 ? 0 : sums[j - column] * factor"};
      c[j] = wlm_result(args, j, args->scaled ? wlm_scale(args, c + j, value) : value);
    }
  }
% end
}
