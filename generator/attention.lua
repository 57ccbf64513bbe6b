-- The operator block of attention, what operators.lua emits in the place of message, reduce and combine.
--
-- A score is one number for each edge and head, a row's weights are its softmax, and C is the sum of the rows of B with
-- these weights. The forward pass folds edges online (Milakov and Gimelshein 2018): the state has a score of the row,
-- its base, the sum of exp(score - base) and the sum of rows of B with these factors. When a score comes that is much
-- larger than the base, it becomes the base and both sums are scaled; a little larger does no harm, and scaling takes
-- as long as the edge itself. Two states combine the same way, so families may split a row.
--
-- The gradient (transpose) walks A^T and makes the weights again from the log of the sum that the forward pass stored
-- (FlashAttention, Dao et al. 2022). With weight w of edge (i, k) and x = dC:
--   dB[k]  = sum w x[i]
--   dz     = w (<x[i], B[k]> - delta[i]) leaky_relu'(z)      the gradient of the edge's term
--   dright = sum dz
--
-- A score is a function of terms of the row, the column and the edge (gat, edge), or a sum over the columns of a head
-- (gatv2, dot; the table `products`), which the lanes of the head add up. Its gradient by q is a sum over the edges of a
-- row, so another pass (rows) walks A and makes weights and dz again; nothing of size edges x heads lies between the two.
--
-- Emitted, besides types and loads:
--   struct wlm_edge   what a lane loads for an edge and head; wlm_load_edge(args, p, column, head)
--   wlm_weighted(weight, edge)   the weight after dropout
--   wlm_row_terms(args, row, head)          where the row's part of a score is; wlm_row_term(args, terms, k) that of the
--                                           k-th row from there
--   wlm_score(args, row_term, edge_term)    the score; wlm_slope its derivative by the terms
--   struct wlm_mix    the state of one column: the sum for C and what goes with it; wlm_begin_mix, wlm_combine, wlm_store
--   wlm_init, wlm_message, wlm_reduce   of the sum for C alone: a sum of weight * b

local attention = {}

local function is_gradient(problem) return problem.transpose end

-- A number of a call, of the accumulator's type.
local function number(problem, name) return ("args->%s.%s"):format(name, problem.acc_bytes == 8 and "wide" or "narrow") end

-- Scores that are sums over columns. `part` is what a column gives: m is of the row that a kernel walks, t of the
-- other side of the edge, and one of them is of q. `slope` is its derivative by m, without the factor of the sum, the
-- number `scale`. `att` is the factor of a column. Where the other factor is not of B, it is of k (`keys`). `of_row` is
-- what the pass over rows sums, with the gradient dz of an edge's score: that by m without att and scale, and that by att.
local products = {
  gatv2 = { part = "att * wlm_leaky(args, m + t)", slope = "att * wlm_incline(args, m + t)",
    att = "__ldg((const wlm_acc_t *)args->products.att + column)",
    of_row = { "dz * wlm_incline(args, m + t)", "dz * wlm_leaky(args, m + t)" } },
  dot = { part = "m * t", slope = "t", scale = "products.scale", att = "1", keys = true, of_row = { "dz * t", "0" } },
}

-- nil, or where a kernel finds the rows that a score is made of: `mine` of the row, `other` of the edge, each a pointer
-- and a stride in elements. `second` is set where `other` is not the row that the kernel multiplies by the weight, and
-- `pair` where a row has two results of n columns: struct wlm_mix has a second sum, `more`.
function attention.products(problem)
  local product, pass = products[problem.score], attention.pass(problem)
  if not product or pass == "none" then return nil end
  local q, k = { "args->products.q", "args->attention.term_stride" }, { "args->products.k", "args->attention.term_stride" }
  local gradient = is_gradient(problem)
  return setmetatable({
    second = gradient or product.keys, pair = pass == "rows" or gradient and product.keys,
    mine = gradient and (product.keys and k or { "args->x", "args->ldc" }) or q,
    other = gradient and q or product.keys and k or { "args->b", "args->ldb" },
    scale = product.scale and " * " .. number(problem, product.scale) or "",
  }, { __index = product })
