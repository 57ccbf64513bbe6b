% local gradient, rows, products = problem.attention == "gradient", problem.attention == "rows", problem.products
% local backward = gradient or rows
% local pair = products and products.pair
% local dense = any_width and 0 or problem.head_width // vector -- pieces of a head; 0 = any number
% local together = math.max(1, math.min(lanes, dense & -dense)) -- lanes that add up a product of rows; they lie side by side in a head
/* Attention over pieces: what attention_block.h has for a column, for @{vector} columns of one head at once. The
 * numbers of an edge are the same for all lanes of its head, and each lane makes them itself: a shuffle takes as long as
 * the exponential that it would save. */
% local sides, score_of = "", "terms->row_term"
% if products then
%   sides, score_of = ", struct wlm_piece other, wlm_colind_t column", "wlm_product(args, &terms->side, other, column)"
%   include("prelude/attention_products.h", { dense = dense, together = together })
% end
% local row_offset = dense == together and "" or " + (long long)wlm_column(args, p) * args->ldb" -- of the row of `b` that an edge has
/* What of the row and of the lane's columns every edge needs. */
struct wlm_terms {
  int head, is_first; /* is_first: the lane stores what there is once for a head */
  const wlm_acc_t *row_terms; /* of the first row */
  wlm_acc_t row_term;
% if products or gradient then
  long long first_row;
% end
% if products then
  struct wlm_side side;
% end
% if backward then
  long long column, row;
  struct wlm_piece own; /* of the row of @{gradient and "B" or "dC"} */
% end
% if rows then
  struct wlm_softmax_pair softmax;
  wlm_acc_t delta;
% end
};

/* The k-th row from the first. */
WLM_FN struct wlm_terms wlm_enter_row(const struct wlm_args *args, struct wlm_terms terms, int k, int aligned) {
  terms.row_term = wlm_row_term(args, terms.row_terms, k);
  (void)aligned;
% if products then
  terms.side = wlm_enter_side(args, terms.side, terms.first_row + k, aligned);
% end
% if backward then
  terms.row = terms.first_row + k;
  terms.own = wlm_read_piece((const wlm_b_t *)args->x + terms.row * args->ldc + terms.column, aligned);
% end
% if rows then
  terms.softmax = wlm_row_softmax(args, terms.row, terms.head);
  terms.delta = wlm_row_delta(args, terms.row, terms.head);
% end
  return terms;
}

/* Of a lane at a column; `inside` is 0 where it has none and must not store. */
WLM_FN struct wlm_terms wlm_terms_at(const struct wlm_args *args, long long first_row, long long column, int inside) {
  struct wlm_terms terms;
  terms.head = (int)(column / @{problem.head_text});
  terms.is_first = inside && column % @{problem.head_text} == 0;
  terms.row_terms = wlm_row_terms(args, first_row, terms.head);
% if products or gradient then
  terms.first_row = first_row;
% end
% if products then
  terms.side = wlm_side_at(args, column);
% end
% if backward then
  terms.column = column;
% end
  return terms;
}

% if backward then
/* The product of dC's row with B's over the columns of a head. Delta is made in the same order (warploom_attention.h says
 * how), so that where one edge has all the weight their difference is 0. */
WLM_FN wlm_acc_t wlm_head_product(const struct wlm_args *args, const struct wlm_terms *terms, struct wlm_piece piece,
                                  const wlm_b_t *row) {
% local held = {}
% for v = 0, vector - 1 do held[v + 1] = ("wlm_piece_at(piece, %d) * wlm_piece_at(terms->own, %d)"):format(v, v) end
% local function term(v) return ("wlm_load_b(row + j + %d) * wlm_load_b(own + j + %d)"):format(v, v) end
% if dense == together then
  (void)args;
  (void)row;
% else
  const wlm_b_t *own = (const wlm_b_t *)args->x + terms->row * args->ldc;
  (void)piece;
% end
% include("prelude/sum_columns.h", { pieces = dense, together = together, head = "(long long)terms->head", held = held, term = term })
  return product;
}

