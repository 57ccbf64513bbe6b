return {
  target = "cuda",
  version = 1,
  summary = "a warp a row, row cached in shared memory, CF columns a lane (GE-SpMM, Algorithms 2 and 3)",
  split = "none",
  positions = true,
  parameters = {
    { "cf", { 1, 2, 4, 8 } },        -- coarsening factor: columns of C a lane carries
    { "rows", { 4, 8 } },  -- rows (warps) a block
  },
  valid = function(p, problem)
    if p.cf > 1 and problem.n <= 32 then
      return false, "merges warps, of which there is only one where n <= 32"
    end
    return true
  end,
  rows_together = function() return 1 end,
  passes = function(p)
    return {
      {
        kernel = "wlm_row_crc", units = "rows", units_per_block = p.rows, columns_per_block = 32 * p.cf,
        threads = 32 * p.rows,
      },
    }
  end,
  -- Enough for f32; more where a lane holds or loads more at once.
  registers = function(p, problem)
    local heads = problem.heads == "many" and p.cf == 8 and 16 or 0
    return 64 + math.max(0, p.cf * (problem.sum_bytes + problem.dense_bytes) // 4 - 16) // 8 * 8 + heads
  end,
}
