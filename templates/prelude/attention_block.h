% local pass, products = problem.attention, problem.products
% local gradient, pair = pass == "gradient", products and products.pair
% local has_terms = problem.score == "gat"
% local number = problem.acc_bytes == 8 and "wide" or "narrow" -- of a struct wlm_number
% local value = problem.has_values and load_a("args", "p", "head")
% local scale = problem.score == "dot" and " * args->products.scale." .. number or ""
% local narrowed = problem.colind_type == "i32" and "(unsigned int)" or ""
% -- The place `index` lines behind `from`; it is one instruction where the index has 32 bits.
% local function line(from, index, stride)
%   return ("(const wlm_acc_t *)((const char *)(%s) + (unsigned long long)%s * (unsigned int)(%s * (long long)sizeof(wlm_acc_t)))"):format(from, index, stride)
% end
% local function of_column(name, stride)
%   return "__ldg(" .. line(("(const wlm_acc_t *)args->attention.%s + head"):format(name), narrowed .. "column", stride) .. ")"
% end
% local beside = gradient and has_terms and value -- a value is added to the term of its column first, whichever side is walked
/* The operator block of attention (generator/attention.lua says what it computes): what there is for a column.
 *
 *   struct wlm_edge   what a lane loads for an edge and head; wlm_load_edge(args, p, column, head)
 *   wlm_weighted(weight, edge)   the weight after dropout
 *   wlm_row_terms(args, row, head)          where the row's part of a score is; wlm_row_term(args, terms, k) that of the
 *                                           k-th row from there
 *   wlm_score(args, row_term, edge)         the score; wlm_slope its derivative by the terms
 *   wlm_weight(score, softmax)              the weight, from the numbers of the row that the forward pass stored
 *   struct wlm_mix    the state of one column: the sum for C and what goes with it; wlm_combine, wlm_store
 *   wlm_init, wlm_message, wlm_reduce   of the sum for C alone: a sum of weight * b */
% include "prelude/exponentials.h"
WLM_FN const wlm_acc_t * wlm_row_terms(const struct wlm_args *args, long long row, int head) {
% if has_terms then
  return (const wlm_acc_t *)args->attention.@{gradient and "right" or "left"} + row * args->attention.term_stride + head;
% else
  (void)args; (void)row; (void)head;
  return 0;
% end
}
WLM_FN wlm_acc_t wlm_row_term(const struct wlm_args *args, const wlm_acc_t *terms, int k) {
% if has_terms then
  return __ldg(@{line("terms", "(unsigned int)k", "args->attention.term_stride")});
% else
  (void)args; (void)terms; (void)k;
  return 0;
% end
}
% if products then
% local v2 = problem.score == "gatv2"
/* A score that is a sum over columns. wlm_column_part is what a column gives: m is of the row that the kernel walks, t of
 * the other side of the edge, and one of them is of q. wlm_column_slope is its derivative by m, without `scale`. */
