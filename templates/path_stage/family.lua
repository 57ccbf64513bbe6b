local function registers(p, problem, limits)
  local words = problem.n * (p.batch * problem.dense_bytes + 2 * problem.sum_bytes) // 4
  local values = p.batch * (problem.n // problem.head_width - 1) * problem.acc_bytes // 4
  local newer = limits.arch > 90 -- sm_100 and sm_120
  -- on sm_90 only rsub needs them, in 16-bit types
  local more = p.batch == 8 and (newer or problem.message == "rsub" and problem.dense_bytes == 2) and 8 or 0
  return 40 + math.max(0, words - 10) // 8 * 8 + (values + 7) // 8 * 8 + more + problem.extra_registers
end

return {
  target = "cuda",
  version = 1,
  summary = "row_stage with the same number of rows + non-zeros for every block, whose rows are searched or kept in a plan",
  split = "carry",
  positions = true,
  keeps_order = false, -- the lanes of a warp share a long row
  parameters = {
    { "threads", { 128, 256 } },
    { "vector", { 1, 2, 4, 8 }, "widest" }, -- columns loaded at once
    { "batch", { 4, 8 } },           -- non-zeros of a thread whose loads are in flight together
    { "prepared", { 0, 1 } },        -- whether a plan keeps where the blocks begin
  },
  valid = function(p, problem)
    if problem.n > 8 then return false, "keeps all columns in one lane, and n is above 8" end
    if p.threads * p.batch * problem.n * problem.sum_bytes > 32768 then return false, "keeps more terms than there is shared memory" end
    return true
  end,
  rows_together = function() return 32 end,
  passes = function(p, problem, limits)
    local items = p.threads * p.batch -- as many as are staged at once
    local list = {}
    if p.prepared == 1 then
      list[1] = {
        kernel = "wlm_path_stage_prepare", when = "prepare", units = "blocks", units_per_block = p.threads // 32 - 1,
        columns_per_block = 0, threads = p.threads,
      }
    end
    list[#list + 1] = {
      kernel = "wlm_path_stage", units = "rows+nnz", units_per_block = items, threads = p.threads, dependent = true,
      resident = math.min(65536 // (p.threads * registers(p, problem, limits)), 232448 // (items * problem.n * problem.sum_bytes + 1100)),
    }
    return list
  end,
  -- the row at which every block begins, and the end
  prepared = function(p) return p.prepared == 1 and { one = 8, blocks = 8 } or {} end,
  registers = registers,
  -- A division needs many registers of its own. With a transpose the positions of values, which are as wide as columns,
  -- are held beside a batch of 16-bit values. Below sm_90 vectors of four spill, where eight registers more would mean
  -- fewer blocks.
  spilled = function(p, problem, limits)
    if limits.arch < 90 and p.vector == 4 and p.prepared == 0 then return p.batch == 8 and 56 or 32 end
    local divides = problem.message == "div" or problem.message == "rdiv"
    local holds = problem.transpose and p.batch == 8 and problem.colind_type == "i64" and problem.dense_bytes == 2
    return divides and holds and 32 or 0
  end,
}
