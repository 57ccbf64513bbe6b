-- The operator block: the types and functions by which every template accesses the problem. Templates never name an
-- operator or a type; a new one is a row in these tables.
--
-- Emitted: wlm_rowptr_t, wlm_colind_t, wlm_val_t, wlm_b_t, wlm_c_t, wlm_acc_t;
--   wlm_init()               identity of the reduction; of a user-defined operator its init
--   wlm_message(a, b)        one edge's message
--   wlm_reduce(acc, x)       folds one message
--   wlm_combine(acc, acc)    merges two partial results, the earlier one first; not there where the operator has none
--   wlm_finish(acc, degree)  once a row, after the last partial; degree = edges used
--   wlm_scale(args, c, result)       alpha * result + beta * *c; beta = 0 never reads *c; only where args->scaled
--   wlm_result(args, column, result) the rest of the epilogue: activation(result + bias[column])
--   wlm_store(args, c, column, result)  both, into *c, once for each element, after the last partial
--   wlm_load_a(args, p), wlm_load_b(pointer), wlm_begin(args, row), wlm_column(args, p)
--   wlm_head_of(args, column), wlm_load_head_a(args, p, head)  in place of wlm_load_a where an edge has a value for each
--                            head; templates write @{load_a("args", "p", "head")}, which is the one or the other
--   wlm_widen(x), wlm_narrow(acc)    an element of B or C as an accumulator, and the reverse, which rounds
--   struct wlm_winner        with positions (problem.arg), what takes the place of an accumulator in init, reduce, combine,
--                            finish, normalise and store: the message that wins so far and its position. Then init takes
--                            the position of the first edge that is folded, and reduce that of the edge
--   wlm_edge(acc, a)         of an SDDMM, once an edge; its wlm_message(a, b) is what dC is multiplied by, or of rdiv dC / b
--   wlm_unit(args)           of an SDDMM that divides: 1, or 0 where alpha is 0
--   WLM_USES_A, WLM_USES_B   0 where the message ignores that operand (then it is never read)
--   wlm_kept(degree), wlm_sample_begin(args, row, degree), wlm_sample(k, degree, state), wlm_normalise(acc, kept, degree)
--                            which edges a sampled problem uses; every edge in order for any other, and where a
--                            transposed one walks A^T, whose edges the rows of A sample
--   wlm_sample_row(args, row, degree), wlm_times(sample, position), wlm_edge_taken(sample, k), wlm_edges_taken(sample)
--                            of a sampled sddmm or transpose: the sample of a row of A, how often it takes the edge at a
--                            position of the row, and the edges that it takes at all
--   wlm_share(args, p)       of a sampled transpose: how often the sample takes edge p of A^T, and the norm's factor
--   wlm_share_in(args, row, place), wlm_taken(share, value)
--                            of a sampled message that walks all edges: the same of an edge in a row of A, and a result of
--                            the edge as often as it is taken, 0 where it is not
-- Attention has a block of its own (prelude/attention_block.h).

local attention = require "attention"
local message_block = require "message"

local operators = {}

-- storage: the type in memory; accumulator: the type of arithmetic in kernels; widen, narrow: conversions between the
-- two
local types = {
  f32  = { storage = "float", accumulator = "float", widen = "%s", narrow = "%s" },
  f16  = { storage = "unsigned short", accumulator = "float", widen = "wlm_f16_to_f32(%s)", narrow = "wlm_f32_to_f16(%s)", half = true },
  bf16 = { storage = "unsigned short", accumulator = "float", widen = "wlm_bf16_to_f32(%s)", narrow = "wlm_f32_to_bf16(%s)", half = true },
  f64  = { storage = "double", accumulator = "double", widen = "%s", narrow = "%s" },
}
local indices = { i32 = "int", i64 = "long long" }

local messages = {
  mul    = { "a * b", light = true },
  copy_b = { "b", ignores_a = true, light = true },
  copy_a = { "a", ignores_b = true, light = true },
  add    = { "a + b", light = true },
  sub    = { "b - a", light = true },
  rsub   = { "a - b", light = true },
  div    = { "b / a" },
  rdiv   = { "a / b" },
}

-- The derivatives of these messages by a and by b. For an SDDMM that by a also in two factors: an element of dC is
-- multiplied by `term`, or stands for a in it (operators.sddmm), and is summed over the columns; `edge` is applied to the
-- sum once for each edge. It divides by a twice, and dC by b: a * a and 1 / b may be out of range where the quotient is not.
-- Kernels in which each edge has a single term use the whole derivatives.
local derivatives = {
  mul    = { by_a = "b", by_b = "a", term = "b" },
  copy_b = { by_a = "0", by_b = "1", term = "0", edge = "0" },
  copy_a = { by_a = "1", by_b = "0", term = "1" },
  add    = { by_a = "1", by_b = "1", term = "1" },
  sub    = { by_a = "-1", by_b = "1", term = "1", edge = "-acc" },
  rsub   = { by_a = "1", by_b = "-1", term = "1" },
  div    = { by_a = "-b / a / a", by_b = "1 / a", term = "b", edge = "-acc / a / a" },
  rdiv   = { by_a = "1 / b", by_b = "-a / b / b", term = "a / b" },
}
local function reads(text, operand) return text:find("%f[%w]" .. operand .. "%f[%W]") ~= nil end
local function is_quotient(text) return text:find("/", 1, true) ~= nil end
local function gradient_of(message)
  local d = derivatives[message]
  return { d.term, edge = d.edge, ignores_a = not reads(d.edge or "", "a"), ignores_b = not reads(d.term, "b") }
