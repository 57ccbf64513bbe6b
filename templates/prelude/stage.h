% local n, pieces = problem.n, problem.n // vector
% local width, size, long, exchange = problem.head_width, threads * batch, 64 * lanes, from("wlm_exchange", "__shfl_xor_sync")
/* Terms of neighbouring non-zeros in shared memory: a block's threads load them side by side, whatever rows they are of, and
 * lanes add up those of a row. */
% include "prelude/piece.h"

% include "prelude/fold_lanes.h"

struct wlm_stage { @{sum} at[@{n}][@{size}]; };

/* Whole block: puts the terms of the `count` non-zeros from `first` on into the stage. */
WLM_FN void wlm_fill_stage(const struct wlm_args *args, struct wlm_stage *stage, long long first, int count, const int aligned) {
% for k = 0, batch - 1 do
  const int place@{k} = @{k * threads} + threadIdx.x;
  const long long p@{k} = first + (place@{k} < count ? place@{k} : 0);
  const wlm_b_t *b@{k} = wlm_b_row(args, (const wlm_b_t *)args->b, wlm_column(args, p@{k}));
% for h = 0, n // width - 1 do
  const wlm_acc_t a@{k}_@{h} = @{load_a("args", "p" .. k, h)};
% end
% end
% for k = 0, batch - 1 do
% for c = 0, pieces - 1 do
  const struct wlm_piece piece@{k}_@{c} = wlm_load_piece(b@{k} + @{in_b(c * vector)}@{b_stepped ", args->steps.b"}, aligned);
% end
% end
% for k = 0, batch - 1 do
  if (place@{k} < count) {
% for v = 0, n - 1 do
    stage->at[@{v}][place@{k}] = wlm_reduce(wlm_init(@{from("p" .. k)}), wlm_message(a@{k}_@{v // width}, wlm_piece_at(piece@{k}_@{v // vector}, @{v % vector}))@{at("p" .. k)});
% end
  }
% end
}

/* What every step-th term before `end` adds to the sums. */
WLM_FN struct wlm_row_sums wlm_add_terms(const struct wlm_stage *stage, struct wlm_row_sums sums, int at, int end, const int step) {
#pragma unroll 4
  for (; at < end; at += step) {
% for v = 0, n - 1 do
    sums.at[@{v}] = wlm_combine(sums.at[@{v}], stage->at[@{v}][at]);
% end
  }
  return sums;
}

/* Whole warp: adds up each row with more than @{long} terms in the stage together, which its own lanes then leave out. */
WLM_FN struct wlm_row_sums wlm_add_long_rows(const struct wlm_stage *stage, struct wlm_row_sums sums, long long first, int *begin, int end) {
  const int lane = (int)(threadIdx.x % 32u);
  unsigned int rows = __ballot_sync(0xffffffffu, lane % @{lanes} == 0 && end - *begin > @{long});
  for (; rows; rows &= rows - 1) {
    const int owner = __ffs((int)rows) - 1;
    const int from = __shfl_sync(0xffffffffu, *begin, owner), to = __shfl_sync(0xffffffffu, end, owner);
    struct wlm_row_sums part;
    (void)first;
% for v = 0, n - 1 do
    part.at[@{v}] = wlm_init(@{from "first + from + lane"});
% end
    part = wlm_add_terms(stage, part, from + lane, to, 32);
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2) {
% for v = 0, n - 1 do
      part.at[@{v}] = wlm_combine(part.at[@{v}], @{exchange}(0xffffffffu, part.at[@{v}], bit));
% end
    }
    if (lane == owner) {
% for v = 0, n - 1 do
      sums.at[@{v}] = wlm_combine(sums.at[@{v}], part.at[@{v}]);
% end
    }
    if (lane / @{lanes} == owner / @{lanes}) *begin = end;
  }
  return sums;
}

/* What a lane has of its row, from begin to end. Whole block; `first` to `last` are the block's non-zeros. */
WLM_FN struct wlm_row_sums wlm_fold_staged(const struct wlm_args *args, struct wlm_stage *stage, long long first, long long last,
                                           long long begin, long long end, int aligned) {
  const int lane = (int)(threadIdx.x % @{lanes}u);
  struct wlm_row_sums sums;
% for v = 0, n - 1 do
  sums.at[@{v}] = wlm_init(@{from "begin + lane"});
% end
  for (; first < last; first += @{size}) {
    const int count = last - first < @{size} ? (int)(last - first) : @{size};
    if (aligned) wlm_fill_stage(args, stage, first, count, 1);
    else wlm_fill_stage(args, stage, first, count, 0);
    __syncthreads();
    int from = begin < first ? 0 : begin - first < count ? (int)(begin - first) : count;
    const int to = end < first ? 0 : end - first < count ? (int)(end - first) : count;
    sums = wlm_add_long_rows(stage, sums, first, &from, to);
    sums = wlm_add_terms(stage, sums, from + lane, to, @{lanes});
    if (first + @{size} < last) __syncthreads(); /* before the stage is filled again */
  }
  return sums;
}