end

-- What templates ask: "none", "forward", "gradient", or "rows" for what a gradient sums over rows of A. The last two
-- make the weights again.
function attention.pass(problem)
  if problem.operation == "attention_rows" then return "rows" end
  if problem.operation ~= "attention" then return "none" end
  return is_gradient(problem) and "gradient" or "forward"
end

-- Bytes of struct wlm_mix.
function attention.sum_bytes(problem) return problem.acc_bytes * (attention.pass(problem) == "forward" and 4 or 2) end

-- A term `index` rows behind the place `from`; its address is one instruction where the index has 32 bits.
local function term_at(from, index, narrow, stride)
  return ("__ldg((const wlm_acc_t *)((const char *)(%s) + " ..
    "(unsigned long long)%s%s * (unsigned int)(%s * (long long)sizeof(wlm_acc_t))))"):format(
    from, narrow and "(unsigned int)" or "", index, stride or "args->attention.term_stride")
end

-- The term of an index and a head.
local function term(name, index, narrow)
  local stride = (name == "lse" or name == "delta") and "args->heads"
  return term_at(("(const wlm_acc_t *)args->attention.%s + head"):format(name), index, narrow, stride)
end

-- The base of a row whose scores all are -inf so far. It is finite, so no exponent is inf - inf.
function attention.least(problem)
  return "#define WLM_LEAST " .. (problem.acc_bytes == 8 and "-1.7976931348623157e308" or "-3.402823466e38f")
end