WLM_FN wlm_acc_t wlm_incline(const struct wlm_args *args, wlm_acc_t z) {
  const wlm_acc_t slope = args->attention.slope.@{number}; /* read for any z, so that loops over columns become vectors */
  return z > 0 ? 1 : slope;
}
WLM_FN wlm_acc_t wlm_leaky(const struct wlm_args *args, wlm_acc_t z) { return wlm_incline(args, z) * z; }
WLM_FN wlm_acc_t wlm_att(const struct wlm_args *args, long long column) {
  (void)args; (void)column;
  return @{v2 and "__ldg((const wlm_acc_t *)args->products.att + column)" or "1"};
}
WLM_FN wlm_acc_t wlm_column_part(const struct wlm_args *args, wlm_acc_t m, wlm_acc_t t, wlm_acc_t att) {
  (void)args; (void)m; (void)att;
  return @{v2 and "att * wlm_leaky(args, m + t)" or "m * t"};
}
WLM_FN wlm_acc_t wlm_column_slope(const struct wlm_args *args, wlm_acc_t m, wlm_acc_t t, wlm_acc_t att) {
  (void)args; (void)m; (void)att;
  return @{v2 and "att * wlm_incline(args, m + t)" or "t"};
}
% local stride = { b = "args->ldb", x = "args->ldc" }
% for _, side in ipairs { "mine", "other" } do
%   local of = products[side]
WLM_FN const wlm_b_t * wlm_row_of_@{side}(const struct wlm_args *args, long long index) {
  return (const wlm_b_t *)args->@{stride[of] and of or "products." .. of} + index * @{stride[of] or "args->attention.term_stride"};
}
% end
% end
% if problem.dropout then
WLM_FN wlm_acc_t wlm_kept_weight(const struct wlm_args *args, long long place) {
  return (float)(unsigned int)(wlm_row_hash(args->seed, place) >> 40) * 5.9604644775390625e-8f < /* 24 bits, as a float tells them apart */
         args->attention.dropped.narrow ? 0 : args->attention.kept.@{number};
}
% end
struct wlm_edge {
  wlm_acc_t term@{beside and ", value" or ""}@{gradient and ", delta" or ""}@{problem.dropout and ", kept" or ""};
% if gradient then
  struct wlm_softmax_pair softmax;
% end
};
% if problem.products then
WLM_FN wlm_acc_t wlm_score(const struct wlm_args *args, wlm_acc_t product, struct wlm_edge edge) {
  (void)args;
  return product@{scale} + edge.term;
}
% elseif has_terms then
WLM_FN wlm_acc_t wlm_sum_of_terms(wlm_acc_t row_term, struct wlm_edge edge) { return @{beside and "(row_term + edge.value)" or "row_term"} + edge.term; }
WLM_FN wlm_acc_t wlm_score(const struct wlm_args *args, wlm_acc_t row_term, struct wlm_edge edge) {
  const wlm_acc_t z = wlm_sum_of_terms(row_term, edge);
  return z > 0 ? z : args->attention.slope.@{number} * z;
}
WLM_FN wlm_acc_t wlm_slope(const struct wlm_args *args, wlm_acc_t row_term, struct wlm_edge edge) {
  return wlm_sum_of_terms(row_term, edge) > 0 ? 1 : args->attention.slope.@{number};
}
% else
WLM_FN wlm_acc_t wlm_score(const struct wlm_args *args, wlm_acc_t row_term, struct wlm_edge edge) {
  (void)args; (void)row_term;
  return edge.term;
}
WLM_FN wlm_acc_t wlm_slope(const struct wlm_args *args, wlm_acc_t row_term, struct wlm_edge edge) {
  (void)args; (void)row_term; (void)edge;
  return 1;
}
% end
% if pass ~= "forward" then
WLM_FN struct wlm_softmax_pair wlm_read_pair(const wlm_acc_t *from) {
#ifdef __CUDA_ARCH__
  union { @{problem.acc_bytes == 8 and "uint4" or "uint2"} whole; struct wlm_softmax_pair pair; } read;
  read.whole = __ldg((const @{problem.acc_bytes == 8 and "uint4" or "uint2"} *)from);
  return read.pair;
#else
  const struct wlm_softmax_pair pair = {from[0], from[1]};
  return pair;
#endif
}
WLM_FN wlm_acc_t wlm_weight(wlm_acc_t score, struct wlm_softmax_pair softmax) {
  return wlm_power(score, softmax.largest) * softmax.scale;
}
% end
WLM_FN struct wlm_edge wlm_load_edge(const struct wlm_args *args, long long p, wlm_colind_t column, int head) {
  (void)p;
  struct wlm_edge edge;
  (void)column; (void)head;
% if has_terms then
  edge.term = @{of_column(gradient and "left" or "right", "args->attention.term_stride")}@{value and not beside and " + " .. value or ""};
% if beside then
  edge.value = @{value};
% end
% else
  edge.term = @{value or "0"};
% end
% if problem.dropout then
  edge.kept = wlm_kept_weight(args, @{gradient and "(long long)__ldg((const wlm_rowptr_t *)args->order + p)" or "p"} * args->heads + head);
% end
% if gradient then
  edge.softmax = wlm_read_pair(@{line("(const wlm_acc_t *)args->attention.softmax + 2 * head", narrowed .. "column", "2 * args->heads")});
  edge.delta = @{of_column("delta", "args->heads")};
% end
  return edge;
}
WLM_FN wlm_acc_t wlm_weighted(wlm_acc_t weight, struct wlm_edge edge) {
% if problem.dropout then
  return weight * edge.kept;
% else
  (void)edge;
  return weight;
% end
}
% if pass == "forward" then
struct wlm_mix {
  wlm_acc_t value, base, total, largest;
};
#define WLM_LEAST @{least}
/* Factors stay below e^8, which leaves sums room up to 10^35. */
WLM_FN int wlm_outgrows(wlm_acc_t score, wlm_acc_t base) { return score > base + 8; }
WLM_FN wlm_acc_t wlm_larger(wlm_acc_t x, wlm_acc_t y) { return y > x ? y : x; }
WLM_FN struct wlm_mix wlm_combine(struct wlm_mix acc, struct wlm_mix x) {
  const wlm_acc_t base = wlm_larger(acc.base, x.base);
  const wlm_acc_t of_acc = wlm_exp(acc.base - base), of_x = wlm_exp(x.base - base);
  acc.value = acc.value * of_acc + x.value * of_x;
  acc.total = acc.total * of_acc + x.total * of_x;
  acc.base = base;
  acc.largest = wlm_larger(acc.largest, x.largest);
  return acc;
}
WLM_FN wlm_acc_t wlm_share(wlm_acc_t value, wlm_acc_t total) { return total == 0 ? 0 : value / total; }
WLM_FN void wlm_store_head(const struct wlm_args *args, long long row, int head, wlm_acc_t base, wlm_acc_t total,
                           wlm_acc_t largest) {
  if (args->attention.softmax)
    wlm_store_pair((wlm_acc_t *)args->attention.softmax + 2 * (row * args->heads + head), base, total, largest);
}
% else
%   local second = (pair or pass == "rows") and "more" or "term"
struct wlm_mix {
  wlm_acc_t value, @{second};
};
WLM_FN struct wlm_mix wlm_combine(struct wlm_mix acc, struct wlm_mix x) {
  acc.value += x.value;
  acc.@{second} += x.@{second};
  return acc;
}
% end
% if pass == "gradient" then
WLM_FN wlm_acc_t wlm_share(wlm_acc_t value, wlm_acc_t second) {
  (void)second;
  return value;
}
WLM_FN void wlm_store_edge(const struct wlm_args *args, long long p, int head, wlm_acc_t dterm) {
  if (args->attention.dvalues)
    ((wlm_acc_t *)args->attention.dvalues)[(long long)__ldg((const wlm_rowptr_t *)args->order + p) * args->heads + head] = dterm;
}
% if not pair then
WLM_FN void wlm_store_head(const struct wlm_args *args, long long row, int head, wlm_acc_t term) {
  if (args->attention.dright) ((wlm_acc_t *)args->attention.dright)[row * args->heads + head] = term;
}
% end
% elseif pass == "rows" then
WLM_FN struct wlm_softmax_pair wlm_row_softmax(const struct wlm_args *args, long long row, int head) {
  return wlm_read_pair((const wlm_acc_t *)args->attention.softmax + 2 * (row * args->heads + head));
}
WLM_FN wlm_acc_t wlm_row_delta(const struct wlm_args *args, long long row, int head) {
  return __ldg((const wlm_acc_t *)args->attention.delta + row * args->heads + head);
}
/* What an edge whose score has the gradient dz gives to the row's sums: that by m without att and scale, and that by att. */
WLM_FN struct wlm_mix wlm_slopes(const struct wlm_args *args, wlm_acc_t dz, wlm_acc_t m, wlm_acc_t t) {
  (void)args; (void)m;
% if problem.score == "gatv2" then
  const struct wlm_mix mix = {dz * wlm_incline(args, m + t), dz * wlm_leaky(args, m + t)};
% else
  const struct wlm_mix mix = {dz * t, 0};
% end
  return mix;
}
WLM_FN wlm_acc_t wlm_close_column(const struct wlm_args *args, long long row, long long column, struct wlm_mix mix) {
  if (args->products.datt) ((wlm_acc_t *)args->products.datt)[row * args->n + column] = mix.more;
  return mix.value * wlm_att(args, column)@{scale};
}
% end
WLM_FN wlm_acc_t wlm_init(void) { return 0; }
WLM_FN wlm_acc_t wlm_message(wlm_acc_t a, wlm_acc_t b) { return a * b; }
WLM_FN wlm_acc_t wlm_reduce(wlm_acc_t acc, wlm_acc_t x) { return acc + x; }
#define wlm_finish(acc, degree) ((void)(degree), (acc)) /* wlm_store and wlm_close_sums do it */
@{epilogue}
% if pair and gradient then
WLM_FN void wlm_store_side(const struct wlm_args *args, long long row, long long column, wlm_acc_t sum) {
  if (args->products.dk) ((wlm_c_t *)args->products.dk)[row * args->n + column] = wlm_result(args, column, sum@{scale});
}
% end
WLM_FN void wlm_store(const struct wlm_args *args, wlm_c_t *c, long long column, struct wlm_mix result, long long row) {
% if pass == "rows" then
  *c = wlm_result(args, column, wlm_close_column(args, row, column, result));
% else
  const wlm_acc_t value = wlm_share(result.value, result.@{pair and "more" or gradient and "term" or "total"});
  *c = wlm_result(args, column, args->scaled ? wlm_scale(args, c, value) : value);
% if pair then
  wlm_store_side(args, row, column, result.more);
% else
  if (column % args->head_width == 0)
    wlm_store_head(args, row, wlm_head_of(args, column), @{gradient and "result.term" or "result.base, result.total, result.largest"});
% end
% end
}
