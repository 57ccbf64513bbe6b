% local threads = passes[#passes].tile_threads
% local ends = math.min(4, (rows + threads) // threads) -- of rows, whose loads are in flight together
% local groups = threads // lanes
% local hold = batch > lanes and batch // lanes or 1
% local walk = problem.walk
% local one_loop = walk and not walk.score and not walk.has_places or lanes < 32 and batch > 4 or
%   lanes == 32 and not problem.has_operands and problem.arg == "none"
% local in_step = problem.dense_bytes == 4 and one_loop -- as was measured
% local many = problem.heads == "many" or problem.has_operands
% local function of_window(array, j) -- of non-zero j of a batch, from the lane that loaded it
%   if lanes == 1 then return ("window.%s[%d]"):format(array, j) end
%   return ("__shfl_sync(0xffffffffu, window.%s[%d], step + %d, %d)"):format(array, j // lanes, j % lanes, lanes)
% end
/* A tile: some consecutive non-zeros of A with their rows, which a block works on together. Row ends are staged in
 * shared memory, the non-zeros are dealt evenly to groups of @{lanes} lanes, and each group walks its share in batches of
 * @{batch} whose loads of B are in flight together, across row ends, while the columns and values of the next are on their
 * way. Shared memory is kept small because it is taken from L1, where popular rows of B are found again. A row that lies
 * inside a share is stored at once; what a group leaves open is combined through shared memory in the order of the
 * non-zeros, so that every row has one writer and the same bits every time.
 * Parameters: rows and nonzeros, the most that a tile has of either; heads_at_once, how many are on their way from
 * shared memory together where those of a row are added. */
% include "prelude/piece.h"

typedef @{nonzeros < 65535 and "unsigned short" or "int"} wlm_end_t;

struct __align__(16) wlm_tile {
  struct wlm_sums head[@{groups}][@{lanes}]; /* of rows that began before a share */
  wlm_end_t row_end[@{rows + 1}]; /* relative to the tile's first non-zero; count + 1 = after the tile */
  int begun_before; /* the first row began before the tile */
};

/* What a thread knows of the tile. */
struct wlm_part {
  int group, lane, count, with_open, share; /* non-zeros; rows, one in progress included; non-zeros of a group */
  int inside, aligned;
  long long first, column; /* the tile's first non-zero */
  wlm_c_t *c;              /* in the tile's first row, at the column */@{only "\n  long long row;           /* the tile's first one */"}
};

/* What a group leaves open at the end of its share. */
struct wlm_tail {
  int row; /* -1: nothing */
  struct wlm_sums sums;
};

/* Whole block; the caller meets afterwards. */
WLM_FN void wlm_stage_rows(const struct wlm_args *args, struct wlm_tile *tile, const struct wlm_part *part, long long first_row) {
#pragma unroll 1
  for (int k = threadIdx.x; k < part->with_open; k += @{ends * threads}) {
% for i = 0, ends - 1 do
    const int k@{i} = @{i == 0 and "k" or ("k + %d < part->with_open ? k + %d : part->with_open - 1"):format(i * threads, i * threads)};
    const long long end@{i} = wlm_begin(args, first_row + k@{i} + 1) - part->first;
% end
% for i = 0, ends - 1 do
    tile->row_end[k@{i}] = (wlm_end_t)(end@{i} <= part->count ? end@{i} : part->count + 1);
% end
  }
  if (threadIdx.x == 0) tile->begun_before = part->with_open && wlm_begin(args, first_row) < part->first;
}

WLM_FN int wlm_tile_share(int count) { return (int)((unsigned int)(count + @{groups * batch - 1}) / @{groups * batch}u) * @{batch}; }

/* Non-zeros that a group has at hand: lane l holds the l-th, and so on in turns of @{lanes}. Of values it holds those that
 * all lanes need, so none where an edge has one for each head. */
struct wlm_window {
  wlm_colind_t column[@{hold}];
  wlm_acc_t value[@{hold}];
};
/* Both need a tile that has non-zeros. */
WLM_FN void wlm_load_columns(const struct wlm_args *args, const struct wlm_part *part, int p, struct wlm_window *window) {
% for h = 0, hold - 1 do
  const int p@{h} = p + @{h * lanes} + part->lane;
  window->column[@{h}] = wlm_column(args, part->first + (p@{h} < part->count ? p@{h} : part->count - 1));
% end
}
/* For wlm_wait_for_turn. */
WLM_FN long long wlm_seen(const struct wlm_window *window) {
  long long seen = 0;
% for h = 0, hold - 1 do
  seen += window->column[@{h}];
% end
  return seen;
}
% if not many then
WLM_FN void wlm_load_values(const struct wlm_args *args, const struct wlm_part *part, int p, struct wlm_window *window) {
% for h = 0, hold - 1 do
  const int p@{h} = p + @{h * lanes} + part->lane;
  window->value[@{h}] = wlm_load_a(args, part->first + (p@{h} < part->count ? p@{h} : part->count - 1));
% end
}
% end

/* Row k of the tile has ended: it is a head where it began before the group's share. */
WLM_FN void wlm_close_row(const struct wlm_args *args, struct wlm_tile *tile, const struct wlm_part *part, int k, int row_begin,
                          int begin, int end, struct wlm_sums sums) {
  if (row_begin < begin)
    tile->head[part->group][part->lane] = sums;
  else if (part->inside)
    wlm_store_piece(args, wlm_c_row(args, part->c, k), part->column, wlm_finish_edges(sums, end - row_begin), part->aligned@{of "part->row + k"});
}

/* Whole block; the caller meets before and afterwards. `window` holds the columns of a group's share. All groups take the
 * same number of steps, so that shuffles meet. Of what depends on alignment only the loads of a batch stand here twice:
 * a kernel with two loops took twice as long to compile. */
WLM_FN struct wlm_tail wlm_walk(const struct wlm_args *args, struct wlm_tile *tile, const struct wlm_part *part,
                                struct wlm_window window) {
  struct wlm_tail tail = {-1, wlm_begin_sums(@{from "0"})};
  if (!part->count) return tail;
  const wlm_b_t *b = (const wlm_b_t *)args->b + @{in_b "(part->inside ? part->column : 0)"};
% if many and not problem.has_operands then
  const int head = wlm_head_of(args, part->inside ? part->column : 0);
% end
% if not many then
  wlm_load_values(args, part, part->group * part->share, &window);
% end
  const int begin = wlm_held(part->group * part->share < part->count ? part->group * part->share : part->count);
  const int end = wlm_held(begin + part->share < part->count ? begin + part->share : part->count);
  int k = 0; /* the row of non-zero `begin`: the first that ends after it */
  for (int high = part->with_open - 1; k < high;) {
    const int middle = (k + high) / 2;
    if (tile->row_end[middle] > begin) high = middle;
    else k = middle + 1;
  }
  int row_begin = k ? tile->row_end[k - 1] : tile->begun_before ? -1 : 0, next = tile->row_end[k];
  struct wlm_sums sums = wlm_begin_sums(@{from "part->first + begin"});
% if problem.has_operands then
  struct wlm_terms terms = wlm_terms_at(args, part->row, part->inside ? part->column : 0, part->inside);
  terms = wlm_enter_row(args, terms, k, part->aligned);
% end
  for (int window_begin = 0; window_begin < part->share; window_begin += @{hold * lanes}) {
    struct wlm_window ahead = window;
    if (window_begin + @{hold * lanes} < part->share) {
      wlm_load_columns(args, part, begin + window_begin + @{hold * lanes}, &ahead);
% if not many then
      wlm_load_values(args, part, begin + window_begin + @{hold * lanes}, &ahead);
% end
    }
% if hold * lanes > batch then
#pragma unroll 1
    for (int step = 0; step < @{hold * lanes} && window_begin + step < part->share; step += @{batch}) {
      const int p = begin + window_begin + step;
% else
    {
      const int @{lanes > 1 and "step = 0, " or ""}p = begin + window_begin;
% end
% for j = 0, batch - 1 do
      const wlm_colind_t column@{j} = @{of_window("column", j)};
% end
% for j = 0, batch - 1 do
% if many then
      const int at@{j} = p + @{j} < part->count ? p + @{j} : part->count - 1;
% end
      struct wlm_piece piece@{j};
%   include("prelude/hold_edge.h", { j = j })
% end
% for _, way in ipairs(ways "part->aligned") do
      @{way.begin}
% for j = 0, batch - 1 do
        piece@{j} = wlm_load_piece(wlm_b_row(args, b, column@{j})@{b_stepped ", args->steps.b"}, @{way.aligned});
% end
% for j = 0, batch - 1 do
%   include("prelude/load_edge.h", { j = j, place = "part->first + at" .. j, aligned = way.aligned })
% end
% end
      }
% for j = 0, batch - 1 do
% if many and not problem.has_operands then
      const wlm_acc_t a@{j} = wlm_load_head_a(args, part->first + at@{j}, head);
% elseif not many then
      const wlm_acc_t a@{j} = @{problem.uses_a and of_window("value", j) or "1"};
% end
% end
      if (next >= p + @{batch} && p + @{batch} <= end) { /* no row ends in the batch */
% include "prelude/make_room.h"
% for j = 0, batch - 1 do
        sums = @{fold_next(j, "part->first + p + " .. j)};
% end
% if in_step then
      } else if (p < end) { /* the groups of a warp close their rows in step, wherever in the batch these end */
        const int stop = end - p < @{batch} ? end - p : @{batch};
        for (int from = 0;;) {
          const int to = next - p < stop ? next - p : stop;
          const unsigned int taken = (1u << to) - (1u << from);
% for j = 0, batch - 1 do
          if (taken & @{1 << j}u) sums = @{fold(j, "part->first + p + " .. j)};
% end
          if (to >= stop) break;
          wlm_close_row(args, tile, part, k, row_begin, begin, next, sums);
          row_begin = next;
          do next = tile->row_end[++k];
          while (next == row_begin);@{only "\n  terms = wlm_enter_row(args, terms, k, part->aligned);"}
          sums = wlm_begin_sums(@{from("part->first + p + to")});
          from = to;
        }
      }
% else
      } else { /* edge by edge, which costs less where a batch is short or a piece no f32 */
% for j = 0, batch - 1 do
        if (p + @{j} < end) {
          if (p + @{j} == next) { /* the row before ended here */
            wlm_close_row(args, tile, part, k, row_begin, begin, next, sums);
            row_begin = next;
            do next = tile->row_end[++k];
            while (next == row_begin);@{only "\n  terms = wlm_enter_row(args, terms, k, part->aligned);"}
            sums = wlm_begin_sums(@{from("part->first + p + " .. j)});
          }
          sums = @{fold(j, "part->first + p + " .. j)};
        }
% end
      }
% end
    }
    window = ahead;
  }
  tail.sums = sums;
  if (begin >= end) return tail;
  if (row_begin < begin)
    tile->head[part->group][part->lane] = sums;
  else
    tail.row = k; /* also where it ends with the share */
  return tail;
}

% local taken = { [1] = "0x00000001u", [2] = "0x00010001u", [4] = "0x01010101u", [8] = "0x11111111u", [16] = "0x55555555u", [32] = "0xffffffffu" }
/* Stores those of the tile's first `rows` rows that have no non-zeros: a warp looks at 32 rows at once and shares what it
 * finds among its groups. */
WLM_FN void wlm_store_empty_rows(const struct wlm_args *args, const struct wlm_tile *tile, const struct wlm_part *part, int rows) {
#pragma unroll 1
  for (int base = threadIdx.x / 32u * 32u; base < rows; base += @{threads}) {
    const int k = base + (int)(threadIdx.x % 32u);
    const int empty = k < rows && tile->row_end[k] == (k ? tile->row_end[k - 1] : 0) && !(k == 0 && tile->begun_before);
    unsigned int found = __ballot_sync(0xffffffffu, empty);
    found &= @{taken[lanes]} << threadIdx.x % 32u / @{lanes}u;
    for (; found && part->inside; found &= found - 1)
      wlm_store_piece(args, wlm_c_row(args, part->c, base + __ffs((int)found) - 1), part->column,
                      wlm_finish_sums(wlm_begin_sums(@{from "0"}), 0), part->aligned@{of "part->row + base + __ffs((int)found) - 1"});
  }
}

/* Adds the heads of the groups after this one that lie before non-zero `stop`: a long row has one in every group. */
WLM_FN struct wlm_sums wlm_add_heads(const struct wlm_tile *tile, const struct wlm_part *part, struct wlm_sums sums, int stop) {
% if heads_at_once > 1 then
#pragma unroll 1
% end
  for (int next = part->group + 1; next * part->share < stop; next += @{heads_at_once}) {
    const struct wlm_sums head0 = tile->head[next][part->lane];
% for j = 1, heads_at_once - 1 do
    const struct wlm_sums head@{j} = tile->head[next + @{j} < @{groups} ? next + @{j} : @{groups - 1}][part->lane];
% end
% for j = 0, heads_at_once - 1 do
% for v = 0, merged(0, vector - 1) do
    if ((next + @{j}) * part->share < stop) sums@{whole(v)} = @{combine}(sums@{whole(v)}, head@{j}@{whole(v)});
% end
% end
  }
  return sums;
}

/* Group 0 puts what there is of a row that began before the tile in *heads, unless that is NULL. The row of each group's tail
 * is stored where it ends in the tile; otherwise what there is of it goes to *tails. */
WLM_FN void wlm_close_tile(const struct wlm_args *args, const struct wlm_tile *tile, const struct wlm_part *part,
                           struct wlm_tail tail, struct wlm_sums *heads, struct wlm_sums *tails) {
  const int begun = heads && part->group == 0 && tile->begun_before && part->count > 0 && tile->row_end[0] > 0;
#pragma unroll 1
  for (int own = !begun; own < 1 + (tail.row >= 0); own++) {
    const int row = own ? tail.row : 0, end = tile->row_end[row];
    const struct wlm_sums sums =
        wlm_add_heads(tile, part, own ? tail.sums : tile->head[0][part->lane], end < part->count ? end : part->count);
    if (!part->inside) continue;
    if (own && end <= part->count)
      wlm_store_piece(args, wlm_c_row(args, part->c, row), part->column,
                      wlm_finish_edges(sums, end - (row ? tile->row_end[row - 1] : 0)), part->aligned@{of "part->row + row"});
    else
      *(own ? tails : heads) = sums;
  }
}
