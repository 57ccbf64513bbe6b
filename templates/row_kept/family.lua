return {
  target = "cuda",
  version = 1,
  summary = "A^T B of a sampled A: a group of lanes a row of A^T looks up which edges the rows of A kept, and folds those",
  split = "none",
  positions = true,
  shares = "only",
  simple = true,
  parameters = {
    { "lanes", { 4, 8, 16, 32 } }, -- of a row; several rows share a warp
    { "vector", { 1, 2, 4, 8 }, "widest" }, -- columns a lane loads at once
    { "batch", { 4, 8 } },         -- kept edges whose loads are in flight together
  },
  valid = function(p, problem)
    if p.batch > p.lanes then return false, "has more edges in a batch than the lanes look up at once" end
    if p.lanes > 4 and p.lanes * p.vector >= 2 * problem.n then return false, "covers at least twice as many columns as n" end
    return true
  end,
  rows_together = function(p) return 32 // p.lanes end,
  passes = function(p)
    return {
      {
        kernel = "wlm_row_kept", units = "rows", units_per_block = 128 // p.lanes,
        columns_per_block = p.lanes * p.vector, threads = 128, dependent = true,
      },
    }
  end,
  registers = function(p, problem) return 80 + problem.extra_registers + (p.vector * p.batch * problem.dense_bytes >= 128 and 32 or 0) end,
}
