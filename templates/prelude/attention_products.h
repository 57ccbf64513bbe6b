/* Scores that are sums over the columns of a head: each lane adds what its columns give, and the lanes of the head add
 * these up. Nothing is loaded twice: where a score is made of B, the piece that a lane loads for the product serves its
 * part of the score, too. */
% local product = problem.products
/* The other factor: of the row that the kernel walks, or a constant. */
struct wlm_side {
  int head;
  long long row, column;
  struct wlm_piece mine;
  wlm_acc_t att[@{vector}];
};

WLM_FN struct wlm_side wlm_side_at(const struct wlm_args *args, long long column) {
  struct wlm_side side;
  side.head = (int)(column / @{problem.head_text});
  side.column = column;
% for v = 0, vector - 1 do
  side.att[@{v}] = wlm_att(args, column + @{v});
% end
  return side;
}

WLM_FN struct wlm_side wlm_enter_side(const struct wlm_args *args, struct wlm_side side, long long row, int aligned) {
  side.row = row;
  side.mine = wlm_read_piece(wlm_row_of_mine(args, row) + side.column, aligned);
  return side;
}

/* The lane's piece of the edge's side. */
WLM_FN struct wlm_piece wlm_load_other(const struct wlm_args *args, const struct wlm_side *side, wlm_colind_t column,
                                       int aligned) {
  return wlm_read_piece(wlm_row_of_other(args, column) + side->column, aligned);
}

/* The sum over the columns of a head, whose lanes all come here together. */
WLM_FN wlm_acc_t wlm_product(const struct wlm_args *args, const struct wlm_side *side, struct wlm_piece other,
                             wlm_colind_t column) {
% local held = {}
% for v = 0, vector - 1 do
%   held[v + 1] = ("wlm_column_part(args, wlm_piece_at(side->mine, %d), wlm_piece_at(other, %d), side->att[%d])"):format(v, v, v)
% end
% local function term(v)
%   return ("wlm_column_part(args, wlm_load_b(mine + j + %d), wlm_load_b(row + j + %d), wlm_att(args, j + %d))"):format(v, v, v)
% end
% if dense == together then
  (void)column;
% else
  const wlm_b_t *mine = wlm_row_of_mine(args, side->row), *row = wlm_row_of_other(args, column);
  (void)other;
% end
% include("prelude/sum_columns.h", { pieces = dense, together = together, head = "(long long)side->head", held = held, term = term })
  return product;
}
% if problem.attention == "gradient" then

/* Adds the gradient of an edge's score by the row's columns@{product.pair and ", without its scale" or ""}. */
WLM_FN struct wlm_sums wlm_fold_slopes(const struct wlm_args *args, const struct wlm_side *side, struct wlm_sums sums,
                                       wlm_acc_t dterm, struct wlm_piece other) {
% for v = 0, vector - 1 do
  sums.@{product.pair and "more" or "at"}[@{v}] += dterm * wlm_column_slope(args, wlm_piece_at(side->mine, @{v}), wlm_piece_at(other, @{v}), side->att[@{v}]);
% end
  return sums;
}
% end

