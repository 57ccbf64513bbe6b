-- Families and their variants. A family is a folder with family.lua and one kernel template; a variant is a family with
-- a value for each parameter; its canonical name is "row_crc/cf=2,rows=4".
--
-- family.lua returns a table; shared "NAME" gives it what prelude/NAME returns:
--   target         "cuda" or "host"
--   summary        one line: idea and source
--   version        a whole number; measurements name it, so it is raised when kernels may take another time (a family
--                  of WARPLOOM_TEMPLATES needs none, since its measurements name a hash of its files)
--   split          how it splits a row: "none" (each element of C is folded into one accumulator), "carry" (partial
--                  results are combined) or "atomic" (terms are added to C or to the workspace, in any order)
--   walks          "op(a)": the kernels get op(A), so of a transposed problem A^T. "a": the family serves transposed
--                  problems alone and its kernels get A itself: rows, cols, nnz, rowptr, colind and values are A's, B has
--                  args.rows rows and C args.cols. What it sees as `problem` is not transposed: load_a(p) is value p
--   keeps_order    folds the edges of a row, or of a part of it, in their order
--   deterministic  same bits every time
--   operation      "spmm" or "sddmm": what it computes
--   positions      gives the positions of what wins (a family that does not is no candidate where they are wanted)
--   operands       loads the operands of rows and edges (enter_row, load_edge), so it serves attention
--                  (generator/attention.lua) and messages (generator/message.lua)
--   samples        serves problems that sample the rows which it walks (a family that does not is no candidate for them);
--                  "only": serves nothing else
--   shares         walks A^T of a sampled A, and asks wlm_share what each edge counts; "only": serves nothing else
--   batches        serves batches, true unless it is false: a function that is not inlined would get a copy of a
--                  product's arguments in local memory
--   simple         so simple that other kernels are compared with it, emitted in f64 (tuner/whole_check.c)
--   parameters     { {"cf", {1, 2}}, ... } in the order of the canonical name, at most 8, each with at most 16 values,
--                  integers or words; {"vector", {1, 2, 4}, "widest"} has only the widest vector of B that n and the type
--                  allow as a valid value, "halved" half of it, too, where a row of 16-bit types then occupies a group
--   valid(p, problem, limits)      -> true, or false and a reason           (optional); a third result "slow" means that
--                                     the variant would only be slow: it is a candidate where limits.any_width is set.
--                                     Then problem.head_text, which is otherwise the number of columns of a head, is read
--                                     at run time, and templates (any_width) may not depend on problem.n or head_width
--   passes(p, problem, limits)     -> list of launches (core/problem/program.h)
--   workspace(p, problem, limits)  -> row of byte coefficients              (optional)
--   prepared(p, problem, limits)   -> the same, where a pass prepares       (optional)
--   rows_together(p)               -> neighbouring rows of which the threads of a warp store elements at once (optional). A
--                                     family that has it addresses columns by in_b and in_c, so that its kernels take
--                                     column-major B and C where they are
--   registers(p, problem, limits)  -> of a thread, at most (cuda; 64 where it is not given)
--   spilled(p, problem, limits)    -> bytes that a thread may spill, stores and loads together (0 where it is not given)

local engine = require "engine"
local operators = require "operators"
local attention = require "attention"
local message = require "message"

local variants = {}
local families -- name -> family, filled by variants.load
local names    -- sorted

local defaults = {
  operation = "spmm", split = "none", keeps_order = true, deterministic = true, samples = false,
  shares = false, positions = false, operands = false, batches = true, simple = false, walks = "op(a)", version = 0,
  registers = function() return 64 end,
}
-- Other fields of family.lua, and those with certain values; a field of `defaults` has the type of its default.
local types = {
  summary = "string", parameters = "table", valid = "function", passes = "function", workspace = "function",
  prepared = "function", spilled = "function", rows_together = "function",
}
local values = {
  target = { "cuda", "host" }, operation = { "spmm", "sddmm" }, walks = { "op(a)", "a" },
  split = { "none", "carry", "atomic" }, samples = { true, false, "only" }, shares = { true, false, "only" },
}
-- Fields of a pass; C reads the values of all but the last three.
local pass_types = {
  kernel = "string", when = "string", units = "string", axis = "string", units_per_block = "number",
  nonzeros_per_unit = "number", columns_per_block = "number", threads = "number", shared_bytes = "number",
  dependent = "boolean", resident = "number", tile_threads = "number", constants = "table",
}
local required = { "target", "summary", "parameters", "passes" }