end

-- What the templates of an SDDMM write: term(x, b) is what is summed of an element of dC and one of B; where it is a
-- quotient, its function also takes `unit`, which is wlm_unit(args); edge_unit comes before a sum that `edge` divides.
function operators.sddmm(problem)
  local d = derivatives[problem.message]
  local by_unit = is_quotient(d.term)
  return {
    term = function(x, b) return (by_unit and "wlm_message(unit * %s, %s)" or "%s * wlm_message(1, %s)"):format(x, b) end,
    unit_parameter = by_unit and ", wlm_acc_t unit" or "", unit = by_unit and ", wlm_unit(args)" or "",
    edge_unit = is_quotient(d.edge or "") and "wlm_unit(args) * " or "",
  }
end

-- The function of a derivative: its head, what it returns and how it is called for an edge. Where the derivative is a
-- quotient, the function takes an element x of dC and divides it, and what remains is 1 or minus the message: a factor out
-- of range then comes from a message that was out of range.
local function slope_function(name, slope)
  local sign, top, bottom, second = slope:match "^(-?)(%w) / (%w)(.*)$"
  if not top then
    return ("wlm_slope_%s("):format(name), slope,
      function(edge) return ("%s.x * wlm_slope_%s(%s.a, %s.b)"):format(edge, name, edge, edge) end
  end
  return ("wlm_times_slope_%s(wlm_acc_t x, "):format(name),
    "x / " .. bottom .. (second ~= "" and (" * (%s%s / %s)"):format(sign, top, bottom) or ""),
    function(edge) return ("wlm_times_slope_%s(%s.x, %s.a, %s.b)"):format(name, edge, edge, edge) end
end
function operators.slopes(problem)
  local d, of = derivatives[problem.message], {}
  of.head_a, of.slope_a, of.times_a = slope_function("a", d.by_a)
  of.head_b, of.slope_b, of.times_b = slope_function("b", d.by_b)
  of.reads_a, of.reads_b = reads(d.by_a .. " " .. d.by_b, "a"), reads(d.by_a .. " " .. d.by_b, "b")
  return of
end

-- The properties of an operator, which determine its candidates (variants.lua):
--   combine  partial results can be merged, so that a row may be split: the expression, or true where it is reduce
--   atomic   the atomic form of reduce, so that messages may be added to C in any order
--   ordered  the edges of a row must be folded in their order, so that nothing may be sorted beforehand
--   finish   what is done to the last partial; absent where that is nothing
--   beats    reduce is one of its two operands, x where this holds: then the position of an edge can go with it
--   instruction  reduce as one instruction of PTX, for a float accumulator from sm_80 on
--   light    an edge costs no more than with a sum, and a row end little more
-- The second half of the test makes max and min keep the first NaN.
local reductions = {
  sum  = { init = "0", reduce = "acc + x", combine = true, atomic = "add", light = true },
  mean = { init = "0", reduce = "acc + x", combine = true, finish = "wlm_over(acc, (wlm_acc_t)degree)", light = true },
  max  = { init = "-WLM_INF", beats = "x > acc || (x != x && acc == acc)", combine = true, empty = "0",
           instruction = "max.NaN.f32", light = true },
  min  = { init = "WLM_INF", beats = "x < acc || (x != x && acc == acc)", combine = true, empty = "0",
           instruction = "min.NaN.f32", light = true },
  prod = { init = "1", reduce = "acc * x", combine = true, light = true },
}
for _, reduction in pairs(reductions) do
  reduction.reduce = reduction.reduce or reduction.beats .. " ? x : acc"
end

-- The stride of a strategy (core/problem/sampling.h).
local strides = { bucket = "1", fastrand = "577", fastrand_coprime = "wlm_coprime_stride(degree)" }
-- An empty row (kept = 0) is not normalised.
local norms = { none = "acc", kept = "acc / (wlm_acc_t)kept", unbiased = "acc * ((wlm_acc_t)degree / (wlm_acc_t)kept)" }

-- Functions that users may call besides those of C's math.h. `quick`: the body for floats on a GPU.
local own_functions = {
  relu       = { "wlm_acc_t x", "x < 0 ? 0 : x" },
  leaky_relu = { "wlm_acc_t x, wlm_acc_t slope", "x < 0 ? slope * x : x" },
  sigmoid    = { "wlm_acc_t x", "1 / (1 + exp%s(-x))", calls = "exp",
                 quick = 'float power, result; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * -1.44269504f)); ' ..
                   'asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(1 + power)); return result;' },
  expscale   = { "wlm_acc_t x, wlm_acc_t base, wlm_acc_t scale", "exp%s(wlm_plus(x, -base)) * scale", calls = "exp",
                 quick = 'float power; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(wlm_plus(x, -base) * 1.44269504f)); return power * scale;' },
}

