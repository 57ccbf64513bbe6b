local threads = 128

-- The pass that clears C, with `step` elements of a row per thread. `wide` threads share a row, and each such group of
-- threads clears four rows.
local function over_c(kernel, n, step)
  local wide = 32
  while wide > 1 and wide * step >= 2 * n do wide = wide // 2 end
  return {
    kernel = kernel, units = "cols", units_per_block = 4 * 256 // wide, columns_per_block = wide * step, threads = 256,
    dependent = true, constants = { step = step, wide = wide },
  }
end

return {
  target = "cuda",
  version = 1,
  summary = "A^T B straight from A: every non-zero adds its term to a row of C atomically (vector red from sm_90 on)",
  split = "atomic",
  keeps_order = false,
  deterministic = false,
  walks = "a",
  samples = true,
  parameters = {
    { "lanes", { 4, 8, 16, 32 } },          -- of a group
    { "vector", { 1, 2, 4, 8 }, "widest" }, -- columns a lane loads at once
    { "share", { 8, 32, 128 } },            -- non-zeros of a group
  },
  valid = function(p, problem)
    local width = p.lanes * p.vector
    if problem.sample ~= "none" and p.share ~= 32 then return false, "deals out non-zeros, and of a sampled matrix rows are" end
    if p.lanes > 4 and width >= 2 * problem.n then return false, "covers at least twice as many columns as n", "slow" end
    if 2 * width < problem.n and p.lanes < 32 then return false, "walks A more than twice", "slow" end
    return true
  end,
  passes = function(p, problem)
    local in_place = problem.dense_bytes == problem.acc_bytes -- C holds accumulators
    local sampled = problem.sample ~= "none" -- then a group takes a row, which is no longer than the sample
    local list = {
      over_c("wlm_scatter_clear", problem.n, math.min(p.vector, 16 // problem.acc_bytes)),
      {
        kernel = "wlm_scatter", units = sampled and "rows" or "nnz",
        units_per_block = threads // p.lanes * (sampled and 1 or p.share),
        columns_per_block = p.lanes * p.vector, threads = threads, dependent = true,
      },
    }
    if not in_place or problem.activation then
      list[3] = over_c("wlm_scatter_finish", problem.n, in_place and list[1].constants.step or p.vector)
    end
    return list
  end,
  workspace = function(_, problem)
    return problem.dense_bytes == problem.acc_bytes and {} or { cols_n = problem.acc_bytes }
  end,
  -- Before sm_90 a vector is added element by element, which needs more addresses.
  registers = function(_, problem, limits) return (limits.arch < 90 and 72 or 64) + problem.extra_registers end,
}
