/* WLM_ATTENTION_ROWS over pieces. */
WLM_FN struct wlm_sums wlm_fold_edge(struct wlm_sums sums, struct wlm_edge edge, struct wlm_piece piece,
                                const struct wlm_args *args, const struct wlm_terms *terms, long long p,
                                struct wlm_piece other, wlm_colind_t column) {
  (void)p;
  (void)other;
  (void)column;
% for v = 0, vector - 1 do
  const struct wlm_mix mix@{v} = wlm_slopes(args, edge.term, wlm_piece_at(terms->side.mine, @{v}) + wlm_piece_at(piece, @{v}));
  sums.at[@{v}] += mix@{v}.value;
  sums.more[@{v}] += mix@{v}.more;
% end
  return sums;
}

WLM_FN struct wlm_sums wlm_close_sums(const struct wlm_args *args, long long row, long long column, struct wlm_sums sums) {
% for v = 0, vector - 1 do
  const struct wlm_mix mix@{v} = {sums.at[@{v}], sums.more[@{v}]};
  sums.at[@{v}] = wlm_close_column(args, row, column + @{v}, mix@{v});
% end
  return sums;
}
