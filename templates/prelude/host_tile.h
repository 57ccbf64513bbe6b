/* The inner loop of the host families: the messages of consecutive non-zeros folded into `width` columns, which is a
 * constant wherever this is called. Accumulators lie in pieces of 16, and a last one that may be shorter; the compiler
 * unrolls the pieces and keeps them in vector registers, and the store is written the same way, since one scalar loop
 * over the accumulators would send them all through memory.
 *
 * B's rows are prefetched some non-zeros ahead, across the ends of rows: a row is often shorter than the time that
 * memory takes. A single column is not: its loads are independent, so the processor runs many of them ahead by itself. It
 * is folded into the lanes of 16 bytes, whose last step loads edges of the next rows and leaves them out: a loop for the
 * last edges of a row would end after a number of them that a processor cannot predict, which takes longer than a short
 * row. */
enum { WLM_PIECE = 16, WLM_AHEAD = 8 };
% local many = problem.heads == "many"
% local a = many and "a[j]" or "a"
% local shared = problem.sample ~= "none" and problem.transpose -- an edge counts as often as its row of A took it
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
% if single then
WLM_FN wlm_acc_t wlm_edge_message(const struct wlm_args *args, long long p) {
  return wlm_message(wlm_load_a(args, p), wlm_load_b((const wlm_b_t *)args->b + wlm_column(args, p) * args->ldb));
}

% end
% if row_lanes then
/* Whether edges may be folded in lanes: B has no gaps, and there are edges of A behind them, which lanes may load. */
WLM_FN int wlm_has_lanes(const struct wlm_args *args, long long begin, long long end) {
  return args->ldb == 1 && end - begin < 1 << 30 && end + @{row_lanes - 1} <= wlm_begin(args, args->rows);
}

WLM_FN wlm_acc_t wlm_fold_lanes(const struct wlm_args *args, long long begin, long long end) {
  wlm_acc_t part[@{row_lanes}] = {wlm_init(), wlm_init()@{row_lanes == 4 and ", wlm_init(), wlm_init()" or ""}};
  for (long long p = begin; p < end; p += @{row_lanes}) {
    const int left = (int)(end - p);
#pragma omp simd
    for (int j = 0; j < @{row_lanes}; j++) {
      const wlm_acc_t x = wlm_edge_message(args, p + j);
      part[j] = wlm_reduce(part[j], j < left ? x : wlm_init());
    }
  }
  return @{row_lanes == 4 and "wlm_combine(wlm_combine(part[0], part[2]), wlm_combine(part[1], part[3]))" or "wlm_combine(part[0], part[1])"};
}

/* Of one row. A loop in lanes stands in a function of its own, and with constants instead of arguments: otherwise compilers
 * keep in memory what it needs in registers, which takes half as long again. */
static __attribute__((noinline)) wlm_acc_t wlm_row_in_lanes(const struct wlm_args *args, long long begin, long long end) {
  struct wlm_args dense = *args;
  dense.ldb = 1;
  return wlm_fold_lanes(&dense, begin, end);
}

% end
/* Gives how many edges were folded: those kept, or how often they were taken together. */
WLM_FN long long wlm_fold(const struct wlm_args *args, long long begin, long long kept, long long degree,
                          struct wlm_sample_state state, long long column, int width, wlm_acc_t acc[][WLM_PIECE]@{at "wlm_place_t place[][WLM_PIECE]"}) {
% if single then
  (void)column;
% if row_lanes then
  if (wlm_has_lanes(args, begin, begin + kept)) {
    acc[0][0] = wlm_row_in_lanes(args, begin, begin + kept);
    return kept;
  }
% end
  wlm_acc_t value = wlm_init();
  for (long long k = 0; k < kept; k++)
    value = wlm_reduce(value, wlm_edge_message(args, begin + wlm_sample(k, degree, state)));
  acc[0][0] = value;
  return kept;
% else
  const wlm_b_t *restrict b = (const wlm_b_t *)args->b + column;
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
