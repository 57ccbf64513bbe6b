return {
  target = "cuda",
  version = 1,
  summary = "a few consecutive rows a block, their non-zeros dealt evenly to its groups; one launch, no search",
  split = "carry",
  positions = true,
  operands = true,
  parameters = {
    { "threads", { 128, 256 } },
    { "rows", { 4, 16, 32, 64 } }, -- of a block
    { "lanes", { 4, 8, 16, 32 } }, -- that walk a share of the block's non-zeros together
    { "vector", { 1, 2, 4, 8 }, "halved" },  -- columns a lane loads at once
    { "batch", { 4, 8 } },         -- non-zeros whose loads are in flight together
  },
  valid = function(p, problem)
    local width = p.lanes * p.vector
    local sums = p.vector * problem.sum_bytes
    if problem.walk and sums >= 256 then return false, "holds the sums of two rows at once, which are more than the registers" end
    if problem.walk and sums * p.threads > 40000 then return false, "holds more sums than there is shared memory" end
    if p.lanes > 4 and width >= 2 * problem.n then return false, "covers at least twice as many columns as n", "slow" end
    if 4 * width < problem.n and p.lanes < 32 then return false, "walks A more than four times", "slow" end
    return true
  end,
  rows_together = function() return 1 end,
  passes = function(p)
    return {
      {
        kernel = "wlm_row_block", units = "rows", units_per_block = p.rows, columns_per_block = p.lanes * p.vector,
        threads = p.threads, dependent = true, tile_threads = p.threads,
      },
    }
  end,
  -- The common problems need fewer registers, so more blocks fit at once. With a transpose the positions of values are
  -- loaded as well, which are as wide as columns.
  registers = function(p, problem, limits)
    if problem.walk then -- halves are unpacked to compare them
      return problem.walk.registers(p, p.vector == 8 and problem.walk.places > 1 and 8 * problem.walk.places or 0)
    end
    local places = problem.transpose and p.batch == 8 and problem.colind_type == "i64" and problem.dense_bytes == 2 and 8 or 0
    local few = p.lanes == 8 and problem.dense_type == "f32" and problem.extra_registers == 0
    local base = (few or p.vector * problem.dense_bytes * p.batch < 128) and 64 or 80
    local own = (problem.attention == "gradient" or problem.attention == "rows") and p.batch == 8 and 40 or 0
    local old = limits.arch < 90 and p.vector == 8 and 16 or 0 -- 16-bit types
    local newer = limits.arch > 90 and problem.heads == "many" and problem.dense_bytes == 2 and 8 or 0 -- sm_100 and sm_120
    return base + own + old + newer + problem.extra_registers + places
  end,
  -- Eight registers more would mean a third fewer blocks of 256 threads.
  spilled = function(p, problem, limits)
    local fills = p.lanes == 16 and p.vector == 8 and p.batch == 8
    if fills and problem.reduce == "mean" and problem.uses_a then return 24 end
    return problem.batch and limits.arch < 90 and 16 or 0
  end,
}
