return {
  target = "cuda",
  version = 1,
  summary = "one thread an element of C, walking its row (GE-SpMM, Algorithm 1)",
  split = "none",
  positions = true,
  simple = true,
  parameters = {
    { "columns", { 16, 32 } },      -- of C that a block covers
    { "rows", { 4, 8 } },            -- of C that a block covers
    { "axis", { "units", "columns" } }, -- whether the next block is further down or further right
  },
  rows_together = function(p) return 32 // p.columns end,
  passes = function(p)
    return {
      {
        kernel = "wlm_row_naive", units = "rows", units_per_block = p.rows, columns_per_block = p.columns,
        axis = p.axis, threads = p.rows * p.columns,
      },
    }
  end,
  registers = function(_, problem) return problem.heads == "many" and 80 or 64 end,
}