-- Functions of math.h that host compilers call instead of inlining; a call would prevent the vectorisation of loops.
local host_functions = {
  fmax = "p > q || q != q ? p : q",
  fmin = "p < q || q != q ? p : q",
}

-- A user-defined operator becomes two rows as in the tables, made from its expressions (core/problem/operator.h). If its
-- message is in the table, that row is used.
local by_text = {}
for _, message in pairs(messages) do by_text[message[1]:gsub(" ", "")] = message end

local function message_of(problem)
  local custom = problem.custom
  if problem.walk then return nil end
  if problem.operation == "sddmm" then return gradient_of(problem.message) end
  if not custom then return messages[problem.message] end
  return by_text[custom.message] or
    { custom.message, ignores_a = not custom.uses_a, ignores_b = not custom.uses_b, part = "message" }
end

local function reduction_of(problem)
  local custom = problem.custom
  if problem.walk then return nil end
  if not custom then return reductions[problem.reduce] end
  return {
    init = custom.init, reduce = custom.reduce, combine = custom.combine, finish = custom.finish,
    ordered = not custom.any_order, user_defined = true,
  }
end

-- Whether a kernel for the problem reads the values of A.
function operators.uses_a(problem)
  if problem.walk then
    for _, operand in ipairs(problem.walk.operands) do
      if operand.source == "values" then return problem.has_values end
    end
    return false
  end
  local message = message_of(problem)
  return problem.has_values and message and not message.ignores_a or false
end

-- Whether it reads B.
function operators.uses_b(problem)
  if problem.walk then return problem.walk.main ~= nil end
  local message = message_of(problem)
  return message and not message.ignores_b or false
end

-- Whether a kernel for the problem converts 16-bit types.
function operators.has_halves(problem)
  return types[problem.dense_type].half or types[problem.value_type].half or false
end

-- Whether an edge and a row end cost little more than with a plain sum of products; then fewer registers suffice. That
-- includes a user-defined sum of products, but no problem in which every lane loads its own value of an edge.
local function light(problem)
  if attention.pass(problem) ~= "none" then return false end
  local message, reduction = message_of(problem), reduction_of(problem)
  if problem.arg ~= "none" or problem.heads == "many" or problem.transpose and operators.uses_a(problem) then return false end
  local plain = message and message.light and reduction and
    (reduction.light or not reduction.finish and reduction.reduce:gsub(" ", "") == "acc+x")
  return plain and problem.dense_type ~= "f64" and problem.rowptr_type == "i32" and problem.colind_type == "i32"
end

local function divides(problem)
  local message = message_of(problem)
  return message and message[1] and message[1]:find "/"
end

-- Registers that a thread needs beyond those of a plain sum of products in f32: f64 has wider values of A, and argmax
-- indices need as many words again; there is more room for them if everything else is narrow and simple.
local function for_places(problem)
  if problem.arg == "none" then return 0 end
  if problem.arg == "i64" then return types[problem.dense_type].half and 32 or 16 end
  local narrow = problem.rowptr_type == "i32" and problem.colind_type == "i32" and problem.dense_type == "f32"
  if not narrow or divides(problem) then return 8 end
  local one_value = problem.heads ~= "many" and not (problem.transpose and operators.uses_a(problem))
  return one_value and -8 or 0
end
local function wide(problem)
  return problem.dense_type == "f64" or problem.arg ~= "none" and types[problem.dense_type].half
end
-- Registers for a value of A in each lane, whose address and index are as wide as positions.
local function for_heads(problem)
  if problem.heads ~= "many" then return 0 end
  if problem.colind_type == "i64" then return 24 end
  return types[problem.dense_type].half and problem.rowptr_type == "i64" and 8 or 0
end
local function for_divisions(problem) -- of doubles, which CUDA does in a dozen steps
  return problem.dense_type == "f64" and divides(problem) and 16 or 0
end
local function for_attention(problem) -- the terms of a row and of the edges in flight; backward another row besides
  local pass = attention.pass(problem)
  if pass == "none" then return 0 end
  local dropout = problem.dropout and 4 * problem.acc_bytes or 0
  if attention.products(problem) then dropout = dropout + 32 end
  return (pass == "forward" and 16 or 48) + (problem.acc_bytes == 8 and 24 or 0) + dropout
end
function operators.extra_registers(problem)
  if problem.walk then return 16 end -- families ask problem.walk.registers
  return (light(problem) and 0 or 16) + for_attention(problem) + (wide(problem) and 8 or 0) + for_places(problem) + for_heads(problem) +
    for_divisions(problem)
end

-- The type of positions in memory: those of 16 bits are the lower bits of wider ones.
function operators.stored_type(problem) return problem.stored_bytes == problem.arg_bytes and "wlm_place_t" or "wlm_stored_t" end

