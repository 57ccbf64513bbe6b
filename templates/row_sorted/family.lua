local function prepares(name, pass)
  pass.kernel, pass.when, pass.columns_per_block = "wlm_row_sorted_" .. name, "prepare", 0
  return pass
end

return {
  target = "cuda",
  version = 1,
  summary = "row_vec with rows sorted by length in a plan, and as many groups for a row as its length needs",
  split = "carry",
  positions = true,
  parameters = {
    { "threads", { 128, 256 } },
    { "lanes", { 4, 8, 16, 32 } },           -- of a group; several groups share a warp
    { "vector", { 1, 2, 4, 8 }, "halved" },  -- columns a lane loads at once
    { "batch", { 4, 8, 16 } },               -- non-zeros whose loads are in flight together
    { "share", { 16, 32, 128, 256 } },       -- non-zeros of a group, in whole windows, unless a block is too small for the row
  },
  valid = function(p, problem)
    if (p.batch == 8) ~= (p.threads == 256) and p.batch ~= 4 then return false, "has a batch that suits blocks of another size" end
    local width = p.lanes * p.vector
    if width >= 2 * problem.n then return false, "covers at least twice as many columns as n", "slow" end
    if 4 * width < problem.n and p.lanes < 32 then return false, "walks A more than four times", "slow" end
    if p.share < p.lanes then return false, "shares less than the window that a group walks", "slow" end
    if p.lanes == 32 and 4 * 16 * p.vector >= problem.n then return false, "leaves few rows for a block", "slow" end
    return true
  end,
  rows_together = function() return 1 end,
  passes = function(p)
    local groups = p.threads // p.lanes
    return {
      prepares("clear", { units = "blocks", units_per_block = 256 // groups, threads = 256 }),
      prepares("count", { units = "rows", units_per_block = 1024, threads = 256 }),
      prepares("place", { units = "one", threads = 1024 }),
      prepares("fill", { units = "rows", units_per_block = 1024, threads = 256 }),
      {
        kernel = "wlm_row_sorted", units = "rows+nnz", nonzeros_per_unit = p.share // 2, units_per_block = groups,
        columns_per_block = p.lanes * p.vector, threads = p.threads, dependent = true,
      },
    }
  end,
  -- where rows of each length go, and an entry for each group
  prepared = function(p, problem)
    return { one = 8 * 1024, blocks = p.threads // p.lanes * (problem.rowptr_type == "i64" and 32 or 16) }
  end,
  registers = function(p, problem, limits)
    local bytes = p.batch * math.max(4, p.vector * problem.dense_bytes) -- in flight
    local values = problem.heads == "many" and p.batch == 16 and (bytes < 128 and 16 or 8) or 0 -- each is a load of its own
    -- a load for each column of each non-zero
    local single = p.vector == 1 and p.batch == 16
    local singles = single and (problem.dense_bytes == 2 and 16 or limits.arch > 90 and 8) or 0
    return (bytes >= 256 and 128 or bytes >= 128 and 80 or 64) + values + singles + problem.extra_registers
  end,
}
