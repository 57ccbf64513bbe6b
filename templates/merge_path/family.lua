-- Threads of a block: few, because many small blocks fill a multiprocessor better than few large ones.
local threads = 128

-- The common problems need fewer registers, so more blocks fit at once; so does a long batch in a prepared plan, which
-- keeps what the kernel would have to hold otherwise. With 8 lanes fewer blocks were measured to be faster.
local function needs_few(p, problem)
  return p.lanes == 16 and p.prepared == 1 and problem.dense_type == "f32" and problem.extra_registers == 0
end
local function registers(p, problem, limits)
  if problem.walk then return problem.walk.registers(p) end
  local base = (needs_few(p, problem) or p.vector * problem.dense_bytes * p.batch < 128) and 64 or 80
  local widened = problem.dense_bytes == 2 and p.lanes == 32 and p.batch == 8 and 8 or 0
  local own = (problem.attention == "gradient" or problem.attention == "rows") and p.batch == 8 and 40 or 0
  local others = limits.arch == 90 and 0 or limits.arch > 90 and problem.attention ~= "none" and 24 or 16 -- not sm_90
  local fills = p.lanes == 16 and p.vector == 8 and p.batch == 8
  local mean = fills and problem.reduce == "mean" and problem.uses_a and 8 or 0
  -- nothing of the non-zeros lies in other lanes
  local holds_more = p.batch == 8 or p.vector == 8 and problem.reduce == "prod"
  local alone = p.lanes < 4 and p.vector >= 4 and holds_more and 8 or 0
  local of_places = p.vector == 4 and 8 or p.vector == 8 and (problem.arg == "i64" and 56 or 40) or 0
  local places = p.lanes < 4 and problem.arg ~= "none" and of_places or 0
  return base + widened + own + mean + alone + places + problem.extra_registers + others
end

return {
  target = "cuda",
  version = 1,
  summary = "the same number of rows + non-zeros for every block, split rows by carry (Merrill and Garland's merge path)",
  split = "carry",
  positions = true,
  operands = true,
  parameters = {
    { "items", { 128, 256, 512, 1024, 2048 } }, -- rows + non-zeros of a block, at most
    { "lanes", { 1, 2, 4, 8, 16, 32 } },    -- that walk a share of the block's non-zeros together
    { "vector", { 1, 2, 4, 8 }, "widest" },     -- columns a lane loads at once
    { "batch", { 4, 8 } },            -- non-zeros whose loads are in flight together
    { "prepared", { 0, 1 } },         -- whether a plan keeps where the blocks begin
  },
  valid = function(p, problem)
    local width = p.lanes * p.vector
    if problem.walk and p.vector * problem.sum_bytes > 256 then return false, "holds more sums than there is shared memory" end
    if p.lanes < 4 and (problem.has_operands or width < problem.n) then return false, "has fewer lanes than a row of C needs" end
    if p.lanes == 2 and width >= 2 * problem.n then return false, "covers at least twice as many columns as n", "slow" end
    if p.lanes > 4 and width >= 2 * problem.n then return false, "covers at least twice as many columns as n", "slow" end
    if 4 * width < problem.n and p.lanes < 32 then return false, "walks A more than four times", "slow" end
    return true
  end,
  rows_together = function() return 1 end,
  passes = function(p, problem, limits)
    local tile_bytes = 2 * p.items + problem.sum_bytes * threads * p.vector + 1100
    local list = {}
    if p.prepared == 1 then
      list[1] = {
        kernel = "wlm_merge_path_prepare", when = "prepare", units = "blocks", units_per_block = threads // 32 - 1,
        columns_per_block = 0, threads = threads,
      }
    end
    list[#list + 1] = {
      kernel = "wlm_merge_path", units = "rows+nnz", units_per_block = p.items,
      resident = math.min(65536 // (threads * registers(p, problem, limits)), 232448 // tile_bytes),
      columns_per_block = p.lanes * p.vector, threads = threads, dependent = true,
    }
    list[#list + 1] = {
      kernel = "wlm_merge_path_carry", units = "blocks", units_per_block = threads // 32,
      columns_per_block = 32, threads = threads, dependent = true, tile_threads = threads,
    }
    return list
  end,
  -- for every block what is known of the row it leaves open, and a head and a tail of partial results
  workspace = function(_, problem) return { blocks = 32, blocks_n = 2 * problem.sum_bytes } end,
  -- the row and the non-zero at which every block begins, and the end
  prepared = function(p) return p.prepared == 1 and { one = 16, blocks = 16 } or {} end,
  registers = registers,
  -- Measured with these spills, a long batch was still faster than with more registers and fewer blocks. The messages
  -- sub and rsub, and several heads, were not measured.
  spilled = function(p, problem)
    if p.batch ~= 8 then return 0 end
    return needs_few(p, problem) and 96 or problem.heads == "many" and 32 or 0
  end,
}
