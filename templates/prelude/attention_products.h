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
  wlm_acc_t product = 0;
% if dense == together then
  (void)column;
% for v = 0, vector - 1 do
  product += wlm_column_part(args, wlm_piece_at(side->mine, @{v}), wlm_piece_at(other, @{v}), side->att[@{v}]);
% end
% else
  /* A head is wider than the lanes that can add up: each takes several pieces of it. */
  const long long first = (long long)side->head * @{problem.head_text} + threadIdx.x % @{together}u * @{vector};
  const wlm_b_t *mine = wlm_row_of_mine(args, side->row), *row = wlm_row_of_other(args, column);
  (void)other;
#pragma unroll 1
  for (long long k = first; k < first + @{problem.head_text}; k += @{together * vector}) {
% for v = 0, vector - 1 do
    product += wlm_column_part(args, wlm_load_b(mine + k + @{v}), wlm_load_b(row + k + @{v}), wlm_att(args, k + @{v}));
% end
  }
% end
% include("prelude/add_lanes.h", { together = together })
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

