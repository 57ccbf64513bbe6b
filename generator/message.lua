-- The operator block of messages, what operators.lua emits in the place of message, reduce and combine, and what templates
-- spell differently for them. Everything follows from problem.walk, the table of operands and results that C read from
-- the text (core/problem/message.h).
--
-- Sides. A kernel walks the rows of op(A). Of an operand it needs a line for the walked row (`own`), for the column of an
-- edge (`other`), for the edge, or for the whole call (`all`). With transpose rows and columns of A change sides. The
-- first operand of n columns on the other side is `main`: families load its pieces as those of B.
--
-- Shares. Where A is sampled, a message with transpose, with results of edges or with sums walks all edges of op(A)
-- (walk.shares) and takes each as often as its share says. A reduction that divides or begins with its first edge counts
-- those it took (walk.counts).
--
-- Emitted, besides types and loads:
--   struct wlm_state   of one column: a number v0, v1, ... for each result of the row, with a score its base, total and
--                      largest score, a position at0, ... where positions are wanted, and the count; wlm_init,
--                      wlm_combine, wlm_finish, wlm_store
--   wlm_fold_state(state, x..., p)       folds the messages x of the results of the row of edge p; with a score its
--                                        wlm_softmax is the second argument
--   struct wlm_softmax                   of an edge with a score: its weight, what the sums so far are multiplied by, and
--                                        the base, total and largest score then; wlm_softmax_of(state, score).
--                                        attention.lua has the algorithm
--   wlm_value_R(operands)                the message of result R; of sum i, R is s0, s1, ...
--   wlm_at_R(args, row, k, p, place, j)  the same of edge p = (row, k) in column j, which loads what it needs; with sums
--                                        or a score, the head and the sums that it reads follow
--   wlm_line_NAME(args, index), wlm_out_R(args, index)   where a line of an operand or result is
--   wlm_edge_of(args, p)                 the position in A of an edge of op(A)
--   wlm_store_column(args, c, column, state, row)        on a host: wlm_store without the score
-- operators.lua emits wlm_closed(args, column, value) before, the epilogue of a result of rows, where there is one.

local attention = require "attention"

local message = {}

local reductions = {
  sum  = { init = "0", reduce = "%s + %s" },
  mean = { init = "0", reduce = "%s + %s", finish = "degree == 0 ? 0 : wlm_over(%s, (wlm_acc_t)degree)" },
  max  = { init = "-WLM_INF", beats = "x > acc || (x != x && acc == acc)", instruction = "max.NaN.f32",
           finish = "degree == 0 ? 0 : %s" },
  min  = { init = "WLM_INF", beats = "x < acc || (x != x && acc == acc)", instruction = "min.NaN.f32",
           finish = "degree == 0 ? 0 : %s" },
  prod = { init = "1", reduce = "%s * %s" },
  softmax = { init = "0", reduce = "%s * softmax.factor + softmax.weight * %s",
              combine = "%s * of_state + %s * of_other", finish = "state.total == 0 ? 0 : %s / state.total" },
}

local function side(problem, operand)
  if operand.place == "edge" or operand.place == "all" then return operand.place end
  return operand.place == (problem.transpose and "column" or "row") and "own" or "other"
end

