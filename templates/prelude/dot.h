% local width = lanes * vector
% local n, many = problem.head_width, problem.heads == "many"
% local chunks = any_width and 4 or (n + width - 1) // width
% local held = math.min(chunks, 64 // (vector * problem.dense_bytes))
% local one_span = held == chunks and not any_width
/* Dot products of rows of X with rows of B, one for each of a batch of @{batch} edges. A group of @{lanes} lanes works
 * on them together: a lane has every @{lanes}th piece of @{vector} columns of a row of X, loads the same pieces of the
 * batch's rows of B, all in flight together, and has a part of each product. The parts are added up crosswise: in each
 * step a lane gives away half of the products that it has and takes the other lane's parts of the half that it keeps,
 * so that @{batch} products cost @{batch - 1} exchanges and not @{batch} for each step, and neighbouring lanes end with
 * neighbouring edges to store. What a lane keeps of X are @{held} pieces; more columns than that are walked in spans,
 * each of which loads its X again.
 *
 * Where an edge has a value for each head, a head is an SDDMM of its own over its columns: the blocks of the slow axis
 * take one each. */
% include "prelude/piece.h"

struct wlm_x_part { struct wlm_piece at[@{held}]; };
struct wlm_dots { wlm_acc_t at[@{batch}]; };
struct wlm_columns { wlm_colind_t at[@{batch}]; };

WLM_FN int wlm_dots_aligned(const struct wlm_args *args) {
  const unsigned long long places = (unsigned long long)args->b | (unsigned long long)args->x |
                                    (unsigned long long)((args->ldb | args->ldc) * (long long)sizeof(wlm_b_t));
  return (places & @{vector * problem.dense_bytes - 1}) == 0;
}

/* The lane's pieces of a span that begins at x, of which `left` columns are there. */
WLM_FN struct wlm_x_part wlm_load_span(const wlm_c_t *x, int left, const int aligned) {
  struct wlm_x_part part;
  (void)left;
% for c = 0, held - 1 do
%   local whole = one_span and (c + 1) * width <= n
  @{whole and "" or "if (left > " .. c * width .. ")"} part.at[@{c}] = wlm_read_piece(x + @{c * width}, aligned);
% end
  return part;
}

/* What is kept of a row while edges of it come; x is at the lane's first column, here and below, and so is b. */
WLM_FN struct wlm_x_part wlm_keep_row(const wlm_c_t *x, const int aligned) {
% if one_span then
  return wlm_load_span(x, @{n} - (int)(threadIdx.x % @{lanes}u) * @{vector}, aligned);
% else
  const struct wlm_x_part nothing = {{{{0}}}};
  (void)x;
  (void)aligned;
  return nothing;
% end
}

WLM_FN struct wlm_dots wlm_begin_dots(void) {
  struct wlm_dots dots;
% for j = 0, batch - 1 do
  dots.at[@{j}] = wlm_init();
% end
  return dots;
}

WLM_FN wlm_acc_t wlm_add_piece(wlm_acc_t acc, struct wlm_piece x, struct wlm_piece b@{unit_parameter}) {
% for v = 0, vector - 1 do
  acc = wlm_reduce(acc, @{term(("wlm_piece_at(x, %d)"):format(v), ("wlm_piece_at(b, %d)"):format(v))});
% end
  return acc;
}

WLM_FN struct wlm_dots wlm_add_span(const struct wlm_args *args, struct wlm_dots dots, struct wlm_x_part x,
                                    const wlm_b_t *b, struct wlm_columns columns, int left, const int aligned) {
  (void)left;
% for j = 0, batch - 1 do
  const wlm_b_t *row@{j} = wlm_b_row(args, b, columns.at[@{j}]);
% end
% for c = 0, held - 1 do
%   local whole = one_span and (c + 1) * width <= n
  @{whole and "" or "if (left > " .. c * width .. ")"} {
% for j = 0, batch - 1 do
    const struct wlm_piece piece@{j} = wlm_load_piece(row@{j} + @{c * width}, aligned);
% end
% for j = 0, batch - 1 do
    dots.at[@{j}] = wlm_add_piece(dots.at[@{j}], x.at[@{c}], piece@{j}@{unit});
% end
  }
% end
  return dots;
}

/* A batch whose edges are of one row of A, of which `kept` is kept. */
WLM_FN struct wlm_dots wlm_add_row(const struct wlm_args *args, struct wlm_dots dots, struct wlm_x_part kept,
                                   const wlm_c_t *x, const wlm_b_t *b, struct wlm_columns columns, const int aligned) {
  int left = @{problem.head_text} - (int)(threadIdx.x % @{lanes}u) * @{vector};
% if one_span then
  (void)x;
  return wlm_add_span(args, dots, kept, b, columns, left, aligned);
% else
  (void)kept;
  for (; left > 0; left -= @{held * width}, x += @{held * width}, b += @{held * width})
    dots = wlm_add_span(args, dots, wlm_load_span(x, left, aligned), b, columns, left, aligned);
  return dots;
% end
}

/* The columns of a batch, of which lane l of each @{batch} has the l-th. Whole warps. */
WLM_FN struct wlm_columns wlm_share_columns(wlm_colind_t mine) {
  struct wlm_columns columns;
% for j = 0, batch - 1 do
  columns.at[@{j}] = __shfl_sync(0xffffffffu, mine, @{j}, @{lanes});
% end
  return columns;
}

/* Any row of B stands for an edge past the end. */
WLM_FN wlm_colind_t wlm_column_before(const struct wlm_args *args, long long p, long long end) {
  return p < end ? wlm_column(args, p) : 0;
}

% local place = many and "p * args->heads + wlm_slow_block()" or "p"
/* Edges from `begin` on, before `end`, that no row has (wlm_csr_from_coo gives what they are). */
WLM_FN void wlm_store_rowless(const struct wlm_args *args, long long begin, long long end) {
  for (long long p = begin + threadIdx.x % @{lanes}u; p < end; p += @{lanes})
    wlm_store(args, (wlm_c_t *)args->c + @{place}, 0, 0);
}

% local sampled = problem.sample ~= "none"
/* The first `count` of a batch's products; `p` is the edge that this lane stores, `degree` how many edges its row
 * has@{sampled and ", `weight` what it counts in the sampled product" or ""}. Whole warps. */
WLM_FN void wlm_store_dots(const struct wlm_args *args, struct wlm_dots dots, long long p, int count,
                           long long degree@{sampled and ", wlm_acc_t weight" or ""}) {
  const int lane = (int)(threadIdx.x % @{lanes}u);
% local half = batch // 2
% while half > 0 do
  {
    const int upper = lane & @{half};
% for j = 0, half - 1 do
    const wlm_acc_t away@{j} = upper ? dots.at[@{j}] : dots.at[@{j + half}];
    dots.at[@{j}] = wlm_combine(upper ? dots.at[@{j + half}] : dots.at[@{j}],
                              __shfl_xor_sync(0xffffffffu, away@{j}, @{half}, @{lanes}));
% end
  }
% half = half // 2
% end
% local mask = batch
% while mask < lanes do
  dots.at[0] = wlm_combine(dots.at[0], __shfl_xor_sync(0xffffffffu, dots.at[0], @{mask}, @{lanes}));
% mask = mask * 2
% end
% local weight = sampled and "weight * " or ""
  if (lane < @{batch} && lane < count)
    wlm_store(args, (wlm_c_t *)args->c + @{place}, 0,
              @{weight}wlm_edge(@{edge_unit}wlm_finish(dots.at[0], degree), @{load_a("args", "p", "(int)wlm_slow_block()")}));
}