-- The type of the accumulator of a row, and the expression for its value.
function operators.sum(problem)
  if problem.walk then return "struct wlm_state" end
  if attention.pass(problem) ~= "none" then return "struct wlm_mix" end
  return problem.arg ~= "none" and "struct wlm_winner" or "wlm_acc_t"
end
function operators.value(problem) return problem.arg ~= "none" and not problem.walk and ".value" or "" end

-- Its bytes in memory, aligned to the larger of its two members.
function operators.sum_bytes(problem)
  if problem.walk then return problem.walk.state_bytes end
  if attention.pass(problem) ~= "none" then return attention.sum_bytes(problem) end
  if problem.arg == "none" then return problem.acc_bytes end
  return 2 * math.max(problem.acc_bytes, problem.arg_bytes)
end

-- nil if a family that splits rows in this way, or reorders the edges of a row, may serve the problem; otherwise the
-- reason.
function operators.split_refusal(problem, split, keeps_order)
  if problem.walk then return split == "atomic" and "needs an atomic form, and messages have none" or nil end
  if attention.pass(problem) ~= "none" then return split == "atomic" and "needs an atomic form, and attention has none" or nil end
  local reduction = reduction_of(problem)
  if split ~= "none" and not reduction.combine then
    return "splits rows, and the operator has no combine"
  end
  if split == "atomic" and not reduction.atomic then return "needs an atomic form, and the reduction has none" end
  if split == "atomic" and reduction.finish then return "adds messages to C, and the reduction has a last step for each row" end
  if reduction.ordered and not keeps_order then return "reorders the edges of a row, and the operator keeps their order" end
  return nil
end

