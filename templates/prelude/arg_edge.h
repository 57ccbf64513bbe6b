/* What an element of dC goes to: its edge, the row of B that the edge names, and what is multiplied by the slopes. */
struct wlm_arg_edge { long long p, place, k; wlm_acc_t x, a, b; }; /* place: in dvalues, which has one for each head */

WLM_FN wlm_acc_t @{head_a}wlm_acc_t a, wlm_acc_t b) { (void)a; (void)b; return @{slope_a}; }
WLM_FN wlm_acc_t @{head_b}wlm_acc_t a, wlm_acc_t b) { (void)a; (void)b; return @{slope_b}; }

% if problem.transpose then
/* Of A^T the edge's row of B is its row in A, which is what args has besides: cols of op(A) are rows of A. */
WLM_FN long long wlm_arg_row_of_b(const struct wlm_args *args, long long p) {
  long long low = 0, high = args->cols;
  while (high - low > 1) {
    const long long middle = low + (high - low) / 2;
    if (wlm_begin(args, middle) <= p) low = middle;
    else high = middle;
  }
  return low;
}
% else
WLM_FN long long wlm_arg_row_of_b(const struct wlm_args *args, long long p) { return wlm_column(args, p); }
% end

/* The edge that an element of C came from; -1 where there was none, or no such element. */
WLM_FN long long wlm_arg_winner(const struct wlm_args *args, long long row, long long column) {
  if (row >= args->rows) return -1;
  const @{problem.stored_type} stored = ((const @{problem.stored_type} *)args->arg)[row * args->ldc + column];
% if problem.stored_bytes == 2 then
  const long long begin = wlm_begin(args, row);
  return begin < wlm_begin(args, row + 1) ? begin + (unsigned short)(stored - begin) : -1;
% else
  return stored;
% end
}

/* Of the edge p, which may be -1. */
WLM_FN struct wlm_arg_edge wlm_arg_edge_of(const struct wlm_args *args, long long row, long long column, long long p) {
  struct wlm_arg_edge edge = {p, 0, 0, 0, 1, 0};
  if (p < 0) return edge;
  const int head = (int)((unsigned int)column / (unsigned int)args->head_width);
  edge.place = edge.p * args->heads + head;
  edge.k = wlm_arg_row_of_b(args, edge.p);
  edge.x = (wlm_acc_t)args->alpha * wlm_widen(((const wlm_c_t *)args->x)[row * args->ldc + column]);
% if reads_a then
  edge.a = @{load_a("args", "edge.p", "head")};
% end
% if reads_b then
  edge.b = wlm_load_b((const wlm_b_t *)args->b + edge.k * args->ldb + column);
% end
  return edge;
}

