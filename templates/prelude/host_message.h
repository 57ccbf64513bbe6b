/* Messages on the host, in the place of host_tile.h: edges of a row folded into `width` columns, each with its state.
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

WLM_FN long long wlm_fold(const struct wlm_args *args, long long begin, long long kept, long long degree,
                          struct wlm_sample_state state, long long first, int width, struct wlm_state acc[][WLM_PIECE], long long row) {
  struct wlm_state *const states = &acc[0][0];
  for (int j = 0; j < width; j++) states[j] = wlm_init(@{walk.has_places and "begin + wlm_sample(0, degree, state)" or ""});
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
%   local from, to = "0", "width"
%   if walk.by_heads and problem.head_width == 1 then
%     from, to = "begun", "begun + 1"
    for (int begun = 0; begun < width; begun++) { /* each column is a head */
    const int head = (int)first + begun;
    const long long head_begins = head;
%   elseif walk.by_heads then
%     from, to = "begun", "ended"
    for (int begun = 0, ended; begun < width; begun = ended) { /* the columns of a head that are in the tile */
    const int head = (int)((first + begun) / @{problem.head_width});
    const long long head_begins = head * @{problem.head_width}ll;
    ended = head_begins + @{problem.head_width} - first < width ? (int)(head_begins + @{problem.head_width} - first) : width;
%   end
% for _, sum in ipairs(walk.sums) do
    wlm_acc_t s_@{sum.name};
    {
% include("prelude/host_sum.h", { width = problem.head_width, term = function(j) return at(sum, "head_begins + " .. j) end })
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
    const struct wlm_softmax softmax = wlm_softmax_of(states[begun], @{at(walk.score, "head_begins")});
%   end
    for (int j = @{from}; j < @{to}; j++) states[j] = wlm_fold_state(states[j], @{table.concat(list)}p);
%   if walk.shares then
    }
%   end
% end
% for _, result in ipairs(walk.results) do
% if result.kind == "edge" then
    for (int j = @{from}; j < @{to}; j++)
      wlm_out_@{result.at}(args, place)[first + j] = wlm_narrow(@{taken(at(result, "first + j"))});
% elseif result.kind == "edge_sum" then
    for (int j = @{from}; j < @{to}; j++) { /* a head is of the tile that has its first column */
      if ((first + j) % @{problem.head_width}) continue;
      const long long begins = first + j;
% include("prelude/host_sum.h", { width = problem.head_width, term = function(j) return at(result, "begins + " .. j) end })
      wlm_out_@{result.at}(args, place)[begins / @{problem.head_width}] = wlm_narrow(@{taken("product")});
    }
% end
% end
% if walk.by_heads then
    }
% end
  }
  return kept;
}

WLM_FN void wlm_store_fold(const struct wlm_args *args, long long row, long long kept, long long degree, long long column,
                           int width, struct wlm_state acc[][WLM_PIECE]) {
  for (int j = 0; j < width; j++)
    wlm_store(args, 0, column + j, wlm_normalise(wlm_finish(acc[j / WLM_PIECE][j % WLM_PIECE], kept), kept, degree), row);
}