local function fn(out, result, name, arguments, body)
  out[#out + 1] = ("WLM_FN %s %s(%s) { %s }"):format(result, name, arguments, body)
end

-- Puts a user's expression on a line of its own with a #line directive, so that a compiler's message points into it.
local function users_line(out, part, before, expression, after)
  out[#out + 1] = before
  out[#out + 1] = ('#line 1 "op:%s"'):format(part)
  out[#out + 1] = expression .. after
  out[#out + 1] = ('#line %d "operator block"'):format(#out + 1)
end

-- Emits a function of the accumulator's type whose body is `before` ("return" if absent) and an expression. `part`
-- names the expression if a user wrote it.
local function returns(out, name, arguments, expression, part, before)
  local head = ("WLM_FN wlm_acc_t %s(%s) { %s"):format(name, arguments, before or "return")
  if part then
    users_line(out, part, head, expression, "; }")
  else
    out[#out + 1] = ("%s %s; }"):format(head, expression)
  end
end

-- Declares the functions that users' expressions call. NVRTC knows the functions of math.h; the host compiler needs
-- declarations.
local function functions(out, problem)
  local type = types[problem.dense_type].accumulator
  local suffix, declared = type == "float" and "f" or "", {}
  for _, f in ipairs(problem.functions) do
    local own, host = own_functions[f.own], host_functions[f.name]
    if own then
      if own.calls then out[#out + 1] = ("#ifndef __CUDA_ARCH__\n%s %s%s(%s);\n#endif"):format(type, own.calls, suffix, type) end
      if own.quick and type == "float" then
        out[#out + 1] = "#ifdef __CUDA_ARCH__"
        fn(out, "wlm_acc_t", "wlm_" .. f.own, own[1], own.quick)
        out[#out + 1] = "#else"
      end
      returns(out, "wlm_" .. f.own, own[1], own.calls and own[2]:format(suffix) or own[2])
      if own.quick and type == "float" then out[#out + 1] = "#endif" end
    elseif host then
      declared[#declared + 1] = ("WLM_FN wlm_acc_t wlm_%s(wlm_acc_t p, wlm_acc_t q) { return %s; }"):format(f.name, host)
      declared[#declared + 1] = ("#define %s%s wlm_%s"):format(f.name, suffix, f.name)
    else
      declared[#declared + 1] = ("%s %s%s(%s);"):format(type, f.name, suffix, type .. ((", " .. type):rep(f.arity - 1)))
    end
  end
  if #declared > 0 then
    out[#out + 1] = "#ifndef __CUDA_ARCH__"
    table.move(declared, 1, #declared, #out + 1, out)
    out[#out + 1] = "#endif"
  end
end

-- Whether other kernels must make numbers of the same bits: scores, which gradients make again, and sums of edges.
local function rounds(problem)
  for _, f in ipairs(problem.functions) do
    if f.own == "expscale" then return true end
  end
  return attention.pass(problem) ~= "none" or (problem.walk and (problem.walk.sums_edges or problem.walk.score)) and true or false
end

-- Emits wlm_reduce (or a function of another name) as one instruction if there is one.
local function folds(out, name, expression, part, instruction)
  if instruction then
    out[#out + 1] = "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800"
    fn(out, "wlm_acc_t", name, "wlm_acc_t acc, wlm_acc_t x",
      ('float result; asm("%s %%0, %%1, %%2;" : "=f"(result) : "f"(acc), "f"(x)); return result;'):format(instruction))
    out[#out + 1] = "#else"
  end
  returns(out, name, "wlm_acc_t acc, wlm_acc_t x", expression, part)
  if instruction then out[#out + 1] = "#endif" end
end

-- wlm_over: divides by a whole number. For a float it takes a few instructions, while IEEE division calls a function.
-- The reciprocal is common to a row, and one Newton step makes the quotient exact to the last bit except in rare cases.
-- The test keeps infinite sums, for which the Newton step gives NaN.
local function quotient(out, accumulator)
  local quick = 'float inverse; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(count)); ' ..
    "const float first = sum * inverse, better = __fmaf_rn(__fmaf_rn(-first, count, sum), inverse, first); " ..
    "return better == better ? better : first;"
  if accumulator == "float" then
    out[#out + 1] = "#ifdef __CUDA_ARCH__"
    fn(out, "wlm_acc_t", "wlm_over", "wlm_acc_t sum, wlm_acc_t count", quick)
    out[#out + 1] = "#else"
  end
  fn(out, "wlm_acc_t", "wlm_over", "wlm_acc_t sum, wlm_acc_t count", "return sum / count;")
  if accumulator == "float" then out[#out + 1] = "#endif" end
end

local function activation(out, problem)
  if problem.activation then returns(out, "wlm_activation", "wlm_acc_t x", problem.activation, "activation") end
end

-- The steps of an epilogue: what an accumulator gets in a column.
local function closing(problem)
  return (problem.bias and "value += wlm_widen(((const wlm_c_t *)args->bias)[column]); " or "") ..
    (problem.activation and "value = wlm_activation(value); " or "")
end

local function epilogue(out, problem)
  activation(out, problem)
  fn(out, "wlm_acc_t", "wlm_scale", "const struct wlm_args *args, const wlm_c_t *c, wlm_acc_t result",
    "wlm_acc_t value = (wlm_acc_t)args->alpha * result; " ..
    "if (args->beta != 0) value += (wlm_acc_t)args->beta * wlm_widen(*c); return value;")
  fn(out, "wlm_c_t", "wlm_result", "const struct wlm_args *args, long long column, wlm_acc_t result",
    "(void)args; (void)column; wlm_acc_t value = result; " .. closing(problem) .. "return wlm_narrow(value);")
end

local function store(out, problem)
  local result = "result" .. operators.value(problem)
  fn(out, "void", "wlm_store",
    ("const struct wlm_args *args, wlm_c_t *c, long long column, %s result"):format(operators.sum(problem)),
    ("*c = wlm_result(args, column, args->scaled ? wlm_scale(args, c, %s) : %s);"):format(result, result) ..
    (problem.arg ~= "none" and " *wlm_arg_of(args, c) = wlm_arg(args, result.place);" or ""))
end

local function message_function(out, message)
  returns(out, "wlm_message", "wlm_acc_t a, wlm_acc_t b", message[1], message.part, "(void)a; (void)b; return")
end

-- Folding and merging with argmax indices. Edges come in order unless they were sampled, and so do the partial results of
-- a family that keeps the order: then the first of equal ones stays, and merging is folding. Otherwise positions are
-- compared. An empty row is recognised by its degree. So a row whose messages all equal init gives its first edge, whose
-- position init receives.
local function winners(out, problem, reduction, message)
  local winner = operators.sum(problem)
  out[#out + 1] = ("typedef %s wlm_place_t;"):format(indices[problem.arg])
  local memory = operators.stored_type(problem)
  if memory ~= "wlm_place_t" then out[#out + 1] = ("typedef unsigned short %s;"):format(memory) end
  out[#out + 1] = "struct wlm_winner { wlm_acc_t value; wlm_place_t place; };"
  message_function(out, message)
  fn(out, "int", "wlm_beats", "wlm_acc_t x, wlm_acc_t acc", ("return %s;"):format(reduction.beats))
  fn(out, winner, "wlm_winner_of", "int second, struct wlm_winner acc, struct wlm_winner x",
    "acc.value = second ? x.value : acc.value; acc.place = second ? x.place : acc.place; return acc;")
  fn(out, winner, "wlm_init", "long long place",
    ("struct wlm_winner acc = {%s, (wlm_place_t)place}; return acc;"):format(reduction.init))
  local merges = function(body) fn(out, winner, "wlm_combine", "struct wlm_winner acc, struct wlm_winner x", body) end
  if not problem.in_order then
    merges("const int lower = x.place < acc.place && !wlm_beats(acc.value, x.value); " ..
      "return wlm_winner_of(wlm_beats(x.value, acc.value) || lower, acc, x);")
  end
  local fold = "const struct wlm_winner edge = {x, (wlm_place_t)place}; return " ..
    (problem.sample == "none" and "wlm_winner_of(wlm_beats(x, acc.value), acc, edge);" or "wlm_combine(acc, edge);")
  if problem.sample == "none" and types[problem.dense_type].accumulator == "float" then
    -- The edge has won if the bits of the value change: two instructions besides that of the value, while wlm_beats
    -- takes five. Adding 0 turns -0 into 0; the first NaN stays.
    folds(out, "wlm_extreme", reduction.reduce, nil, reduction.instruction)
    fn(out, "int", "wlm_bits", "float value", "union { float value; int bits; } word = {value}; return word.bits;")
    fold = "const wlm_acc_t value = wlm_extreme(acc.value, x + 0); const int stays = wlm_bits(value) == wlm_bits(acc.value); " ..
      "acc.value = value; acc.place = stays ? acc.place : (wlm_place_t)place; return acc;"
  end
  fn(out, winner, "wlm_reduce", "struct wlm_winner acc, wlm_acc_t x, long long place", fold)
  if problem.in_order then merges("return wlm_reduce(acc, x.value, x.place);") end
  fn(out, winner, "wlm_finish", "struct wlm_winner acc, long long degree",
    ("if (degree == 0) { acc.value = %s; acc.place = -1; } return acc;"):format(
      problem.empty == "identity" and "acc.value" or reduction.empty))
  fn(out, memory .. " *", "wlm_arg_of", "const struct wlm_args *args, const wlm_c_t *c",
    ("return (%s *)args->arg + (c - (const wlm_c_t *)args->c);"):format(memory))
  fn(out, memory, "wlm_arg", "const struct wlm_args *args, wlm_place_t place",
    problem.transpose and "return place < 0 ? place : (wlm_place_t)__ldg((const wlm_rowptr_t *)args->order + place);"
      or memory == "wlm_place_t" and "(void)args; return place;" or ("(void)args; return (%s)place;"):format(memory))
end

-- The same without argmax indices.
local function accumulators(out, problem, reduction, message)
  local part = function(name) return reduction.user_defined and name or nil end
  returns(out, "wlm_init", "void", reduction.init, part "init")
  message_function(out, message)
  local accumulator = types[problem.dense_type].accumulator
  local instruction = accumulator == "float" and reduction.instruction
  folds(out, "wlm_reduce", reduction.reduce, part "reduce", instruction)
  if reduction.combine then
    local combine = reduction.combine == true and reduction.reduce or reduction.combine
    folds(out, "wlm_combine", combine, part "combine", instruction)
  end
  if reduction.finish and not reduction.user_defined then quotient(out, accumulator) end
  local empty = problem.empty == "identity" and "acc" or reduction.empty or "acc"
  returns(out, "wlm_finish", "wlm_acc_t acc, long long degree", reduction.finish or "acc", reduction.finish and part "finish",
    ("return degree == 0 ? %s :"):format(empty))
end

-- How often the sample takes a single edge, for kernels that do not enumerate a row's sample.
local function shares(out, problem)
  local stride, norm = strides[problem.sample], norms[problem.sample_norm]
  out[#out + 1] = "struct wlm_sample_row { long long degree, shift; int stride, inverse; wlm_acc_t factor; };"
  out[#out + 1] = "WLM_FN struct wlm_sample_row wlm_sample_row(const struct wlm_args *args, long long row, long long degree) {"
  out[#out + 1] = "  struct wlm_sample_row sample = {degree, 0, 1, 1, 1};"
  out[#out + 1] = "  if (degree > WLM_SAMPLE_WIDTH) {"
  out[#out + 1] = ("    sample.stride = %s;"):format(stride)
  if problem.sample ~= "bucket" then
    out[#out + 1] = "    sample.inverse = wlm_inverse((int)(degree % sample.stride), sample.stride);"
  end
  out[#out + 1] = "    if (args->seed) sample.shift = (long long)(wlm_row_hash(args->seed, row) % (unsigned long long)degree);"
  out[#out + 1] = "  }"
  if problem.sample_norm ~= "none" then
    out[#out + 1] = "  const wlm_acc_t acc = 1;"
    out[#out + 1] = "  const long long kept = degree < WLM_SAMPLE_WIDTH ? degree : WLM_SAMPLE_WIDTH;"
    out[#out + 1] = ("  if (kept > 0) sample.factor = %s;"):format(norm)
  end
  out[#out + 1] = "  return sample;"
  out[#out + 1] = "}"
  fn(out, "int", "wlm_times", "struct wlm_sample_row sample, long long position",
    "if (sample.degree <= WLM_SAMPLE_WIDTH) return 1; " ..
    "const long long place = position - sample.shift + (position < sample.shift ? sample.degree : 0); " ..
    "return wlm_times_strided(place, sample.stride, sample.inverse, sample.degree, WLM_SAMPLE_WIDTH);")
  if problem.operation == "sddmm" then
    fn(out, "long long", "wlm_edge_taken", "struct wlm_sample_row sample, long long k",
      "return sample.degree <= WLM_SAMPLE_WIDTH ? k : wlm_strided(k, sample.stride, sample.degree, sample.shift);")
    fn(out, "int", "wlm_edges_taken", "struct wlm_sample_row sample",
      "const long long apart = sample.inverse ? sample.degree : sample.degree / sample.stride; " ..
      "return apart < WLM_SAMPLE_WIDTH ? (int)apart : WLM_SAMPLE_WIDTH;")
    return
  end
  out[#out + 1] = "struct wlm_share { int times; wlm_acc_t factor; };"
  out[#out + 1] = ("WLM_FN struct wlm_share wlm_share_in(const struct wlm_args *args, %s row, long long place) {")
    :format(problem.transpose and "wlm_colind_t" or "long long")
  out[#out + 1] = "  const wlm_rowptr_t *begin = (const wlm_rowptr_t *)args->a_rowptr + row;"
  out[#out + 1] = ("  const long long first = __ldg(begin)%s, degree = __ldg(begin + 1)%s - first;"):format(problem.minus_base, problem.minus_base)
  out[#out + 1] = "  const struct wlm_sample_row sample = wlm_sample_row(args, row, degree);"
  out[#out + 1] = "  struct wlm_share share = {wlm_times(sample, place - first), sample.factor};"
  out[#out + 1] = "  return share;"
  out[#out + 1] = "}"
  if problem.walk then
    fn(out, "wlm_acc_t", "wlm_taken", "struct wlm_share share, wlm_acc_t value",
      ("return share.times ? (wlm_acc_t)share.times * %svalue : 0;"):format(problem.sample_norm ~= "none" and "share.factor * " or ""))
    return
  end
  fn(out, "struct wlm_share", "wlm_share", "const struct wlm_args *args, long long p",
    "return wlm_share_in(args, wlm_column(args, p), __ldg((const wlm_rowptr_t *)args->order + p));")
end

local function sampling(out, problem)
  local sum, walk = operators.sum(problem), problem.walk
  local walks_all = problem.transpose or walk and walk.shares -- edges that no sample takes, too
  local stride = not walks_all and strides[problem.sample]
  if problem.sample ~= "none" then out[#out + 1] = ("#define WLM_SAMPLE_WIDTH %d"):format(problem.sample_width) end
  if problem.sample ~= "none" and (walks_all or problem.operation == "sddmm") then shares(out, problem) end
  if not stride then
    out[#out + 1] = "struct wlm_sample_state { int none; };"
    fn(out, "long long", "wlm_kept", "long long degree", "return degree;")
    fn(out, "struct wlm_sample_state", "wlm_sample_begin", "const struct wlm_args *args, long long row, long long degree",
      "(void)args; (void)row; (void)degree; struct wlm_sample_state state = {0}; return state;")
    fn(out, "long long", "wlm_sample", "long long k, long long degree, struct wlm_sample_state state",
      "(void)degree; (void)state; return k;")
    fn(out, sum, "wlm_normalise", sum .. " acc, long long kept, long long degree",
      "(void)kept; (void)degree; return acc;")
    return
  end
  out[#out + 1] = "struct wlm_sample_state { int stride; long long shift; };"
  fn(out, "long long", "wlm_kept", "long long degree",
    "return degree < WLM_SAMPLE_WIDTH ? degree : WLM_SAMPLE_WIDTH;")
  out[#out + 1] = "WLM_FN struct wlm_sample_state wlm_sample_begin(const struct wlm_args *args, long long row, long long degree) {"
  out[#out + 1] = "  struct wlm_sample_state state = {0, 0};"
  out[#out + 1] = "  if (degree > WLM_SAMPLE_WIDTH) {"
  out[#out + 1] = ("    state.stride = %s;"):format(stride)
  out[#out + 1] = "    if (args->seed) state.shift = (long long)(wlm_row_hash(args->seed, row) % (unsigned long long)degree);"
  out[#out + 1] = "  }"
  out[#out + 1] = "  return state;"
  out[#out + 1] = "}"
  fn(out, "long long", "wlm_sample", "long long k, long long degree, struct wlm_sample_state state",
    "return degree <= WLM_SAMPLE_WIDTH ? k : wlm_strided(k, state.stride, degree, state.shift);")
  local norm, parts = norms[problem.sample_norm], {}
  for i, result in ipairs(walk and problem.sample_norm ~= "none" and walk.of_row or {}) do
    parts[i] = ("if (kept > 0) acc.v%d = %s; "):format(result.at, norm:gsub("^acc", "acc.v" .. result.at))
  end
  fn(out, sum, "wlm_normalise", sum .. " acc, long long kept, long long degree", walk and
    "(void)kept; (void)degree; " .. table.concat(parts) .. "return acc;" or
    ("(void)degree; return kept > 0 ? %s : acc;"):format(norm))
end

-- The value of an edge that has one for each head. The values may take more than 2^32 bytes; with 32-bit positions the
-- address still takes one instruction (mad.wide).
local function heads(out, value, uses_a, place, rowptr_type)
  fn(out, "wlm_acc_t", "wlm_load_head_a", "const struct wlm_args *args, long long p, int head", uses_a and
    ("const char *values = (const char *)((const wlm_val_t *)args->values + head); " ..
     "const unsigned int bytes = (unsigned int)(args->heads * (long long)sizeof(wlm_val_t)); return %s;"):format(
      value.widen:format(("__ldg((const wlm_val_t *)(values + (unsigned long long)%s%s * bytes))"):format(
        rowptr_type == "i32" and "(unsigned int)" or "", place))) or
    "(void)args; (void)p; (void)head; return 1;")
end

-- The call that loads the value of edge `p`. The arguments are the names used at that point of the template; `head` is
-- unused if an edge has one value.
function operators.load_a(problem)
  local form = problem.heads == "many" and "wlm_load_head_a(%s, %s, %s)" or "wlm_load_a(%s, %s)"
  return function(args, p, head) return form:format(args, p, head) end
end

-- The C type of an index by the type's name.
function operators.index(name) return indices[name] end

-- render(name, parameters) gives the text of a template.
function operators.block(problem, render)
  local dense, value = types[problem.dense_type], types[problem.value_type]
  local message, reduction = message_of(problem), reduction_of(problem)
  local uses_a = operators.uses_a(problem)
  local out = { '#line 1 "operator block"' }
  out[#out + 1] = ("typedef %s wlm_rowptr_t;"):format(indices[problem.rowptr_type])
  out[#out + 1] = ("typedef %s wlm_colind_t;"):format(indices[problem.colind_type])
  out[#out + 1] = ("typedef %s wlm_val_t;"):format(value.storage)
  out[#out + 1] = ("typedef %s wlm_b_t;"):format(dense.storage)
  out[#out + 1] = ("typedef %s wlm_c_t;"):format(dense.storage)
  out[#out + 1] = ("typedef %s wlm_acc_t;"):format(dense.accumulator)
  out[#out + 1] = ("#define WLM_USES_A %d"):format(uses_a and 1 or 0)
  out[#out + 1] = ("#define WLM_USES_B %d"):format(operators.uses_b(problem) and 1 or 0)
  fn(out, "wlm_acc_t", "wlm_widen", "wlm_b_t x", ("return %s;"):format(dense.widen:format("x")))
  fn(out, "wlm_c_t", "wlm_narrow", "wlm_acc_t x", ("return %s;"):format(dense.narrow:format("x")))
  fn(out, "long long", "wlm_begin", "const struct wlm_args *args, long long row",
    "return (long long)__ldg((const wlm_rowptr_t *)args->rowptr + row)" .. problem.minus_base .. ";")
  fn(out, "wlm_colind_t", "wlm_column", "const struct wlm_args *args, long long p",
    "return __ldg((const wlm_colind_t *)args->colind + p)" .. problem.minus_base .. ";")
  local place = problem.transpose and "__ldg((const wlm_rowptr_t *)args->order + p)" or "p"
  if problem.heads == "many" or problem.has_operands then
    fn(out, "int", "wlm_head_of", "const struct wlm_args *args, long long column",
      "return (int)((unsigned int)column / (unsigned int)args->head_width);")
  end
  if problem.heads == "many" then
    heads(out, value, uses_a, place, problem.rowptr_type)
  elseif uses_a then
    fn(out, "wlm_acc_t", "wlm_load_a", "const struct wlm_args *args, long long p",
      ("return %s;"):format(value.widen:format("__ldg((const wlm_val_t *)args->values + " .. place .. ")")))
  else
    fn(out, "wlm_acc_t", "wlm_load_a", "const struct wlm_args *args, long long p", "(void)args; (void)p; return 1;")
  end
  if message and message.ignores_b then
    fn(out, "wlm_acc_t", "wlm_load_b", "const wlm_b_t *pointer", "(void)pointer; return 0;")
  else
    fn(out, "wlm_acc_t", "wlm_load_b", "const wlm_b_t *pointer", "return wlm_widen(__ldg(pointer));")
  end
  if rounds(problem) then out[#out + 1] = render("prelude/rounded.h", { problem = problem }) end
  functions(out, problem)
  if problem.walk then
    quotient(out, dense.accumulator)
    if problem.bias or problem.activation then
      activation(out, problem)
      fn(out, "wlm_acc_t", "wlm_closed", "const struct wlm_args *args, long long column, wlm_acc_t value",
        "(void)args; (void)column; " .. closing(problem) .. "return value;")
    end
    message_block.block(out, fn, returns, folds, problem, operators.load_a(problem)("args", "p", "head"), render)
    sampling(out, problem)
    return table.concat(out, "\n") .. "\n"
  end
  if attention.pass(problem) ~= "none" then
    local closed = {}
    epilogue(closed, problem)
    out[#out + 1] = render("prelude/attention_block.h", {
      problem = problem, load_a = operators.load_a(problem), least = attention.least(problem), epilogue = table.concat(closed, "\n"),
    })
    out[#out + 1] = '#line 1 "operator block"'
    sampling(out, problem)
    return table.concat(out, "\n") .. "\n"
  end
  local folding = problem.arg ~= "none" and winners or accumulators
  folding(out, problem, reduction, message)
  if problem.operation == "sddmm" then
    returns(out, "wlm_edge", "wlm_acc_t acc, wlm_acc_t a", message.edge or "acc", nil, "(void)a; return")
    if is_quotient(message[1] .. (message.edge or "")) then -- a quotient out of range times alpha = 0 would be NaN
      fn(out, "wlm_acc_t", "wlm_unit", "const struct wlm_args *args", "return args->alpha != 0;")
    end
  end
  epilogue(out, problem)
  store(out, problem)
  sampling(out, problem)
  return table.concat(out, "\n") .. "\n"
end

return operators
