/* The inner loop of the host families: the messages of consecutive non-zeros folded into `width` columns.
 * Accumulators lie in pieces of 16, which the compiler keeps in vector registers once it has unrolled the
 * pieces; called with constants for `pieces` and, but for the last columns, for `width`. */
enum { WLM_PIECE = 16 };

WLM_FN void wlm_fold(const struct wlm_args *args, long long begin, long long kept, long long degree,
                     struct wlm_sample_state state, long long column, int pieces, long long width,
                     wlm_acc_t acc[][WLM_PIECE]) {
  const wlm_b_t *restrict b = (const wlm_b_t *)args->b + column;
  for (int t = 0; t < pieces; t++)
    for (int j = 0; j < WLM_PIECE; j++) acc[t][j] = wlm_init();
  for (long long k = 0; k < kept; k++) {
    const long long p = begin + wlm_sample(k, degree, state);
    const wlm_acc_t a = wlm_load_a(args, p);
    const wlm_b_t *restrict b_row = b + wlm_column(args, p) * args->ldb;
    if (width == pieces * WLM_PIECE) {
#pragma GCC unroll 16
      for (int t = 0; t < pieces; t++)
#pragma omp simd
        for (int j = 0; j < WLM_PIECE; j++)
          acc[t][j] = wlm_reduce(acc[t][j], wlm_message(a, wlm_load_b(b_row + t * WLM_PIECE + j)));
    } else {
      for (long long j = 0; j < width; j++)
        acc[0][j] = wlm_reduce(acc[0][j], wlm_message(a, wlm_load_b(b_row + j)));
    }
  }
}
