% local walk = problem.walk
% local dense = problem.head_width // vector -- pieces of a head
% local together = math.min(lanes, dense & -dense) -- lanes that add up a number of an edge; they lie side by side in a head
% local arg_bytes = math.max(problem.place_bytes, math.min(16, vector * problem.dense_bytes))
% local run = math.min(vector, arg_bytes // problem.place_bytes) -- positions moved at once
/* Messages over pieces: what generator/message.lua has for a column, for @{vector} columns of one head at once. The
 * numbers of an edge that its columns share are loaded by all lanes; they come from L1. */
struct wlm_wins { wlm_place_t at[@{vector}]; };
struct wlm_numbers { wlm_acc_t at[@{vector}]; };

WLM_FN struct wlm_wins wlm_read_wins(const wlm_place_t *from, int aligned) {
  struct wlm_wins wins;
% if run > 1 then
  if (aligned) {
    struct __align__(@{run * problem.place_bytes}) chunk { wlm_place_t at[@{run}]; };
% for first = 0, vector - 1, run do
    const struct chunk chunk@{first} = *(const struct chunk *)(from + @{first});
% for v = 0, run - 1 do
    wins.at[@{first + v}] = chunk@{first}.at[@{v}];
% end
% end
    return wins;
  }
% end
  (void)aligned;
% for v = 0, vector - 1 do
  wins.at[@{v}] = __ldg(from + @{v});
% end
  return wins;
}

/* A piece of an array that has a line for each edge: read once, so it must not drive the others out of the caches. */
WLM_FN struct wlm_piece wlm_read_piece_once(const wlm_b_t *from, int aligned) {
% local bytes = vector * problem.dense_bytes
% if bytes == 16 then
#ifdef __CUDA_ARCH__
  if (aligned) {
    union { uint4 whole; struct wlm_piece piece; } read;
    asm("{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0;"
        " ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }"
        : "=r"(read.whole.x), "=r"(read.whole.y), "=r"(read.whole.z), "=r"(read.whole.w) : "l"(from));
    return read.piece;
  }
#endif
% end
  return wlm_read_piece(from, aligned);
}

WLM_FN void wlm_put_numbers(wlm_c_t *to, struct wlm_numbers numbers, int aligned) {
% if bytes >= 4 and vector > 1 then
  if (aligned) {
    struct wlm_piece piece;
% if problem.dense_bytes == 2 then
% for v = 0, vector - 1, 2 do
    piece.at[@{v // 2}] = wlm_narrow(numbers.at[@{v}]) | (unsigned int)wlm_narrow(numbers.at[@{v + 1}]) << 16;
% end
% else
% for v = 0, vector - 1 do
    piece.at[@{v}] = wlm_narrow(numbers.at[@{v}]);
% end
% end
#ifdef __CUDA_ARCH__
    union { struct wlm_piece piece; unsigned int word[@{bytes // 4}]; } written;
    written.piece = piece;
    wlm_write@{bytes}(to, written.word);
#else
    *(struct wlm_piece *)to = piece;
#endif
    return;
  }
% end
  (void)aligned;
% for v = 0, vector - 1 do
  to[@{v}] = wlm_narrow(numbers.at[@{v}]);
% end
}

/* What a lane holds of an edge, besides the piece of B. */
struct wlm_edge {
  long long place;
% if walk.shares then
  struct wlm_share share;
% end
% for _, o in ipairs(walk.operands) do
% if (o.side == "other" or o.side == "edge") and not o.is_main then
  @{o.width == "n" and "struct wlm_piece" or o.width == "wins" and "struct wlm_wins" or "wlm_acc_t"} @{o.name};
% end
% end
};

/* What it holds of the walked row and of its columns. */
struct wlm_terms {
  int head, is_first, inside; /* is_first: the lane stores what there is once for a head */
  long long first_row, row, column;
% for _, o in ipairs(walk.operands) do
% if (o.side == "own" or o.side == "all") and o.source ~= "number" then
  @{o.width == "n" and "struct wlm_piece" or o.width == "wins" and "struct wlm_wins" or "wlm_acc_t"} @{o.name};
% end
% end
};

% local function load(o, head, place)
%   if o.source == "values" then return load_a("args", "p", head) end
%   if o.source == "degree" then return ("wlm_degree_of(args, %s)"):format(place) end
%   if o.source == "kept" then return ("wlm_kept_weight(args, %s * args->heads + %s)"):format(place, head) end
%   local line = ("wlm_line_%s(args, %s)"):format(o.name, place)
%   if o.width == "n" then return ("wlm_read_piece%s(%s + column, aligned)"):format(o.side == "edge" and "_once" or "", line) end
%   if o.width == "wins" then return ("wlm_read_wins(%s + column, aligned)"):format(line) end
%   if o.width == "base" or o.width == "scale" then return ("__ldg(%s + 2 * %s + %d)"):format(line, head, o.width == "scale" and 1 or 0) end
%   return ("wlm_load_number(%s + %s)"):format(line, o.width == "heads" and head or "0")
% end
WLM_FN wlm_acc_t wlm_load_number(const wlm_b_t *from) { return wlm_widen(__ldg(from)); }

WLM_FN struct wlm_edge wlm_load_edge(const struct wlm_args *args, long long p, wlm_colind_t k, const struct wlm_terms *terms,
                                     int aligned) {
  struct wlm_edge edge;
  const long long column = terms->column;
  (void)k;
  (void)column;
  (void)aligned;
  edge.place = wlm_edge_of(args, p);
% if walk.shares and problem.transpose then
  edge.share = wlm_share_in(args, k, edge.place);
% end
% for _, o in ipairs(walk.operands) do
% if (o.side == "other" or o.side == "edge") and not o.is_main then
  edge.@{o.name} = @{load(o, "terms->head", o.side == "edge" and "edge.place" or "k")};
% end
% end
  return edge;
}

/* The k-th row from the first. */
WLM_FN struct wlm_terms wlm_enter_row(const struct wlm_args *args, struct wlm_terms terms, int k, int aligned) {
  const long long row = terms.first_row + k, column = terms.column;
  terms.row = row;
  (void)args;
  (void)column;
  (void)aligned;
% for _, o in ipairs(walk.operands) do
% if o.side == "own" then
  terms.@{o.name} = @{load(o, "terms.head", "row")};
% elseif o.side == "all" and o.source ~= "number" then
  terms.@{o.name} = @{load(o, "terms.head", "0")};
% end
% end
  return terms;
}

/* Of a lane at a column; `inside` is 0 where it has none and must not store. */
WLM_FN struct wlm_terms wlm_terms_at(const struct wlm_args *args, long long first_row, long long column, int inside) {
  struct wlm_terms terms;
  (void)args;
  terms.head = (int)(column / @{problem.head_width});
  terms.is_first = inside && column % @{problem.head_width} == 0;
  terms.inside = inside;
  terms.first_row = terms.row = first_row;
  terms.column = column;
  return terms;
}

% local function taken(value) return walk.shares and ("wlm_taken(edge.share, %s)"):format(value) or value end
% local factor = walk.shares and problem.sample_norm ~= "none" and "edge.share.factor * " or ""
% local function value(result, v)
%   local of = function(o) return (o.side == "own" or o.side == "all") and "terms->" .. o.name or "edge." .. o.name end
%   return ("wlm_value_%s(%s)"):format(result.at, walk.values(result,
%     function(o) return ("wlm_piece_at(%s, %d)"):format(o.is_main and "piece" or of(o), v) end, of,
%     function(o) return ("%s.at[%d]"):format(of(o), v) end))
% end
% local sums = table.move(walk.sums, 1, #walk.sums, 1, {})
% for _, result in ipairs(walk.results) do if result.kind == "edge_sum" then sums[#sums + 1] = result end end
% for _, sum in ipairs(sums) do
/* The sum over the columns of a head, whose lanes all come here together. */
WLM_FN wlm_acc_t wlm_sum_@{sum.at}(const struct wlm_args *args, struct wlm_edge edge, struct wlm_piece piece,
                              const struct wlm_terms *terms, long long p@{walk.given(sum, "wlm_acc_t s_%s")}) {
  const long long place = edge.place;
  (void)args;
  (void)piece;
  (void)terms;
  (void)p;
  (void)place;
% if dense ~= together then
  const wlm_colind_t k = wlm_column(args, p);
% end
% local held = {}
% for v = 0, vector - 1 do held[v + 1] = value(sum, v) end
% local function term(v)
%   return ("wlm_at_%s(args, terms->row, k, p, place, j + %d%s%s)"):format(sum.at, v, walk.head("terms->head"), walk.given(sum, "s_%s"))
% end
% include("prelude/sum_columns.h", { pieces = dense, together = together, head = "(long long)terms->head", held = held, term = term })
  return product;
}

% end
/* Edge p, whose lanes all come here together. */
WLM_FN struct wlm_sums wlm_fold_edge(struct wlm_sums sums, struct wlm_edge edge, struct wlm_piece piece,
                                const struct wlm_args *args, const struct wlm_terms *terms, long long p) {
  const long long place = edge.place;
  (void)piece;
  (void)args;
  (void)terms;
  (void)p;
  (void)place;
% for _, sum in ipairs(walk.sums) do
  const wlm_acc_t s_@{sum.name} = wlm_sum_@{sum.at}(args, edge, piece, terms, p@{walk.given(sum, "s_%s")});
% end
% if walk.shares and not problem.transpose then
  edge.share = wlm_share_in(args, terms->row, place); /* edges are loaded before their row is entered */
% end
% if walk.shares then
  for (int times = edge.share.times; times > 0; times--) {
% end
% if walk.score then
  const struct wlm_softmax softmax = wlm_softmax_of(sums.at[0], @{value(walk.score, 0)});
% end
% for v = 0, vector - 1 do
%   local list = {}
%   for i, result in ipairs(walk.of_row) do list[i] = factor .. value(result, v) .. ", " end
%   if #list > 0 or walk.score then
  sums.at[@{v}] = wlm_fold_state(sums.at[@{v}], @{walk.score and "softmax, " or ""}@{table.concat(list)}p);
%   end
% end
% if walk.shares then
  }
% end
% for _, result in ipairs(walk.results) do
% if result.kind == "edge" then
  {
    struct wlm_numbers numbers;
% for v = 0, vector - 1 do
    numbers.at[@{v}] = @{taken(value(result, v))};
% end
    if (terms->inside) wlm_put_numbers(wlm_out_@{result.at}(args, place) + terms->column, numbers, wlm_aligned(args));
  }
% elseif result.kind == "edge_sum" then
  {
    const wlm_acc_t sum = wlm_sum_@{result.at}(args, edge, piece, terms, p@{walk.given(result, "s_%s")});
    if (terms->is_first) wlm_out_@{result.at}(args, place)[terms->head] = wlm_narrow(@{taken("sum")});
  }
% end
% end
  return sums;
}

WLM_FN void wlm_store_piece(const struct wlm_args *args, wlm_c_t *c, long long column, struct wlm_sums sums, int aligned,
                            long long row) {
  (void)args;
  (void)c;
  (void)column;
  (void)sums;
  (void)aligned;
  (void)row;
% if walk.score then
  if (column % @{problem.head_width} == 0) wlm_store_score(args, row, wlm_head_of(args, column), sums.at[0]);
% end
% for _, result in ipairs(walk.of_row) do
  struct wlm_numbers numbers@{result.at};
% for v = 0, vector - 1 do
  numbers@{result.at}.at[@{v}] = @{walk.stored(("sums.at[%d].v%d"):format(v, result.at), "column + " .. v)};
% end
  wlm_put_numbers(wlm_out_@{result.at}(args, row) + column, numbers@{result.at}, aligned);
% if result.places then
  wlm_place_t *places@{result.at} = wlm_places_@{result.at}(args, row) + column;
% for v = 0, vector - 1 do
  places@{result.at}[@{v}] = wlm_place_of(args, sums.at[@{v}].at@{result.at});
% end
% end
% end
}
