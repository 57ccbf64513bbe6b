return {
  target = "cuda",
  version = 1,
  summary = "a group of 4 to 32 lanes folds a row's non-zeros in parallel, each lane all of at most 8 columns",
  split = "carry",
  positions = true,
  keeps_order = false, -- a lane takes every lanes-th non-zero
  parameters = {
    { "lanes", { 4, 8, 16, 32 } }, -- of a row; several rows share a warp
    { "vector", { 1, 2, 4, 8 }, "widest" },  -- columns loaded at once
    { "batch", { 1, 2, 4 } },      -- non-zeros of a lane whose loads are in flight together
  },
  valid = function(p, problem)
    if problem.n > 8 then return false, "keeps all columns in one lane, and n is above 8" end
    return true
  end,
  rows_together = function(p) return 32 // p.lanes end,
  passes = function(p)
    return { { kernel = "wlm_row_fold", units = "rows", units_per_block = 128 // p.lanes, threads = 128, dependent = true } }
  end,
  -- Enough for f32; more where a lane holds or loads more at once (rows of B, values of A, sums), and for divisions of
  -- doubles.
  registers = function(p, problem, limits)
    local words = problem.n * (p.batch * problem.dense_bytes + problem.sum_bytes) // 4
    local usual = (p.batch == 4 and 40 or 24) - (problem.dense_type == "f64" and 16 or 0)
    local values = p.batch * (problem.n // problem.head_width - 1) * problem.acc_bytes // 4
    local wide = p.batch == 4 and problem.dense_type == "f64" and limits.arch >= 100 and 24 or 0
    return (p.batch == 4 and 80 or 64) + math.max(wide, words - usual) // 8 * 8 + (values + 7) // 8 * 8
  end,
}