-- wlm_exp, wlm_log and wlm_reciprocal.
function attention.exponentials(out, fn, wide)
  if wide then
    out[#out + 1] = "#ifndef __CUDA_ARCH__\ndouble exp(double);\ndouble log(double);\n#endif"
    fn(out, "wlm_acc_t", "wlm_exp", "wlm_acc_t x", "return exp(x);")
    fn(out, "wlm_acc_t", "wlm_log", "wlm_acc_t x", "return log(x);")
    fn(out, "wlm_acc_t", "wlm_reciprocal", "wlm_acc_t x", "return 1 / x;")
    return
  end
  out[#out + 1] = "#ifdef __CUDA_ARCH__"
  fn(out, "wlm_acc_t", "wlm_exp", "wlm_acc_t x",
    'float power; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504f)); return power;')
  fn(out, "wlm_acc_t", "wlm_reciprocal", "wlm_acc_t x",
    'float result; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x)); return result;')
  out[#out + 1] = "#else\nfloat expf(float);\nfloat logf(float);"
  fn(out, "wlm_acc_t", "wlm_exp", "wlm_acc_t x", "return expf(x);")
  fn(out, "wlm_acc_t", "wlm_reciprocal", "wlm_acc_t x", "return 1 / x;")
  out[#out + 1] = "#endif"
  fn(out, "wlm_acc_t", "wlm_log", "wlm_acc_t x", "return logf(x);")
end

-- What a product needs beside wlm_score, which adds the edge's term to the sum.
local function parts(out, fn, problem)
  local product = attention.products(problem)
  fn(out, "wlm_acc_t", "wlm_incline", "const struct wlm_args *args, wlm_acc_t z",
    ("return z > 0 ? 1 : %s;"):format(number(problem, "attention.slope")))
  fn(out, "wlm_acc_t", "wlm_leaky", "const struct wlm_args *args, wlm_acc_t z", "return wlm_incline(args, z) * z;")
  fn(out, "wlm_acc_t", "wlm_att", "const struct wlm_args *args, long long column",
    ("(void)args; (void)column; return %s;"):format(product.att))
  for _, of in ipairs { "part", "slope" } do
    fn(out, "wlm_acc_t", "wlm_column_" .. of, "const struct wlm_args *args, wlm_acc_t m, wlm_acc_t t, wlm_acc_t att",
      ("(void)args; (void)m; (void)att; return %s;"):format(product[of]))
  end
  for _, side in ipairs { "mine", "other" } do
    local at = product[side]
    fn(out, "const wlm_b_t *", "wlm_row_of_" .. side, "const struct wlm_args *args, long long index",
      ("return (const wlm_b_t *)%s + index * %s;"):format(at[1], at[2]))
  end
end

local function scores(out, fn, problem, load_value)
  local narrow = problem.colind_type == "i32"
  local product = attention.products(problem)
  local edge_only = problem.score == "edge"
  local row_name, column_name = "left", "right"
  if is_gradient(problem) then row_name, column_name = column_name, row_name end
  local value = problem.has_values and load_value or nil
  local edge_term = edge_only and value or product and (value or "0") or
    term(column_name, "column", narrow) .. (value and " + " .. value or "")
  local no_terms = edge_only or product
  fn(out, "const wlm_acc_t *", "wlm_row_terms", "const struct wlm_args *args, long long row, int head",
    no_terms and "(void)args; (void)row; (void)head; return 0;" or
      ("return (const wlm_acc_t *)args->attention.%s + row * args->attention.term_stride + head;"):format(row_name))
  fn(out, "wlm_acc_t", "wlm_row_term", "const struct wlm_args *args, const wlm_acc_t *terms, int k",
    no_terms and "(void)args; (void)terms; (void)k; return 0;" or ("return %s;"):format(term_at("terms", "k", true)))
  if product then
    parts(out, fn, problem)
    fn(out, "wlm_acc_t", "wlm_score", "const struct wlm_args *args, wlm_acc_t product, wlm_acc_t edge_term",
      ("(void)args; return product%s + edge_term;"):format(product.scale))
  elseif edge_only then
    fn(out, "wlm_acc_t", "wlm_score", "const struct wlm_args *args, wlm_acc_t row_term, wlm_acc_t edge_term",
      "(void)args; (void)row_term; return edge_term;")
    fn(out, "wlm_acc_t", "wlm_slope", "const struct wlm_args *args, wlm_acc_t row_term, wlm_acc_t edge_term",
      "(void)args; (void)row_term; (void)edge_term; return 1;")
  else
    fn(out, "wlm_acc_t", "wlm_score", "const struct wlm_args *args, wlm_acc_t row_term, wlm_acc_t edge_term",
      ("const wlm_acc_t z = row_term + edge_term; return z > 0 ? z : %s * z;"):format(number(problem, "attention.slope")))
    fn(out, "wlm_acc_t", "wlm_slope", "const struct wlm_args *args, wlm_acc_t row_term, wlm_acc_t edge_term",
      ("return row_term + edge_term > 0 ? 1 : %s;"):format(number(problem, "attention.slope")))
  end
  local loads = "struct wlm_edge edge; (void)column; (void)head; edge.term = " .. edge_term .. "; "
  local kept = problem.dropout and ", kept" or ""
  if problem.dropout then
    local place = is_gradient(problem) and "(long long)__ldg((const wlm_rowptr_t *)args->order + p)" or "p"
    loads = loads .. ("edge.kept = wlm_kept_weight(args, %s * args->heads + head); "):format(place)
    -- 24 bits, as a float tells them apart
    fn(out, "wlm_acc_t", "wlm_kept_weight", "const struct wlm_args *args, long long place",
      ("return (float)(unsigned int)(wlm_row_hash(args->seed, place) >> 40) * 5.9604644775390625e-8f < " ..
        "args->attention.dropped.narrow ? 0 : %s;"):format(number(problem, "attention.kept")))
  end
  if is_gradient(problem) then
    out[#out + 1] = "struct wlm_edge { wlm_acc_t term, lse, delta" .. kept .. "; };"
    loads = loads .. ("edge.lse = %s; edge.delta = %s; "):format(
      term("lse", "column", narrow), term("delta", "column", narrow))
  else
    out[#out + 1] = "struct wlm_edge { wlm_acc_t term" .. kept .. "; };"
  end
  fn(out, "struct wlm_edge", "wlm_load_edge", "const struct wlm_args *args, long long p, wlm_colind_t column, int head",
    "(void)p; " .. loads .. "return edge;")
  fn(out, "wlm_acc_t", "wlm_weighted", "wlm_acc_t weight, struct wlm_edge edge",
    problem.dropout and "return weight * edge.kept;" or "(void)edge; return weight;")
end

local function forward(out, fn, problem)
  out[#out + 1] = "struct wlm_mix { wlm_acc_t value, base, total, unused; };"
  out[#out + 1] = attention.least(problem)
  fn(out, "struct wlm_mix", "wlm_begin_mix", "void", "const struct wlm_mix mix = {0, WLM_LEAST, 0, 0}; return mix;")
  -- Factors stay below e^8, which leaves sums room up to 10^35.
  fn(out, "int", "wlm_outgrows", "wlm_acc_t score, wlm_acc_t base", "return score > base + 8;")
  fn(out, "wlm_acc_t", "wlm_larger", "wlm_acc_t x, wlm_acc_t y", "return y > x ? y : x;")
  fn(out, "struct wlm_mix", "wlm_combine", "struct wlm_mix acc, struct wlm_mix x",
    "const wlm_acc_t base = wlm_larger(acc.base, x.base); " ..
    "const wlm_acc_t of_acc = wlm_exp(acc.base - base), of_x = wlm_exp(x.base - base); " ..
    "acc.value = acc.value * of_acc + x.value * of_x; acc.total = acc.total * of_acc + x.total * of_x; " ..
    "acc.base = base; return acc;")
  fn(out, "wlm_acc_t", "wlm_share", "wlm_acc_t value, wlm_acc_t total", "return total == 0 ? 0 : value / total;")
  fn(out, "void", "wlm_store_head",
    "const struct wlm_args *args, long long row, int head, wlm_acc_t base, wlm_acc_t total",
    "if (args->attention.lse) ((wlm_acc_t *)args->attention.lse)[row * args->heads + head] = base + wlm_log(total);")
  return "if (column % args->head_width == 0) " ..
    "wlm_store_head(args, row, wlm_head_of(args, column), result.base, result.total)"
end

-- A state of two sums.
local function two_sums(out, fn, second)
  out[#out + 1] = ("struct wlm_mix { wlm_acc_t value, %s; };"):format(second)
  fn(out, "struct wlm_mix", "wlm_begin_mix", "void", "const struct wlm_mix mix = {0, 0}; return mix;")
  fn(out, "struct wlm_mix", "wlm_combine", "struct wlm_mix acc, struct wlm_mix x",
    ("acc.value += x.value; acc.%s += x.%s; return acc;"):format(second, second))
end

-- The weight of an edge from the logarithm that the forward pass stored: -inf for a row of which nothing counts.
local function weights(out, fn)
  fn(out, "wlm_acc_t", "wlm_weight", "wlm_acc_t score, wlm_acc_t lse",
    "return lse == -WLM_INF ? 0 : wlm_exp(score - lse);")
end

local function gradient(out, fn, problem)
  local pair = problem.products and problem.products.pair
  two_sums(out, fn, pair and "more" or "term")
  fn(out, "wlm_acc_t", "wlm_share", "wlm_acc_t value, wlm_acc_t second", "(void)second; return value;")
  weights(out, fn)
  fn(out, "void", "wlm_store_edge", "const struct wlm_args *args, long long p, int head, wlm_acc_t dterm",
    "if (args->attention.dvalues) " ..
    "((wlm_acc_t *)args->attention.dvalues)[(long long)__ldg((const wlm_rowptr_t *)args->order + p) * args->heads + head] = dterm;")
  if pair then return "wlm_store_side(args, row, column, result.more)" end
  fn(out, "void", "wlm_store_head", "const struct wlm_args *args, long long row, int head, wlm_acc_t term",
    "if (args->attention.dright) ((wlm_acc_t *)args->attention.dright)[row * args->heads + head] = term;")
  return "if (column % args->head_width == 0) wlm_store_head(args, row, wlm_head_of(args, column), result.term)"
end

-- The sums of a column that WLM_ATTENTION_ROWS makes.
local function rows(out, fn, problem)
  local product = problem.products
  two_sums(out, fn, "more")
  weights(out, fn)
  for _, name in ipairs { "lse", "delta" } do
    fn(out, "wlm_acc_t", "wlm_row_" .. name, "const struct wlm_args *args, long long row, int head",
      ("return __ldg((const wlm_acc_t *)args->attention.%s + row * args->heads + head);"):format(name))
  end
  fn(out, "struct wlm_mix", "wlm_slopes", "const struct wlm_args *args, wlm_acc_t dz, wlm_acc_t m, wlm_acc_t t",
    ("(void)args; (void)m; const struct wlm_mix mix = {%s, %s}; return mix;"):format(product.of_row[1], product.of_row[2]))
  fn(out, "wlm_acc_t", "wlm_close_column",
    "const struct wlm_args *args, long long row, long long column, struct wlm_mix mix",
    "if (args->products.datt) ((wlm_acc_t *)args->products.datt)[row * args->n + column] = mix.more; " ..
    ("return mix.value * wlm_att(args, column)%s;"):format(product.scale))
end

-- Fills struct wlm_sums of `vector` columns and `others` up to its alignment: compilers copy padding byte by byte.
local function unused(problem, vector, others)
  local count = -(vector + others) % (math.min(16, attention.sum_bytes(problem) * vector) // problem.acc_bytes)
  return count > 0 and (" wlm_acc_t unused[%d];"):format(count) or ""
end

-- What templates spell differently: only(text, otherwise) where rows and edges have operands, merged(text, otherwise)
-- where partial sums of a piece belong together, and so on, which for products are plain text.
--   of(row)           a last argument of what stores a row: the row's number
--   fold, fold_next   the call that takes in edge j of a batch, on its own or after make_room
--   make_room(batch)  for a batch of one row: its scores, and the sums made ready for the largest
--   load_edge(j, p), enter_row   declare what is loaded for an edge, and take over the terms of row k
--   places                       pointers and strides besides those of B and C that decide whether pieces are aligned
--   whole(v), combine            partial sums of a piece are merged as a whole, not column by column
function attention.spell(problem, parameters)
  local pass = attention.pass(problem)
  local served = pass ~= "none"
  local plain_fold = function(j, place) return ("wlm_fold(sums, a%d, piece%d%s)"):format(j, j, parameters.at(place)) end
  parameters.only = function(text, otherwise) return served and text or otherwise or "" end
  parameters.merged = parameters.only
  parameters.of = function(row) return served and ", " .. row or "" end
  parameters.whole = function(v) return served and "" or (".at[%d]"):format(v) end
  parameters.combine = served and "wlm_combine_sums" or "wlm_combine"
  parameters.folded = served and "struct wlm_mix" or "wlm_acc_t"
  parameters.beside, parameters.begin_beside, parameters.enter_row = "", "", ""
  parameters.fold, parameters.fold_next = plain_fold, plain_fold
  parameters.make_room = function() return "" end
  parameters.load_edge = function() return "" end
  parameters.places = ""
  if not served then return end
  local product = problem.products
  parameters.places = " (unsigned long long)args->x |"
  if product then
    parameters.places = parameters.places .. " (unsigned long long)args->products.q |" ..
      (product.keys and " (unsigned long long)args->products.k |" or "") ..
      " (unsigned long long)(args->attention.term_stride * (long long)sizeof(wlm_b_t)) |"
  end
  parameters.enter_row = "\n  terms = wlm_enter_row(args, terms, k, aligned);"
  parameters.load_edge = function(j, p)
    return ("\n    const struct wlm_edge a%d = wlm_load_edge(args, %s, column%d, terms.head);"):format(j, p, j) ..
      (product and product.second and ("\n    const struct wlm_piece other%d = wlm_load_other(args, &terms.side, column%d, aligned);"):format(j, j) or "")
  end
  local sides = function(j) return product and (", %s%d, column%d"):format(product.second and "other" or "piece", j, j) or "" end
  parameters.fold = function(j, place)
    return ("wlm_fold_edge(sums, a%d, piece%d, args, &terms, %s%s)"):format(j, j, place, sides(j))
  end
  if product and product.pair then
    local vector = parameters.vector or 1
    parameters.beside = (" wlm_acc_t more[%d];"):format(vector)
    parameters.begin_beside = ""
    for v = 0, vector - 1 do parameters.begin_beside = parameters.begin_beside .. (" sums.more[%d] = 0;"):format(v) end
    parameters.fold_next = parameters.fold
    return
  elseif pass == "gradient" then
    parameters.beside = " wlm_acc_t term;" .. unused(problem, parameters.vector or 1, 1)
    parameters.begin_beside = " sums.term = 0;"
    parameters.fold_next = parameters.fold
    return
  end
  parameters.beside = " wlm_acc_t base, total;" .. unused(problem, parameters.vector or 1, 2)
  parameters.begin_beside = " sums.base = WLM_LEAST; sums.total = 0;"
  parameters.fold_next = function(j) return ("wlm_add(sums, score%d, a%d, piece%d)"):format(j, j, j) end
  parameters.make_room = function(batch)
    local lines, largest = {}, "score0"
    for j = 0, batch - 1 do
      lines[#lines + 1] = ("\n    const wlm_acc_t score%d = wlm_score(args, %s, a%d.term);"):format(j,
        product and ("wlm_product(args, &terms.side%s)"):format(sides(j)) or "terms.row_term", j)
      if j > 0 then largest = ("wlm_larger(%s, score%d)"):format(largest, j) end
    end
    return table.concat(lines) .. ("\n    sums = wlm_raise(sums, %s);"):format(largest)
  end
end

-- Everything of the block behind types, loads of A and B, and conversions. `epilogue` emits wlm_scale and wlm_result.
function attention.block(out, fn, problem, load_value, epilogue)
  attention.exponentials(out, fn, problem.acc_bytes == 8)
  scores(out, fn, problem, load_value)
  local pass = attention.pass(problem)
  local store_rest = (pass == "rows" and rows or pass == "gradient" and gradient or forward)(out, fn, problem)
  fn(out, "wlm_acc_t", "wlm_init", "void", "return 0;")
  fn(out, "wlm_acc_t", "wlm_message", "wlm_acc_t a, wlm_acc_t b", "return a * b;")
  fn(out, "wlm_acc_t", "wlm_reduce", "wlm_acc_t acc, wlm_acc_t x", "return acc + x;")
  out[#out + 1] = "#define wlm_finish(acc, degree) ((void)(degree), (acc)) /* wlm_store and wlm_close_sums do it */"
  epilogue(out, problem)
  if pass == "rows" then
    fn(out, "void", "wlm_store",
      "const struct wlm_args *args, wlm_c_t *c, long long column, struct wlm_mix result, long long row",
      "*c = wlm_result(args, column, wlm_close_column(args, row, column, result));")
    return
  end
  local pair = problem.products and problem.products.pair
  if pair then
    fn(out, "void", "wlm_store_side", "const struct wlm_args *args, long long row, long long column, wlm_acc_t sum",
      ("if (args->products.dk) ((wlm_c_t *)args->products.dk)[row * args->n + column] = wlm_result(args, column, sum%s);"):format(
        problem.products.scale))
  end
  fn(out, "void", "wlm_store",
    "const struct wlm_args *args, wlm_c_t *c, long long column, struct wlm_mix result, long long row",
    ("const wlm_acc_t value = wlm_share(result.value, result.%s); "):format(
      pair and "more" or is_gradient(problem) and "term" or "total") ..
    "*c = wlm_result(args, column, args->scaled ? wlm_scale(args, c, value) : value); " .. store_rest .. ";")
end

return attention
