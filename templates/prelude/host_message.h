/* Messages on the host, in the place of host_tile.h: edges of a row folded into `width` columns. The array of a tile holds
 * what loops over columns read side by side: each number of their states, and what a head has once (struct wlm_columns).
 * Every number is loaded where it is used; the compiler keeps what the columns share. */
enum { WLM_PIECE = 16 };

/* glibc has vector forms of these functions, in libmvec, for loops over columns. They do not set errno. Results differ
 * from the scalar forms' by a few units in the last place. The header has nothing but macros, and is the only one that a
 * host source includes. */
#if defined __x86_64__ && defined _OPENMP && __has_include(<features.h>)
#include <features.h>
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 35)
#define WLM_VECTOR_FORMS(name)                                                        \
  _Pragma("omp declare simd notinbranch") float __attribute__((const)) name##f(float); \
  _Pragma("omp declare simd notinbranch") double __attribute__((const)) name(double);
WLM_VECTOR_FORMS(exp)
WLM_VECTOR_FORMS(exp2)
WLM_VECTOR_FORMS(expm1)
WLM_VECTOR_FORMS(log)
WLM_VECTOR_FORMS(log2)
WLM_VECTOR_FORMS(log10)
WLM_VECTOR_FORMS(log1p)
WLM_VECTOR_FORMS(cbrt)
WLM_VECTOR_FORMS(sin)
WLM_VECTOR_FORMS(cos)
WLM_VECTOR_FORMS(tan)
WLM_VECTOR_FORMS(asin)
WLM_VECTOR_FORMS(acos)
WLM_VECTOR_FORMS(atan)
WLM_VECTOR_FORMS(sinh)
WLM_VECTOR_FORMS(cosh)
WLM_VECTOR_FORMS(tanh)
WLM_VECTOR_FORMS(erf)
WLM_VECTOR_FORMS(erfc)
#endif
#endif
#endif
% local walk = problem.walk
% local function taken(value) return walk.shares and ("wlm_taken(share, %s)"):format(value) or value end
% local factor = walk.shares and problem.sample_norm ~= "none" and "share.factor * " or ""