-- The 4-byte words of an operand that a lane holds, for pieces of `vector` columns.
local function words(problem, operand, vector)
  if operand.source == "number" then return 0 end
  if operand.source == "kept" then return problem.acc_bytes // 4 + 1 end -- with a part of its hash
  if operand.width == "n" then return math.max(1, vector * problem.dense_bytes // 4) end
  if operand.width == "wins" then return vector * problem.place_bytes // 4 end
  return problem.acc_bytes // 4
end

-- Completes problem.walk for the side that the problem walks.
function message.prepare(problem)
  local walk = problem.walk
  if not walk then return end
  walk.main, walk.kept, walk.of_row, walk.score, walk.sums_edges, walk.state_bytes = nil, nil, {}, nil, #walk.sums > 0, 0
  walk.shares, walk.counts = problem.transpose or #walk.sums > 0, false
  for _, operand in ipairs(walk.operands) do
    operand.side = side(problem, operand)
    if operand.source == "kept" then walk.kept = operand end
    if not walk.main and operand.side == "other" and operand.width == "n" then walk.main = operand end
    operand.is_main = walk.main == operand
  end
  for i, sum in ipairs(walk.sums) do sum.at, sum.is_sum = "s" .. i - 1, true end
  for i, result in ipairs(walk.results) do
    result.at, result.reduction = i - 1, reductions[result.kind]
    result.places = result.reduction and result.reduction.beats and problem.arg ~= "none" or false
    if result.reduction then
      walk.of_row[#walk.of_row + 1] = result
      walk.state_bytes = walk.state_bytes + problem.acc_bytes
    end
    if result.kind == "edge_sum" then walk.sums_edges = true end
    if result.kind == "edge" or result.kind == "edge_sum" then walk.shares = true end
    if result.kind == "score" then
      walk.score = result
      walk.state_bytes = walk.state_bytes + 3 * problem.acc_bytes
    end
  end
  walk.shares = walk.shares and problem.sample ~= "none"
  for _, result in ipairs(walk.of_row) do
    if walk.shares and result.reduction.finish and result.kind ~= "softmax" then walk.counts = true end
  end
  walk.has_places, walk.places = false, 0
  for _, result in ipairs(walk.of_row) do
    if result.places then
      walk.has_places, walk.places = true, walk.places + 1
      walk.state_bytes = walk.state_bytes + problem.arg_bytes
    end
  end
  if walk.counts then walk.state_bytes = walk.state_bytes + 8 end
  local widest = math.max(problem.acc_bytes, problem.arg_bytes, walk.counts and 8 or 0)
  walk.state_bytes = math.max(problem.acc_bytes, (walk.state_bytes + widest - 1) // widest * widest)

  -- What is stored in a column for the value of a result of rows.
  function walk.stored(value, column)
    return (problem.bias or problem.activation) and ("wlm_closed(args, %s, %s)"):format(column, value) or value
  end

  function walk.values(result, n, one, won) return message.values(problem, result, n, one, won) end

  -- With sums or a score, a kernel has a head at hand, which wlm_at_R takes as an argument: `head`, if the walk has them.
  walk.by_heads = #walk.sums > 0 or walk.score ~= nil
  function walk.head(head) return walk.by_heads and ", " .. head or "" end

  -- The sums that the expression of a result or sum reads, as arguments after others; `form` writes one.
  function walk.given(result, form)
    local list = {}
    for _, at in ipairs(result.uses) do
      local operand = message.operand_at(walk, at)
      if operand.is_sum then list[#list + 1] = ", " .. form:format(operand.name) end
    end
    return table.concat(list)
  end

  -- Registers of a thread: the operands of the row, of the edges in flight with their columns and positions, and the sums.
  function walk.needs(p)
    local vector, row, edge = p.vector or 1, walk.shares and 24 or 0, walk.shares and 5 or 3
    for _, operand in ipairs(walk.operands) do
      local held = words(problem, operand, vector)
      if operand.side == "own" or operand.side == "all" then row = row + held else edge = edge + held end
    end
    return 48 + row + (p.batch or 1) * edge + 2 * vector * walk.state_bytes // 4 + (problem.acc_bytes == 8 and 24 or 0)
  end
  function walk.registers(p, others) return math.min(240, (walk.needs(p) + (others or 0) + 7) // 8 * 8) end
end

-- Whether an edge costs more than a few instructions: a function that is no minimum, maximum or sign.
local cheap = { fmax = true, fmin = true, fabs = true, relu = true, leaky_relu = true }
local function calls_functions(problem)
  for _, f in ipairs(problem.functions) do
    if not cheap[f.name or f.own] then return true end
  end
  return false
end

-- nil, or why a variant is no candidate.
function message.refusal(problem, p)
  local walk = problem.walk
  if not walk then return nil end
  if p.batch and p.batch > 4 and walk.needs(p) > 200 then return "holds more of its edges than there are registers" end
  if p.batch and p.batch > 4 and calls_functions(problem) then
    return "unrolls functions for many edges, which was measured to take twice as long"
  end
  return nil
end

-- Operand or sum `at`, counted from 0.
function message.operand_at(walk, at) return walk.operands[at + 1] or walk.sums[at + 1 - #walk.operands] end

-- An operand's value as an argument of wlm_value_R: `n(operand)` is that of a column, `one(operand)` one that all columns
-- of a head share, `won(operand)` the position of a winner.
function message.values(problem, result, n, one, won)
  local list = {}
  for _, at in ipairs(result.uses) do
    local operand = message.operand_at(problem.walk, at)
    if operand.is_sum then
      list[#list + 1] = "s_" .. operand.name
    elseif operand.source == "number" then
      list[#list + 1] = ("args->operands.%s[%d]"):format(problem.acc_bytes == 8 and "wide" or "narrow", at)
    elseif operand.width == "wins" then
      list[#list + 1] = ("(wlm_acc_t)(%s == place)"):format(won(operand))
    else
      list[#list + 1] = (operand.width == "n" and n or one)(operand)
    end
  end
  return table.concat(list, ", ")
end

local function parameters_of(problem, result)
  local list = {}
  for _, at in ipairs(result.uses) do list[#list + 1] = "wlm_acc_t v_" .. message.operand_at(problem.walk, at).name end
  return #list > 0 and table.concat(list, ", ") or "void"
end

-- Whether an operand is a number of the pairs that a score gives.
local function is_pair(operand) return operand.width == "base" or operand.width == "scale" end

local function lines(out, fn, problem)
  for _, operand in ipairs(problem.walk.operands) do
    if operand.source == "memory" then
      local type = operand.width == "wins" and "wlm_place_t" or is_pair(operand) and "wlm_acc_t" or "wlm_b_t"
      local narrow = operand.side == "other" and problem.colind_type == "i32"
      fn(out, ("const %s *"):format(type), "wlm_line_" .. operand.name, "const struct wlm_args *args, long long index",
        operand.side == "all" and ("(void)index; return (const %s *)args->operands.in[%d];"):format(type, operand.at) or
        narrow and ("return (const %s *)wlm_far(args->operands.in[%d], (unsigned int)index, (unsigned int)(args->operands.in_ld[%d] * (long long)sizeof(%s)));")
          :format(type, operand.at, operand.at, type) or
        ("return (const %s *)args->operands.in[%d] + index * args->operands.in_ld[%d];"):format(type, operand.at, operand.at))
    end
  end
  for _, result in ipairs(problem.walk.results) do
    local type = result.kind == "score" and "wlm_acc_t" or "wlm_c_t"
    fn(out, type .. " *", "wlm_out_" .. result.at, "const struct wlm_args *args, long long index",
      ("return (%s *)args->operands.out[%d] + index * args->operands.out_ld[%d];"):format(type, result.at, result.at))
    if result.places then
      fn(out, "wlm_place_t *", "wlm_places_" .. result.at, "const struct wlm_args *args, long long index",
        ("return (wlm_place_t *)args->operands.place[%d] + index * args->operands.out_ld[%d];"):format(result.at, result.at))
    end
  end
end

-- The expression that loads an operand for column j of a head.
local function load_of(problem, operand, load_value)
  if operand.source == "values" then return load_value end
  if operand.source == "degree" then return operand.side == "own" and "wlm_degree_of(args, row)" or "wlm_degree_of(args, k)" end
  if operand.source == "kept" then return "wlm_kept_weight(args, place * args->heads + head)" end
  local index = ({ own = "row", other = "k", edge = "place", all = "0" })[operand.side]
  local column = ({ n = "j", wins = "j", heads = "head", ["1"] = "0", base = "2 * head", scale = "2 * head + 1" })[operand.width]
  local element = ("wlm_line_%s(args, %s) + %s"):format(operand.name, index, column)
  local is_plain = operand.width == "wins" or is_pair(operand)
  return is_plain and ("__ldg(%s)"):format(element) or ("wlm_load_b(%s)"):format(element)
end

-- Folds of results that have positions. Edges come in order, so the first of equal ones stays; partial results may come
-- in any order. A row whose messages all equal init gives its first edge, whose position init receives. For a float the
-- edge has won if the bits of the value change, which takes two instructions besides that of the value.
local function winning(out, fn, problem, r, mine)
  if problem.walk.counts then -- edges that no sample takes are not folded
    return ("if (!state.count || wlm_beats_%d(x%d, %s)) { %s = x%d; state.at%d = (wlm_place_t)p; }"):format(r, r, mine, mine, r, r)
  end
  if problem.sample ~= "none" then -- edges may come in any order, and repeatedly
    return ("if (wlm_beats_%d(x%d, %s) || (p < state.at%d && !wlm_beats_%d(%s, x%d))) { %s = x%d; state.at%d = (wlm_place_t)p; }")
      :format(r, r, mine, r, r, mine, r, mine, r, r)
  end
  if problem.acc_bytes == 8 then
    return ("if (wlm_beats_%d(x%d, %s)) { %s = x%d; state.at%d = (wlm_place_t)p; }"):format(r, r, mine, mine, r, r)
  end
  return ("{ const wlm_acc_t value = wlm_extreme_%d(%s, x%d + 0); state.at%d = wlm_bits(value) == wlm_bits(%s) ? state.at%d : (wlm_place_t)p; %s = value; }")
    :format(r, mine, r, r, mine, r, mine)
end

-- What a score adds to the state of a column and to its functions. All columns of a head have the same base and total.
local function score(members, init, fold, combine, parameters)
  members[#members + 1] = "wlm_acc_t base, total, largest;"
  table.move({ "WLM_LEAST", "0", "WLM_LEAST" }, 1, 3, #init + 1, init)
  parameters[#parameters + 1] = "struct wlm_softmax softmax"
  fold[#fold + 1] = "state.base = softmax.base; state.total = softmax.total; state.largest = softmax.largest;"
  combine[#combine + 1] = "const wlm_acc_t base = other.base > state.base ? other.base : state.base, " ..
    "of_state = wlm_exp(state.base - base), of_other = wlm_exp(other.base - base); " ..
    "state.total = state.total * of_state + other.total * of_other; state.base = base; " ..
    "state.largest = other.largest > state.largest ? other.largest : state.largest;"
end

-- The head of a column. On a host the width of a head is known, so that loops over columns do not divide.
local function head_of(problem, column)
  return problem.on_host and ("(int)((unsigned int)%s / %du)"):format(column, problem.head_width) or
    ("wlm_head_of(args, %s)"):format(column)
end

-- Factors stay below e^8, which leaves sums room up to 10^35. Where each column has a score, a loop over columns has no
-- branch, so that host compilers vectorise it.
local function softmax(out, fn, problem, r)
  out[#out + 1] = "struct wlm_softmax { wlm_acc_t weight, factor, base, total, largest; };"
  local raise = "if (score > state.base + 8) { softmax.factor = wlm_exp(state.base - score); softmax.base = score; } "
  if problem.on_host then -- where exp takes long for the first edge, whose factor is 0, and all sums are 0 then
    raise = raise:gsub("softmax.factor = ", "if (state.total != 0) %0")
  end
  if problem.head_width == 1 then
    raise = "softmax.base = score > state.base + 8 ? score : state.base; softmax.factor = wlm_exp(state.base - softmax.base); "
  end
  fn(out, "struct wlm_softmax", "wlm_softmax_of", "struct wlm_state state, wlm_acc_t score",
    "struct wlm_softmax softmax = {0, 1, state.base, 0, score > state.largest ? score : state.largest}; " .. raise ..
    "softmax.weight = wlm_power(score, softmax.base); " ..
    "softmax.total = state.total * softmax.factor + softmax.weight; return softmax;")
  fn(out, "void", "wlm_store_score", "const struct wlm_args *args, long long row, int head, struct wlm_state state",
    ("if (args->operands.out[%d]) wlm_store_pair(wlm_out_%d(args, row) + 2 * head, state.base, state.total, state.largest);"):format(r, r))
end

local function state(out, fn, folds, problem)
  local walk, members, init, combine, finish, store = problem.walk, {}, {}, {}, {}, {}
  local fold, parameters, of_score, of_score_init = {}, { "struct wlm_state state" }, {}, {}
  if walk.score then score(of_score, of_score_init, fold, combine, parameters) end
  for _, result in ipairs(walk.of_row) do
    local r, reduction = result.at, result.reduction
    local mine, its = "state.v" .. r, "other.v" .. r
    members[#members + 1] = ("wlm_acc_t v%d;"):format(r)
    init[#init + 1] = reduction.init
    parameters[#parameters + 1] = ("wlm_acc_t x%d"):format(r)
    if reduction.beats then
      fn(out, "int", "wlm_beats_" .. r, "wlm_acc_t x, wlm_acc_t acc", ("return %s;"):format(reduction.beats))
      folds(out, "wlm_extreme_" .. r, reduction.beats .. " ? x : acc", nil, problem.acc_bytes == 4 and reduction.instruction)
    end
    if result.places then
      fold[#fold + 1] = winning(out, fn, problem, r, mine)
      local beats = ("wlm_beats_%d(%s, %s) || (other.at%d < state.at%d && !wlm_beats_%d(%s, %s))"):format(r, its, mine, r, r, r, mine, its)
      combine[#combine + 1] = ("if (%s) { %s = %s; state.at%d = other.at%d; }")
        :format(walk.counts and ("other.count && (!state.count || %s)"):format(beats) or beats, mine, its, r, r)
    elseif reduction.beats then
      fold[#fold + 1] = ("%s = wlm_extreme_%d(%s, x%d);"):format(mine, r, mine, r)
      combine[#combine + 1] = ("%s = wlm_extreme_%d(%s, %s);"):format(mine, r, mine, its)
    else
      fold[#fold + 1] = ("%s = %s;"):format(mine, reduction.reduce:format(mine, "x" .. r))
      combine[#combine + 1] = ("%s = %s;"):format(mine, (reduction.combine or reduction.reduce):format(mine, its))
    end
    if reduction.finish then finish[#finish + 1] = ("%s = %s;"):format(mine, reduction.finish:format(mine)) end
    store[#store + 1] = ("wlm_out_%d(args, row)[column] = wlm_narrow(%s);"):format(r, walk.stored(mine, "column"))
    if result.places then
      finish[#finish + 1] = ("if (degree == 0) state.at%d = -1;"):format(r)
      store[#store + 1] = ("wlm_places_%d(args, row)[column] = wlm_place_of(args, state.at%d);"):format(r, r)
    end
  end
  walk.members = {}
  for _, result in ipairs(walk.of_row) do
    walk.members[#walk.members + 1] = { type = "wlm_acc_t", name = "v" .. result.at }
    if result.places then walk.members[#walk.members + 1] = { type = "wlm_place_t", name = "at" .. result.at } end
  end
  if walk.counts then walk.members[#walk.members + 1] = { type = "long long", name = "count" } end
  table.move(of_score, 1, #of_score, #members + 1, members)
  table.move(of_score_init, 1, #of_score_init, #init + 1, init)
  for _, result in ipairs(walk.of_row) do
    if result.places then
      members[#members + 1], init[#init + 1] = ("wlm_place_t at%d;"):format(result.at), "(wlm_place_t)p"
    end
  end
  if walk.counts then
    members[#members + 1], init[#init + 1] = "long long count;", "0"
    fold[#fold + 1], combine[#combine + 1] = "state.count++;", "state.count += other.count;"
    table.insert(finish, 1, "degree = state.count;")
  end
  if #members == 0 then members[1], init[1] = "wlm_acc_t unused;", "0" end
  out[#out + 1] = ("struct wlm_state { %s };"):format(table.concat(members, " "))
  if walk.score then softmax(out, fn, problem, walk.score.at) end
  if walk.has_places then
    fn(out, "int", "wlm_bits", "wlm_acc_t value", "union { wlm_acc_t value; int bits; } word = {value}; return word.bits;")
    fn(out, "wlm_place_t", "wlm_place_of", "const struct wlm_args *args, wlm_place_t p",
      "return p < 0 ? p : (wlm_place_t)wlm_edge_of(args, p);")
  end
  fn(out, "struct wlm_state", "wlm_init", walk.has_places and "long long p" or "void", ("const struct wlm_state state = {%s}; return state;"):format(table.concat(init, ", ")))
  parameters[#parameters + 1] = "long long p"
  fn(out, "struct wlm_state", "wlm_fold_state", table.concat(parameters, ", "), "(void)p; " .. table.concat(fold, " ") .. " return state;")
  fn(out, "struct wlm_state", "wlm_combine", "struct wlm_state state, struct wlm_state other",
    "(void)other; " .. table.concat(combine, " ") .. " return state;")
  fn(out, "struct wlm_state", "wlm_finish", "struct wlm_state state, long long degree",
    "(void)degree; " .. table.concat(finish, " ") .. " return state;")
  local stored = "(void)args; (void)c; (void)column; (void)state; (void)row; "
  local of_column = "const struct wlm_args *args, wlm_c_t *c, long long column, struct wlm_state state, long long row"
  local values, of_score_stored = table.concat(store, " "), ""
  if walk.score then
    of_score_stored = ("if (column %% %s == 0) wlm_store_score(args, row, %s, state); "):format(
      problem.on_host and problem.head_width or "args->head_width", head_of(problem, "column"))
  end
  if problem.on_host then -- where loops over columns store a score once for each head
    fn(out, "void", "wlm_store_column", of_column, stored .. values)
    values = "wlm_store_column(args, c, column, state, row);"
  end
  fn(out, "void", "wlm_store", of_column, stored .. of_score_stored .. values)
end

-- `returns` emits a function whose body is an expression, and `folds` one that may be an instruction; `load_value` is the
-- call that loads a, and render(name, parameters) gives the text of a template.
function message.block(out, fn, returns, folds, problem, load_value, render)
  local walk = problem.walk
  out[#out + 1] = ("typedef %s wlm_place_t;"):format(problem.place_type == "i64" and "long long" or "int")
  fn(out, "long long", "wlm_edge_of", "const struct wlm_args *args, long long p", problem.transpose and
    "return (long long)__ldg((const wlm_rowptr_t *)args->order + p);" or "(void)args; return p;")
  fn(out, "wlm_acc_t", "wlm_degree_of", "const struct wlm_args *args, long long row",
    "const wlm_rowptr_t *begin = (const wlm_rowptr_t *)args->a_rowptr + row; return (wlm_acc_t)(__ldg(begin + 1) - __ldg(begin));")
  fn(out, "const void *", "wlm_far", "const void *base, unsigned int index, unsigned int bytes",
    "return (const char *)base + (unsigned long long)index * bytes;")
  lines(out, fn, problem)
  if walk.kept then
    fn(out, "wlm_acc_t", "wlm_kept_weight", "const struct wlm_args *args, long long at",
      ("return (long long)(wlm_row_hash(args->seed, at) >> 40) < args->operands.in_ld[%d] ? 0 : args->operands.%s[%d];"):format(
        walk.kept.at, problem.acc_bytes == 8 and "wide" or "narrow", walk.kept.at))
  end
  local load = function(operand) return load_of(problem, operand, load_value) end
  local function value(result, part)
    returns(out, "wlm_value_" .. result.at, parameters_of(problem, result), result.text, part)
    fn(out, "wlm_acc_t", "wlm_at_" .. result.at,
      "const struct wlm_args *args, long long row, wlm_colind_t k, long long p, long long place, long long j" ..
        walk.head("int head") .. walk.given(result, "wlm_acc_t s_%s"),
      ("%s(void)row; (void)k; (void)p; (void)place; (void)head; return wlm_value_%s(%s);")
        :format(walk.by_heads and "(void)args; (void)j; " or ("const int head = %s; "):format(head_of(problem, "j")), result.at, message.values(problem, result, load, load, load)))
  end
  for _, sum in ipairs(walk.sums) do value(sum, sum.name) end
  for _, result in ipairs(walk.results) do value(result, result.kind) end
  if walk.score then
    out[#out + 1] = render("prelude/exponentials.h", { problem = problem })
    out[#out + 1] = "#define WLM_LEAST " .. attention.least(problem)
  end
  state(out, fn, folds, problem)
end

-- What templates spell differently (variants.lua describes these names).
function message.spell(problem, parameters)
  local walk = problem.walk
  if not walk then return end
  parameters.at = function() return "" end
  parameters.from = function(place, otherwise) return walk.has_places and place or otherwise or "" end
  parameters.held = function(index) return "acc" .. index end
  parameters.folded = "struct wlm_state"
  local places = {}
  local function add(array, at, type)
    places[#places + 1] = (" (unsigned long long)args->operands.%s[%d] | (unsigned long long)(args->operands.%s_ld[%d] * (long long)sizeof(%s)) |")
      :format(array, at, array == "in" and "in" or "out", at, type)
  end
  for _, operand in ipairs(walk.operands) do
    if operand.width == "n" and not operand.is_main then add("in", operand.at, "wlm_b_t") end
    if operand.width == "wins" then add("in", operand.at, "wlm_place_t") end
  end
  for _, result in ipairs(walk.results) do
    if result.kind ~= "edge_sum" and result.kind ~= "score" then add("out", result.at, "wlm_c_t") end
    if result.places then add("place", result.at, "wlm_place_t") end
  end
  parameters.places = table.concat(places)
end

return message
