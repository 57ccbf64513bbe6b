% local bytes = vector * problem.dense_bytes
% local word = bytes == 16 and "uint4" or bytes == 8 and "uint2" or "unsigned int"
/* A piece of a row of B or C: @{vector} neighbouring elements, moved at once where the pointers and leading dimensions
 * are aligned for it and by element elsewhere. A template that asks wlm_aligned once and writes its loop for either
 * answer has no test in it. @{vector} divides n, so a piece lies inside a row or past its end as a whole. */
struct __align__(@{bytes}) wlm_piece { wlm_b_t at[@{vector}]; };
struct __align__(@{4 * vector}) wlm_sums { wlm_acc_t at[@{vector}]; }; /* what becomes a piece of C */

WLM_FN int wlm_aligned(const struct wlm_args *args) {
  const unsigned long long places = (unsigned long long)args->b | (unsigned long long)args->c |
                                    (unsigned long long)((args->ldb | args->ldc) * (long long)sizeof(wlm_b_t));
  return (places & @{bytes - 1}) == 0;
}

WLM_FN struct wlm_piece wlm_load_piece(const wlm_b_t *b, int aligned) {
  struct wlm_piece piece;
#if !WLM_USES_B
  (void)b;
  (void)aligned;
% for v = 0, vector - 1 do
  piece.at[@{v}] = 0;
% end
#else
% if bytes >= 4 and vector > 1 then
  if (aligned) {
#ifdef __CUDA_ARCH__
    union { @{word} whole; struct wlm_piece piece; } read;
% if bytes == 16 and problem.sample ~= "none" then
    read.whole = wlm_read16_kept(b);
% else
    read.whole = __ldg((const @{word} *)b);
% end
    return read.piece;
#else
    return *(const struct wlm_piece *)b;
#endif
  }
% end
  (void)aligned;
% for v = 0, vector - 1 do
  piece.at[@{v}] = __ldg(b + @{v});
% end
#endif
  return piece;
}

WLM_FN struct wlm_sums wlm_begin_sums(void) {
  struct wlm_sums sums;
% for v = 0, vector - 1 do
  sums.at[@{v}] = wlm_init();
% end
  return sums;
}

WLM_FN struct wlm_sums wlm_fold(struct wlm_sums sums, wlm_acc_t a, struct wlm_piece piece) {
% for v = 0, vector - 1 do
  sums.at[@{v}] = wlm_reduce(sums.at[@{v}], wlm_message(a, piece.at[@{v}]));
% end
  return sums;
}

WLM_FN struct wlm_sums wlm_finish_sums(struct wlm_sums sums, long long degree) {
% for v = 0, vector - 1 do
  sums.at[@{v}] = wlm_finish(sums.at[@{v}], degree);
% end
  return sums;
}

WLM_FN void wlm_store_piece(const struct wlm_args *args, wlm_c_t *c, long long column, struct wlm_sums sums, int aligned) {
  struct wlm_piece piece;
  if (args->scaled) {
% for v = 0, vector - 1 do
    sums.at[@{v}] = wlm_scale(args, c + @{v}, sums.at[@{v}]);
% end
  }
% for v = 0, vector - 1 do
  piece.at[@{v}] = wlm_result(args, column + @{v}, sums.at[@{v}]);
% end
% if bytes >= 4 and vector > 1 then
  if (aligned) {
#ifdef __CUDA_ARCH__
    union { struct wlm_piece piece; unsigned int word[@{bytes // 4}]; } written;
    written.piece = piece;
    wlm_write@{bytes}(c, written.word);
#else
    *(struct wlm_piece *)c = piece;
#endif
    return;
  }
% end
  (void)aligned;
% for v = 0, vector - 1 do
  c[@{v}] = piece.at[@{v}];
% end
}

WLM_FN const wlm_b_t *wlm_b_row(const struct wlm_args *args, const wlm_b_t *b, wlm_colind_t column) {
% if problem.colind_type == "i32" then
  return (const wlm_b_t *)wlm_step(b, (unsigned int)column, (unsigned int)(args->ldb * (long long)sizeof(wlm_b_t)));
% else
  return b + column * args->ldb;
% end
}

/* Row k, counted from the row that c stands in, where k is small. */
WLM_FN wlm_c_t *wlm_c_row(const struct wlm_args *args, wlm_c_t *c, int k) {
  return (wlm_c_t *)wlm_step(c, (unsigned int)k, (unsigned int)(args->ldc * (long long)sizeof(wlm_c_t)));
}
