/* WLM_ATTENTION_ROWS over pieces: edge p, whose lanes all come here together. */
WLM_FN struct wlm_sums wlm_fold_edge(struct wlm_sums sums, struct wlm_edge edge, struct wlm_piece piece,
                                const struct wlm_args *args, const struct wlm_terms *terms, long long p@{sides}) {
  const wlm_b_t *row = (const wlm_b_t *)args->b@{row_offset};
  const wlm_acc_t weight = wlm_weight(wlm_score(args, @{score_of}, edge), terms->softmax);
  const wlm_acc_t dz = weight * (wlm_weighted(wlm_head_product(args, terms, piece, row), edge) - terms->delta);
  (void)p;
% for v = 0, vector - 1 do
  const struct wlm_mix mix@{v} = wlm_slopes(args, dz, wlm_piece_at(terms->side.mine, @{v}), wlm_piece_at(other, @{v}));
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
