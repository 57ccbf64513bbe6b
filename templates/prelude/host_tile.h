/* The inner loop of the host families: the messages of consecutive non-zeros folded into `width` columns, which is a
 * constant wherever this is called. Accumulators lie in pieces of 16, and a last one that may be shorter; the compiler
 * unrolls the pieces and keeps them in vector registers, and the store is written the same way, since one scalar loop
 * over the accumulators would send them all through memory.
 *
 * B's rows are prefetched some non-zeros ahead, across the ends of rows: a row is often shorter than the time that
 * memory takes. A single column is not: its loads are independent, so the processor runs many of them ahead by itself. It
 * is folded into one variable, which a compiler keeps in a register where it would not keep an array. */
enum { WLM_PIECE = 16, WLM_AHEAD = 8 };
% local many = problem.heads == "many"
% local a = many and "a[j]" or "a"
% local shared = problem.sample ~= "none" and problem.transpose -- an edge counts as often as its row of A took it
% local single = problem.n == 1 and not many and not shared and problem.arg == "none"
% local factor = shared and problem.sample_norm ~= "none" and "share.factor * " or ""
% if many then
%   local run = math.min(16, problem.head_width & -problem.head_width)

/* The values of an edge for `count` columns of a piece, of which each @{run} have one head. */
WLM_FN void wlm_load_piece_a(const struct wlm_args *args, long long p, long long column, int count, wlm_acc_t *a) {
  for (int j = 0; j < count; j += @{run}) {
    const wlm_acc_t value = wlm_load_head_a(args, p, (int)((unsigned int)(column + j) / @{problem.head_width}u));
    for (int k = 0; k < @{run}; k++) a[j + k] = value;
  }
}
% end

% if problem.arg ~= "none" then
WLM_FN void wlm_fold_winner(wlm_acc_t *acc, wlm_place_t *place, wlm_acc_t x, long long p) {
  const struct wlm_winner won = wlm_reduce((struct wlm_winner){*acc, *place}, x, p);
  *acc = won.value;
  *place = won.place;
}

% end
/* Gives how many edges were folded: those kept, or how often they were taken together. */
WLM_FN long long wlm_fold(const struct wlm_args *args, long long begin, long long kept, long long degree,
                          struct wlm_sample_state state, long long column, int width, wlm_acc_t acc[][WLM_PIECE]@{at "wlm_place_t place[][WLM_PIECE]"}) {
  const wlm_b_t *restrict b = (const wlm_b_t *)args->b + column;
% if single then
  wlm_acc_t value = wlm_init();
  for (long long k = 0; k < kept; k++) {
    const long long p = begin + wlm_sample(k, degree, state);
    value = wlm_reduce(value, wlm_message(wlm_load_a(args, p), wlm_load_b(b + wlm_column(args, p) * args->ldb)));
  }
  acc[0][0] = value;
  return kept;
% else
  const int pieces = width / WLM_PIECE, rest = width % WLM_PIECE;@{from(" const long long first = begin + " .. (shared and "degree;" or "wlm_sample(0, degree, state);"))}
  for (int t = 0; t <= (width - 1) / WLM_PIECE; t++)
    for (int j = 0; j < WLM_PIECE; j++) @{from "place[t][j] = (wlm_place_t)first, "}acc[t][j] = wlm_init(@{from "first"})@{value};
% if shared then
  long long folded = 0;
% end
  for (long long k = 0; k < kept; k++) {
    const long long p = begin + wlm_sample(k, degree, state);
% if shared then
    const struct wlm_share share = wlm_share(args, p);
    if (!share.times) continue;
    folded += share.times;
% end
% if not many then
    const wlm_acc_t a = wlm_load_a(args, p);
% end
    const wlm_b_t *restrict b_row = b + wlm_column(args, p) * args->ldb;
% if not shared and not single then
#if WLM_USES_B
    const long long ahead = begin + wlm_sample(k + WLM_AHEAD, degree, state);
    const wlm_b_t *b_ahead = b + wlm_column(args, ahead < args->nnz ? ahead : p) * args->ldb;
    for (int j = 0; j < width; j += 64 / (int)sizeof *b) __builtin_prefetch(b_ahead + j);
#endif
% end
% if shared then
    for (int times = 0; times < share.times; times++) {
% end
#pragma GCC unroll 16
% if many then
    for (int t = 0; t < pieces; t++) {
      wlm_acc_t a[WLM_PIECE];
      wlm_load_piece_a(args, p, column + t * WLM_PIECE, WLM_PIECE, a);
% else
    for (int t = 0; t < pieces; t++)
% end
#pragma omp simd
      for (int j = 0; j < WLM_PIECE; j++)
        @{from("wlm_fold_winner(&acc[t][j], &place[t][j], ", "acc[t][j] = wlm_reduce(acc[t][j], ")}@{factor}wlm_message(@{a}, wlm_load_b(b_row + t * WLM_PIECE + j))@{at "p"});
% if many then
    }
    wlm_acc_t a[WLM_PIECE];
    wlm_load_piece_a(args, p, column + pieces * WLM_PIECE, rest, a);
% end
#pragma omp simd
    for (int j = 0; j < rest; j++)
      @{from("wlm_fold_winner(&acc[pieces][j], &place[pieces][j], ", "acc[pieces][j] = wlm_reduce(acc[pieces][j], ")}@{factor}wlm_message(@{a}, wlm_load_b(b_row + pieces * WLM_PIECE + j))@{at "p"});
% if shared then
    }
% end
  }
  return @{shared and "folded" or "kept"};
% end
}

/* Finishes what wlm_fold gave and stores it to those columns of a row of C. */
WLM_FN void wlm_store_fold(const struct wlm_args *args, long long row, long long kept, long long degree,
                           long long column, int width, wlm_acc_t acc[][WLM_PIECE]@{at "wlm_place_t place[][WLM_PIECE]"}) {
  wlm_c_t *restrict c = (wlm_c_t *)args->c + row * args->ldc;
  const int pieces = width / WLM_PIECE, rest = width % WLM_PIECE;
#pragma GCC unroll 16
  for (int t = 0; t < pieces; t++, column += WLM_PIECE)
#pragma omp simd
    for (int j = 0; j < WLM_PIECE; j++)
      wlm_store(args, c + column + j, column + j, wlm_normalise(wlm_finish(@{held "[t][j]"}, kept), kept, degree));
#pragma omp simd
  for (int j = 0; j < rest; j++)
    wlm_store(args, c + column + j, column + j, wlm_normalise(wlm_finish(@{held "[pieces][j]"}, kept), kept, degree));
}