% end
% if rows then
%   include("prelude/attention_rows.h", { sides = sides, score_of = score_of, row_offset = row_offset })
% elseif gradient then
/* Edge p, whose lanes all come here together. */
WLM_FN struct wlm_sums wlm_fold_edge(struct wlm_sums sums, struct wlm_edge edge, struct wlm_piece piece,
                                const struct wlm_args *args, const struct wlm_terms *terms, long long p@{sides}) {
  const wlm_b_t *row = (const wlm_b_t *)args->b@{row_offset};
  const wlm_acc_t weight = wlm_weight(wlm_score(args, @{score_of}, edge), edge.softmax);
  const wlm_acc_t product = wlm_head_product(args, terms, piece, row);
  const wlm_acc_t dterm = weight * (wlm_weighted(product, edge) - edge.delta)@{products and "" or " * wlm_slope(args, terms->row_term, edge)"};
  sums = wlm_fold(sums, wlm_weighted(weight, edge), piece);
% if products then
  sums = wlm_fold_slopes(args, &terms->side, sums, dterm, other);
% end
% if not pair then
  sums.term += dterm;
% end
  if (terms->is_first) wlm_store_edge(args, p, terms->head, dterm);
  return sums;
}
% else
WLM_FN struct wlm_sums wlm_scale_sums(struct wlm_sums sums, wlm_acc_t factor) {
% for v = 0, vector - 1 do
  sums.at[@{v}] *= factor;
% end
  sums.total *= factor;
  return sums;
}

/* Makes room for edges with a largest score. */
WLM_FN struct wlm_sums wlm_raise(struct wlm_sums sums, wlm_acc_t score) {
  if (wlm_outgrows(score, sums.base)) {
    sums = wlm_scale_sums(sums, wlm_exp(sums.base - score));
    sums.base = score;
  }
  sums.largest = wlm_larger(sums.largest, score);
  return sums;
}

/* An edge with a score that there is room for. */
WLM_FN struct wlm_sums wlm_add(struct wlm_sums sums, wlm_acc_t score, struct wlm_edge edge, struct wlm_piece piece) {
  const wlm_acc_t weight = wlm_power(score, sums.base);
  sums = wlm_fold(sums, wlm_weighted(weight, edge), piece);
  sums.total += weight;
  return sums;
}

WLM_FN struct wlm_sums wlm_fold_edge(struct wlm_sums sums, struct wlm_edge edge, struct wlm_piece piece,
                                const struct wlm_args *args, const struct wlm_terms *terms, long long p@{sides}) {
  const wlm_acc_t score = wlm_score(args, @{score_of}, edge);
  (void)p;
  return wlm_add(wlm_raise(sums, score), score, edge, piece);
}

WLM_FN struct wlm_sums wlm_combine_sums(struct wlm_sums sums, struct wlm_sums more) {
  const wlm_acc_t base = wlm_larger(sums.base, more.base);
  sums = wlm_scale_sums(sums, wlm_exp(sums.base - base));
  more = wlm_scale_sums(more, wlm_exp(more.base - base));
% for v = 0, vector - 1 do
  sums.at[@{v}] += more.at[@{v}];
% end
  sums.total += more.total;
  sums.base = base;
  sums.largest = wlm_larger(sums.largest, more.largest);
  return sums;
}

% end
% if backward then

WLM_FN struct wlm_sums wlm_combine_sums(struct wlm_sums sums, struct wlm_sums more) {
% for v = 0, vector - 1 do
  sums.at[@{v}] += more.at[@{v}];
% if pair then
  sums.more[@{v}] += more.more[@{v}];
% end
% end
% if not pair then
  sums.term += more.term;
% end
  return sums;
}
% end
% if not rows then

/* Of a whole row: stores what there is besides C, and gives what becomes C. */
WLM_FN struct wlm_sums wlm_close_sums(const struct wlm_args *args, long long row, long long column, struct wlm_sums sums) {
% if pair then
% for v = 0, vector - 1 do
  wlm_store_side(args, row, column + @{v}, sums.more[@{v}]);
% end
% else
  if (column % @{problem.head_text} == 0)
    wlm_store_head(args, row, (int)(column / @{problem.head_text}), @{gradient and "sums.term" or "sums.base, sums.total, sums.largest"});
% end
% if not gradient then
  const wlm_acc_t factor = wlm_reciprocal(sums.total);
% for v = 0, vector - 1 do
  sums.at[@{v}] = sums.total == 0 ? 0 : sums.at[@{v}] * factor;
% end
% end
  return sums;
}
% end

/* A column of partial sums, which were stored by pieces where that column's wlm_mix has room. */
WLM_FN struct wlm_mix wlm_mix_at(const struct wlm_mix *row, long long column) {
  const struct wlm_sums *sums = (const struct wlm_sums *)(row + column / @{vector} * @{vector});
  struct wlm_mix mix;
  mix.value = sums->at[column % @{vector}];
% if pair then
  mix.more = sums->more[column % @{vector}];
% elseif gradient then
  mix.term = sums->term;
% else
  mix.base = sums->base;
  mix.total = sums->total;
  mix.largest = sums->largest;
% end
  return mix;
}