% local width = problem.head_width
struct wlm_columns {
% for _, member in ipairs(walk.members) do
  @{member.type} @{member.name}[@{tile}];
% end
  @{walk.score and ("wlm_acc_t base[%d], total[%d], largest[%d]; /* of the heads of the tile */"):format(tile, tile, tile) or #walk.members == 0 and "int none;" or ""}
};

/* Of column j of a tile, which is of its head h. */
WLM_FN struct wlm_state wlm_state_of(const struct wlm_columns *columns, int j, int h) {
  struct wlm_state state;
  (void)columns;
  (void)j;
  (void)h;
% for _, member in ipairs(walk.members) do
  state.@{member.name} = columns->@{member.name}[j];
% end
% if walk.score then
  state.base = columns->base[h];
  state.total = columns->total[h];
  state.largest = columns->largest[h];
% elseif #walk.members == 0 then
  state.unused = 0;
% end
  return state;
}

WLM_FN void wlm_keep(struct wlm_columns *columns, int j, struct wlm_state state) {
  (void)columns;
  (void)j;
  (void)state;
% for _, member in ipairs(walk.members) do
  columns->@{member.name}[j] = state.@{member.name};
% end
}

/* Of column first + j. */
WLM_FN struct wlm_state wlm_state_in(struct wlm_state acc[][WLM_PIECE], long long first, int j) {
  (void)first;
  return wlm_state_of((const struct wlm_columns *)acc, j, @{walk.score and ("(int)((first + j) / %d - first / %d)"):format(width, width) or "0"});
}

% -- The heads that are in the tile; the loop's body has the columns from `from` to `to` of a head, number h of the tile.
% -- Where each column is a head, a loop over heads is the one over columns. Loops over whole heads have a constant length.
% local from, to, h, each_head = "0", "width", "0", ""
% if walk.by_heads then
%   from, to, h = "begun", width > 1 and tile % width > 0 and "ended" or "begun + " .. width, width > 1 and "h" or "begun"
%   local head = ("const int head = (int)(first / %d) + %s; const long long head_begins = head * %dll;"):format(width, h, width)
%   if width == 1 then
%     each_head = "for (int begun = 0; begun < width; begun++) { " .. head
%   elseif tile % width == 0 then
%     each_head = ("for (int begun = 0, h = 0; begun < width; begun += %d, h++) { %s"):format(width, head)
%   else
%     each_head = ("for (int begun = 0, ended, h = 0; begun < width; begun = ended, h++) { %s ended = head_begins + %d - first < width ? (int)(head_begins + %d - first) : width;"):format(head, width, width)
%   end
% end
WLM_FN long long wlm_fold(const struct wlm_args *args, long long begin, long long kept, long long degree,
                          struct wlm_sample_state state, long long first, int width, struct wlm_state acc[][WLM_PIECE], long long row) {
  struct wlm_columns *const columns = (struct wlm_columns *)acc;
  for (int j = 0; j < width; j++) {
    const struct wlm_state begin_with = wlm_init(@{walk.has_places and "begin + wlm_sample(0, degree, state)" or ""});
    wlm_keep(columns, j, begin_with);
% if walk.score then
    columns->base[j] = begin_with.base;
    columns->total[j] = begin_with.total;
    columns->largest[j] = begin_with.largest;
% end
  }
  for (long long k_th = 0; k_th < kept; k_th++) {
    const long long p = begin + wlm_sample(k_th, degree, state);
    const wlm_colind_t k = wlm_column(args, p);
    const long long place = wlm_edge_of(args, p);
%   local at = function(value, column)
%     return ("wlm_at_%s(args, row, k, p, place, %s%s%s)"):format(value.at, column, walk.head("head"), walk.given(value, "s_%s"))
%   end
%   if walk.shares then
    const struct wlm_share share = wlm_share_in(args, @{problem.transpose and "k" or "row"}, place);
%   end
% if walk.by_heads and width == 1 and #walk.sums == 0 and not walk.shares then
#pragma omp simd
% end
% if walk.by_heads then
    @{each_head}
% end
% for _, sum in ipairs(walk.sums) do
    wlm_acc_t s_@{sum.name};
    {
% include("prelude/host_sum.h", { width = width, term = function(j) return at(sum, "head_begins + " .. j) end })
    s_@{sum.name} = product;
    }
% end
% if #walk.of_row > 0 or walk.score then
%   local list = { walk.score and "softmax, " or "" }
%   for i, result in ipairs(walk.of_row) do list[i + 1] = factor .. at(result, "first + j") .. ", " end
%   if walk.shares then
    for (int times = share.times; times > 0; times--) {
%   end
%   if walk.score then
    const struct wlm_softmax softmax = wlm_softmax_of(wlm_state_of(columns, begun, @{h}), @{at(walk.score, "head_begins")});
    columns->base[@{h}] = softmax.base;
    columns->total[@{h}] = softmax.total;
    columns->largest[@{h}] = softmax.largest;
%   end
%   if not walk.by_heads or width > 1 then
#pragma omp simd
%   end
    for (int j = @{from}; j < @{to}; j++)
      wlm_keep(columns, j, wlm_fold_state(wlm_state_of(columns, j, @{h}), @{table.concat(list)}p));
%   if walk.shares then
    }
%   end
% end
% for _, result in ipairs(walk.results) do
% if result.kind == "edge" then
    for (int j = @{from}; j < @{to}; j++)
      wlm_out_@{result.at}(args, place)[first + j] = wlm_narrow(@{taken(at(result, "first + j"))});
% elseif result.kind == "edge_sum" then
    /* a head is of the tile that has its first column */
    for (long long begins = @{walk.by_heads and "head_begins" or ("(first + %d) / %d * %d"):format(width - 1, width, width)}; begins >= first && begins < first + @{to}; begins += @{width}) {
% include("prelude/host_sum.h", { width = width, term = function(j) return at(result, "begins + " .. j) end })
      wlm_out_@{result.at}(args, place)[begins / @{width}] = wlm_narrow(@{taken("product")});
    }
% end
% end
% if walk.by_heads then
    }
% end
  }
  return kept;
}

WLM_FN void wlm_store_fold(const struct wlm_args *args, long long row, long long kept, long long degree, long long first,
                           int width, struct wlm_state acc[][WLM_PIECE]) {
  const struct wlm_columns *const columns = (const struct wlm_columns *)acc;
% if walk.score then
  @{each_head}
  if (head_begins >= first) wlm_store_score(args, row, head, wlm_state_of(columns, begun, @{h}));
% end
  for (int j = @{walk.score and from or "0"}; j < @{walk.score and to or "width"}; j++)
    wlm_store_column(args, 0, first + j, wlm_normalise(wlm_finish(wlm_state_of(columns, j, @{walk.score and h or "0"}), kept), kept, degree), row);
% if walk.score then
  }
% end
}