local function spelled(value)
  local kind = type(value)
  if kind == "string" then return ("%q"):format(value) end
  return (kind == "number" or kind == "boolean") and tostring(value) or "a " .. kind
end

local function kind_error(name, value, kind)
  return type(value) ~= kind and ("%s must be a %s, not %s"):format(name, kind, spelled(value)) or nil
end

-- nil, or why a field cannot have this value.
local function field_error(name, value)
  local allowed, words = values[name], {}
  if not allowed then
    local kind = types[name] or (defaults[name] ~= nil and type(defaults[name]))
    return kind and kind_error(name, value, kind) or not kind and ("'%s' is no field of a family"):format(name) or nil
  end
  for i, one in ipairs(allowed) do
    if value == one then return nil end
    words[i] = spelled(one)
  end
  local last = table.remove(words)
  return ("%s must be %s or %s, not %s"):format(name, table.concat(words, ", "), last, spelled(value))
end

-- nil, or what is wrong with the result of family.lua; of several mistakes always the same one.
local function family_error(family)
  if type(family) ~= "table" then return "must return a table" end
  for _, key in ipairs(required) do
    if family[key] == nil then return ("'%s' is missing"):format(key) end
  end
  local found = {}
  for key, value in pairs(family) do found[#found + 1] = field_error(tostring(key), value) end
  table.sort(found)
  if found[1] then return found[1] end
  if math.type(family.version or 0) ~= "integer" then return ("version must be a whole number, not %s"):format(family.version) end
  for _, parameter in ipairs(family.parameters) do
    if parameter[3] ~= nil and parameter[3] ~= "widest" and parameter[3] ~= "halved" then
      return ('parameter %s: %s is unknown behind its values; "widest" and "halved" are known'):format(parameter[1], spelled(parameter[3]))
    end
  end
  return nil
end

-- A copy of a pass; fails naming a field that is none or has a value of another type, always the same one of several.
local function checked_pass(family, pass)
  local copy, found = {}, {}
  if type(pass) ~= "table" then error(("%s/family.lua: a pass must be a table, not %s"):format(family.name, spelled(pass)), 0) end
  for key, value in pairs(pass) do
    local kind = pass_types[key]
    found[#found + 1] = kind and kind_error(key, value, kind) or
      not kind and ("'%s' is no field of a pass"):format(tostring(key)) or nil
    copy[key] = value
  end
  table.sort(found)
  if found[1] then error(("%s/family.lua: %s"):format(family.name, found[1]), 0) end
  return copy
end

local function template_name(family)
  return family.name .. (family.target == "cuda" and "/kernel.cu.in" or "/kernel.c.in")
end

-- read() of the files that the version of a family covers (generator/files.h).
local function reader_of(name, read)
  return function(file)
    local folder = file:match("^([%w_]+)/[^/.][^/]*$")
    if folder ~= "prelude" and folder ~= name then
      error(('%s: "%s": a family reads files of its own folder and of prelude/'):format(name, file), 0)
    end
    return read(file)
  end
end

-- What the text of a family, or of a file of prelude/ that it shares, returns.
local function run(file, read)
  local env = { math = math, ipairs = ipairs, pairs = pairs, string = string, table = table }
  env.shared = function(name) return run("prelude/" .. name, read) end
  local chunk, message = load(read(file), "=" .. file, "t", env)
  if not chunk then error(message, 0) end
  return chunk()
end

-- Arguments, all from C: files, a sorted list of names; read(name) -> text; add(family, version) and add(family,
-- parameter, value), which fill C's table of families.
function variants.load(files, read, add)
  families, names = {}, {}
  variants.read = read
  for _, file in ipairs(files) do
    local name = file:match("^([%w_]+)/family%.lua$")
    if not name then error(file .. ": a family's folder is named by letters, digits and _ alone", 0) end
    local family = run(file, reader_of(name, read))
    local message = family_error(family)
    if message then error(file .. ": " .. message, 0) end
    for key, value in pairs(defaults) do
      if family[key] == nil then family[key] = value end
    end
    family.name = name
    family.template = read(template_name(family))
    families[name] = family
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    add(name, families[name].version)
    for _, parameter in ipairs(families[name].parameters) do
      for _, value in ipairs(parameter[2]) do add(name, parameter[1], tostring(value)) end
    end
  end
end

-- The compiler gets the limit as the number of blocks that share a multiprocessor's 65536 registers, so it may use a
-- few more than `registers`.
local function most_registers(registers, passes)
  local most = 0
  for _, pass in ipairs(passes) do
    local blocks = math.max(1, 65536 // (pass.threads * registers))
    most = math.max(most, math.min(255, 65536 // (pass.threads * blocks) // 8 * 8))
  end
  return most
end

-- A variant as C stores it: the index of its family among the names, from 1, then the index of each value, from 0.
local function resolve(variant)
  local family, p = families[names[variant:byte(1)]], {}
  for i, parameter in ipairs(family.parameters) do p[parameter[1]] = parameter[2][variant:byte(1 + i) + 1] end
  return family, p
end

-- How many elements a lane can move at once: they fit in 16 bytes, and n (or the columns of a head, so that a lane
-- needs one value of an edge) is a multiple of them.
local function widest_vector(problem)
  local vector = 16 // problem.dense_bytes
  while problem.head_width % vector > 0 do vector = vector // 2 end
  return vector
end

-- The most columns of a column-major B that kernels read where it is. Of more, each edge would read so many sectors of a
-- cache that this pays for tiny matrices alone, and the addresses take registers.
local most_steps = 8

-- Properties of a problem that families use besides its fields.
local function complete(problem)
  problem.uses_a = operators.uses_a(problem)
  problem.attention, problem.products = attention.pass(problem), attention.products(problem)
  problem.has_operands = problem.attention ~= "none" or problem.walk ~= nil
  message.prepare(problem)
  if (problem.operation == "spmm" or problem.operation == "argmax_gradient") and not problem.uses_a then -- whatever its heads, nothing reads their values
    problem.heads, problem.head_width = "one", problem.n
  end
  problem.extra_registers = operators.extra_registers(problem)
  problem.widest_vector = widest_vector(problem)
  problem.sum_bytes = operators.sum_bytes(problem)
  problem.stored_type = operators.stored_type(problem)
  problem.b_steps = problem.steps and problem.n <= most_steps
end

-- The problem that a family sees: for a family that walks A itself it is not transposed, and `steps` is true only for
-- one whose kernels take column-major arrays.
local function seen_by(family, problem)
  local steps = problem.steps and family.rows_together ~= nil
  if family.walks == "op(a)" and steps == problem.steps then return problem end
  local seen = setmetatable({ steps = steps, b_steps = steps and problem.b_steps }, { __index = problem })
  if family.walks == "a" then
    seen.transpose = false
    complete(seen)
  end
  return seen
end

-- What templates write differently. With column-major arrays (problem.steps):
--   in_b(columns, args), in_c(columns, args)   the distance of so many columns in B and in C; args: "args->" or "args."
--   stepped(text), b_stepped(text)   any other text, the latter where the kernel takes a column-major B, too
--   if_rows(text)    a number that is 0 where C is column-major
-- With argmax indices:
--   sum, value       the accumulator's type, and its value
--   at(place)        a last argument
--   from(text, otherwise), held(index)   any other text, and an element of the arrays acc and place
-- With operands of rows and edges:
--   only(text, otherwise), of(row)   any other text, and a last argument of what stores a row: the row's number
--   fold, fold_next  the call that takes in edge j of a batch, on its own or behind make_room.h
--   sides(j)         last arguments of fold: the other side of edge j, where a score is a product of rows
--   places           pointers and strides besides those of B and C that decide whether pieces are aligned
--   folded           the type of an element of the array acc
--   ways(aligned)    where loads are written for pieces that lie aligned and for others, if there is a difference: the line
--                    that begins each block, and what it knows of `aligned`
--   single           hosts: a row is one number; row_lanes: the lanes that its edges are folded in, false where they have an
--                    order or are converted from 16 bits
--   merged(text, otherwise), whole(v), combine   where partial sums of a piece are merged as a whole, not by column
local function spell(problem, parameters)
  local wanted, operands = problem.arg ~= "none", problem.has_operands
  parameters.sum, parameters.value = operators.sum(problem), operators.value(problem)
  local function columns_of(array, has_steps)
    return function(columns, args)
      return has_steps and ("%s * %ssteps.%s"):format(columns, args or "args->", array) or tostring(columns)
    end
  end
  parameters.in_b, parameters.in_c = columns_of("b", problem.b_steps), columns_of("c", problem.steps)
  parameters.stepped = function(text) return problem.steps and text or "" end
  parameters.b_stepped = function(text) return problem.b_steps and text or "" end
  parameters.if_rows = function(text) return problem.steps and ("(args->steps.c == 1 ? %s : 0)"):format(text) or text end
  parameters.at = function(place) return wanted and ", " .. place or "" end
  parameters.from = function(place, otherwise) return wanted and place or otherwise or "" end
  parameters.held = function(index) return wanted and ("((struct wlm_winner){acc%s, place%s})"):format(index, index) or "acc" .. index end
  parameters.only = function(text, otherwise) return operands and text or otherwise or "" end
  parameters.of = function(row) return operands and ", " .. row or "" end
  parameters.fold = function(j, place)
    if not operands then return ("wlm_fold(sums, a%d, piece%d%s)"):format(j, j, parameters.at(place)) end
    return ("wlm_fold_edge(sums, a%d, piece%d, args, &terms, %s%s)"):format(j, j, place, parameters.sides(j))
  end
  parameters.fold_next = parameters.fold
  parameters.sides = function() return "" end
  parameters.single = problem.n == 1 and problem.heads ~= "many" and not wanted and not operands and
    not (problem.sample ~= "none" and problem.transpose)
  parameters.row_lanes = parameters.single and problem.sample == "none" and not problem.custom and
    not operators.has_halves(problem) and 16 // problem.acc_bytes
  parameters.places, parameters.folded, parameters.combine = "", "wlm_acc_t", "wlm_combine"
  parameters.merged = function(_, otherwise) return otherwise or "" end
  parameters.ways = function(aligned)
    if parameters.vector == 1 then return { { begin = "{", aligned = 1 } } end
    return { { begin = ("if (%s) {"):format(aligned), aligned = 1 }, { begin = "} else {", aligned = 0 } }
  end
  parameters.whole = function(v) return (".at[%d]"):format(v) end
  attention.spell(problem, parameters)
  message.spell(problem, parameters)
  return parameters
end

-- A file that is no template.
local function plain(name) return engine.plain(variants.read(name), name) end

local function rendered(name, parameters) return engine.render(variants.read(name), name, parameters, variants.read) end

-- A family's passes; its statement about resident blocks is converted to numbers for the device.
local function passes_of(family, p, problem, limits)
  local passes = {}
  for i, given in ipairs(family.passes(p, problem, limits)) do
    local pass = checked_pass(family, given)
    if pass.resident then pass.wave, pass.processors = pass.resident * limits.processors, limits.processors end
    passes[i] = pass
  end
  return passes
end

-- nil, or why a family does not compute with the edges that are sampled, if there are any. Families that load operands
-- look up the edges of messages that have a share.
local function sampling_refusal(family, problem)
  local only_sampled = family.samples == "only" or family.shares == "only"
  if problem.sample == "none" then return only_sampled and "is for sampled problems" or nil end
  if problem.walk and problem.walk.shares then
    return family.samples == "only" and "walks the sampled edges of rows alone" or nil
  end
  local by_rows_of_a = problem.transpose and family.walks == "op(a)"
  if by_rows_of_a and not family.shares then return "does not look up which edges the rows of A sample" end
  if not by_rows_of_a and not family.samples then return "does not sample" end
  return nil
end

-- nil if the family serves the problem on the device, otherwise the reason.
local function family_refusal(family, problem, limits)
  if family.target ~= limits.target then return "is for the " .. family.target .. " device" end
  if problem.has_operands then
    if not family.operands then return "does not load operands of rows and edges" end
  elseif family.operation ~= problem.operation then return "computes another operation, " .. family.operation end
  local reason = operators.split_refusal(problem, family.split, family.keeps_order)
  if reason then return reason end
  reason = sampling_refusal(family, problem)
  if reason then return reason end
  if problem.arg ~= "none" and not family.positions then return "gives no positions" end
  if problem.batch and not family.batches then return "calls functions, which copies the arguments of each product of a batch" end
  if problem.deterministic and not family.deterministic then return "is not deterministic" end
  if family.walks == "a" and not problem.transpose then return "serves transposed products alone" end
  return nil
end

-- Whether lanes may load half of the widest vector: in products of 16-bit types, if the lanes of a group then just cover a
-- row of C. Short calls are faster with more lanes, because they wait for loads and not for bytes.
local function halves(p, vector, problem, limits)
  if problem.dense_bytes > 2 or problem.has_operands or 2 * vector ~= problem.widest_vector then return false end
  local width = p.lanes * vector
  return limits.any_width or width >= problem.n and width < 2 * problem.n
end

-- nil and the passes if a variant of a family that serves the problem is a candidate, otherwise the reason. `problem`
-- is as the family sees it.
local function variant_refusal(family, p, problem, limits)
  for _, parameter in ipairs(family.parameters) do
    local value = p[parameter[1]]
    if parameter[3] and value ~= problem.widest_vector and not (parameter[3] == "halved" and halves(p, value, problem, limits)) then
      return "loads other vectors than the widest that n and the columns of a head are multiples of"
    end
  end
  local refused = message.refusal(problem, p)
  if refused then return refused end
  local across = problem.attention == "gradient" or problem.products or problem.walk and problem.walk.sums_edges
  if across and p.lanes and p.lanes < 32 and p.lanes * p.vector < problem.head_width then
    return "covers less than a head, whose columns the gradient of a score needs"
  end
  local product = problem.products
  local longest = (problem.acc_bytes == 8 or p.vector == 8) and 4 or product and product.pair and p.vector == 4 and 8 or 16
  if product and (product.second or product.pair) and p.batch and p.batch > longest then
    return "holds two rows for each edge of a batch, or two sums and the row's own, which are more than the registers"
  end
  if family.valid then
    local ok, why, how = family.valid(p, problem, limits)
    if not ok and not (how == "slow" and limits.any_width) then return why or "is not valid" end
  end
  local passes = passes_of(family, p, problem, limits)
  for _, pass in ipairs(passes) do
    if limits.target == "cuda" and pass.threads > limits.threads_per_block then
      return ("needs %d threads a block, the device has %d"):format(pass.threads, limits.threads_per_block)
    end
    if (pass.shared_bytes or 0) > limits.shared_bytes then
      return ("needs %d bytes of shared memory, the device has %d"):format(pass.shared_bytes, limits.shared_bytes)
    end
  end
  return nil, passes
end

local function each(family, visit)
  local p, places = {}, {}
  local function descend(i)
    local parameter = family.parameters[i]
    if not parameter then return visit(p, places) end
    for place, value in ipairs(parameter[2]) do
      p[parameter[1]], places[i] = value, place - 1
      descend(i + 1)
    end
  end
  descend(1)
end

-- All valid candidates, sorted by family, parameters in their listed order: { value, passes, whole_rows, walks_a, simple }.
function variants.describe(problem, limits)
  local found = {}
  complete(problem)
  for id, name in ipairs(names) do
    local family = families[name]
    if not family_refusal(family, problem, limits) then
      local seen = seen_by(family, problem)
      each(family, function(p, places)
        local reason, passes = variant_refusal(family, p, seen, limits)
        if reason then return end
        found[#found + 1] = {
          value = string.char(id, table.unpack(places)), passes = passes, whole_rows = family.split == "none",
          walks_a = family.walks == "a", simple = family.simple,
        }
      end)
    end
  end
  return found
end

-- "" or why the variant is no candidate.
function variants.refusal(variant, problem, limits)
  local family, p = resolve(variant)
  complete(problem)
  return family_refusal(family, problem, limits) or variant_refusal(family, p, seen_by(family, problem), limits) or ""
end

-- struct wlm_args, at whose end attention, messages, batches and column-major arrays have arguments of their own.
local function arguments_of(problem)
  local args, product = plain "prelude/args.h", problem.products
  if problem.batch or problem.steps then
    return plain "prelude/batch_args.h" .. (problem.steps and plain "prelude/steps_args.h" or "") ..
      args:gsub("\n};\n", "\n  struct wlm_batch batch;\n" .. (problem.steps and "  struct wlm_steps steps;\n" or "") .. "};\n", 1)
  end
  if problem.walk then
    return plain "prelude/message_args.h" .. args:gsub("\n};\n", "\n  struct wlm_operands operands;\n};\n", 1)
  end
  if problem.attention == "none" then return args end
  return plain "prelude/attention_args.h" .. (product and plain "prelude/product_args.h" or "") ..
    args:gsub("\n};\n", "\n  struct wlm_attention attention;\n" .. (product and "  struct wlm_products products;\n" or "") .. "};\n", 1)
end

-- What makes kernels of a batch of those that follow.
local function batch_of(target) return plain "prelude/batch.h" .. plain("prelude/" .. target .. "_batch.h") end

-- A whole source. registers: of a thread, 0 = not limited; `problem` is nil for a program without an operator block;
-- hashes: it computes with random numbers; then what stands behind the prelude.
local function assemble(arguments, registers, target, problem, hashes, ...)
  return table.concat {
    arguments, registers > 0 and engine.plain(("#define WLM_REGISTERS %d\n"):format(registers), "registers of a thread") or "",
    plain("prelude/" .. target .. ".h"), problem and problem.batch and batch_of(target) or "",
    problem and operators.has_halves(problem) and plain "prelude/half.h" or "",
    hashes and plain "prelude/sampling.h" or "", ...,
  }
end

local function host_tile(problem, parameters)
  return rendered(problem.walk and "prelude/host_message.h" or problem.attention ~= "none" and "prelude/host_attention.h" or
    "prelude/host_tile.h", parameters)
end

function variants.emit(variant, problem, limits)
  local refused = variants.refusal(variant, problem, limits)
  if refused ~= "" then return refused end
  local family, p = resolve(variant)
  problem = seen_by(family, problem)
  problem.in_order = family.keeps_order and problem.sample == "none"
  problem.on_host = family.target == "host"
  problem.head_text = limits.any_width and "(int)args->head_width" or tostring(problem.head_width)
  local passes = passes_of(family, p, problem, limits)
  local parameters = { any_width = limits.any_width }
  for key, value in pairs(p) do parameters[key] = value end
  parameters.passes = passes
  parameters.problem = problem
  spell(problem, parameters)
  parameters.load_a = operators.load_a(problem)
  if problem.operation == "sddmm" then
    for name, text in pairs(operators.sddmm(problem)) do parameters[name] = text end
  end
  local registers = family.target == "cuda" and family.registers(p, problem, limits) or 0
  if problem.steps then registers = registers + 8 end -- for addresses of columns
  local hashes = problem.sample ~= "none" or problem.dropout or problem.walk and problem.walk.kept
  local source = assemble(arguments_of(problem), registers, family.target, problem, hashes, operators.block(problem, rendered),
    family.target == "host" and host_tile(problem, parameters) or "",
    engine.render(family.template, template_name(family), parameters, reader_of(family.name, variants.read)))
  return {
    source = source,
    passes = passes,
    workspace = family.workspace and family.workspace(p, problem, limits) or {},
    prepared = family.prepared and family.prepared(p, problem, limits) or {},
    registers = registers > 0 and most_registers(registers, passes) or 0,
    spilled = (family.spilled and family.spilled(p, problem, limits) or 0) + (problem.steps and 32 or 0), -- at stores
    deterministic = family.deterministic,
    uses_b = operators.uses_b(problem),
    walks_a = family.walks == "a",
    batch = problem.batch,
    rows_together = problem.steps and family.rows_together(p) or 0,
    b_steps = problem.b_steps,
    split = family.split,
  }
end

-- A program of programs/ for a CUDA device, which belongs to no family. result: the file that declares what it gives;
-- `problem` and its operator block: if it has one.
local function program(name, parameters, passes, result, problem, block)
  local arguments = plain "prelude/args.h" .. (result and plain("programs/" .. result) or "")
  local text = rendered("programs/" .. name .. ".cu.in", parameters)
  return {
    source = assemble(arguments, 40, "cuda", problem, false, block or "", text), passes = passes, workspace = {},
    prepared = {}, registers = 40, deterministic = true, split = "none",
  }
end

-- The C types of indices, and what is behind a read of one.
local function indices_of(problem)
  return {
    rowptr = operators.index(problem.rowptr_type), colind = operators.index(problem.colind_type), minus_base = problem.minus_base,
  }
end

-- Measures row statistics (runtime/stats_device.c launches its kernels).
function variants.stats(problem)
  local passes = { { kernel = "wlm_stats_rows", threads = 256 }, { kernel = "wlm_stats_sample", threads = 256 } }
  return program("stats", indices_of(problem), passes, "stats.h")
end

-- Finds the first wrong row of a matrix (runtime/validate.c launches its kernel).
function variants.validate(problem)
  return program("validate", indices_of(problem), { { kernel = "wlm_validate", threads = 256 } }, "faults.h")
end

-- Makes CSR of block rows, with values of 2, 4 and 8 bytes (runtime/bsr.c launches its kernels).
function variants.blocks(problem)
  local passes, parameters = {}, indices_of(problem)
  for i, bytes in ipairs { 2, 4, 8 } do passes[i] = { kernel = "wlm_blocks_" .. bytes, threads = 256 } end
  parameters.passes = passes
  return program("blocks", parameters, passes)
end

-- Copies arrays between columns and rows, for elements of 2, 4 and 8 bytes, those of a batch in one launch
-- (runtime/dispatch/layout.c launches its kernels).
function variants.layout(limits)
  local cuda, passes = limits.target == "cuda", {}
  for _, to in ipairs { "rows", "columns" } do
    for _, bytes in ipairs { 2, 4, 8 } do
      passes[#passes + 1] = {
        kernel = ("wlm_to_%s_%d"):format(to, bytes), units = "rows", units_per_block = cuda and 64 or 128,
        columns_per_block = cuda and 16 or 0, threads = cuda and 256 or 0, dependent = cuda,
      }
    end
  end
  local text = rendered(cuda and "programs/layout.cu.in" or "programs/layout.c.in", { passes = passes, wide = 16 })
  return {
    source = assemble(arguments_of { batch = true }, cuda and 40 or 0, limits.target, nil, false, batch_of(limits.target), text),
    passes = passes, workspace = {}, prepared = {}, registers = cuda and 40 or 0, deterministic = true, batch = true,
    split = "none",
  }
end

-- Sort: "transpose" makes A^T, and "coo" CSR from coordinates (runtime/sort_device.c
-- launches their kernels).
local function sorting(problem, name)
  local passes = {}
  for i, pass in ipairs { { "count", 512 }, { "scatter", 512 }, { "finish", 256 } } do
    passes[i] = { kernel = "wlm_" .. name .. "_" .. pass[1], units = "one", threads = pass[2] }
  end
  complete(problem)
  return program("transpose", { name = name, coo = name == "coo", problem = problem }, passes, nil, problem, operators.block(problem, rendered))
end

function variants.transpose(problem) return sorting(problem, "transpose") end
function variants.coo(problem) return sorting(problem, "coo") end

-- The program for the gradients by argmax indices. They are positions in A itself, also for a transposed problem, and the
-- operator block loads by them.
function variants.argmax_gradient(problem, limits)
  local cuda = limits.target == "cuda"
  local name = cuda and "programs/arg_backward.cu.in" or "programs/arg_backward.c.in"
  local passes, parameters, width = {}, operators.slopes(problem), 32 -- of any number of columns
  while not limits.any_width and width >= 2 * math.max(1, problem.n) do width = width // 2 end
  for i, pass in ipairs { { "clear", "cols" }, { "scatter", "rows" } } do -- of dB, and of dC
    passes[i] = {
      kernel = "wlm_arg_" .. pass[1], units = pass[2], units_per_block = 4 * (256 // width), columns_per_block = width,
      threads = cuda and 256 or 0, dependent = cuda,
    }
  end
  complete(problem)
  parameters.problem, parameters.passes, parameters.load_a = problem, passes, operators.load_a(problem)
  local registers = (problem.acc_bytes == 8 or problem.transpose) and 96 or 64
  local untransposed = setmetatable({ transpose = false }, { __index = problem })
  local source = assemble(plain "prelude/args.h", cuda and registers or 0, limits.target, problem, problem.sample ~= "none",
    operators.block(untransposed, rendered), rendered(name, parameters))
  return {
    source = source, passes = passes, workspace = {}, prepared = {}, registers = cuda and registers or 0,
    deterministic = not cuda, uses_b = parameters.reads_b, walks_a = true, split = "none",
  }
end

-- For `show --list`.
function variants.list()
  local out = {}
  for _, name in ipairs(names) do
    local family = families[name]
    local count = 0
    each(family, function() count = count + 1 end)
    out[#out + 1] = ("%s (%s; %s%ssplits a row: %s; %d variants)"):format(name, family.target,
      family.operation ~= "spmm" and family.operation .. "; " or "", (family.walks == "a" or family.shares == "only") and "transposed; " or "",
      family.split, count)
    out[#out + 1] = "    " .. family.summary
    for _, parameter in ipairs(family.parameters) do
      local texts = {}
      for i, value in ipairs(parameter[2]) do texts[i] = tostring(value) end
      out[#out + 1] = ("    %s = %s"):format(parameter[1], table.concat(texts, ", "))
    end
  end
  return table.concat(out, "\n") .. "\n"
end

return variants
