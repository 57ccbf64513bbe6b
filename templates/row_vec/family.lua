return {
  target = "cuda",
  summary = "a group of 4 to 32 lanes a row, vector loads of B, a batch of them in flight (GraphBLAST's row split, refined)",
  split = "none",
  parameters = {
    { "lanes", { 4, 8, 16, 32 } }, -- of a row; several rows share a warp
    { "vector", { 1, 2, 4 } },     -- columns a lane loads at once
    { "columns", { 1, 2 } },       -- vectors a lane carries
    { "batch", { 4, 8 } },         -- non-zeros whose loads are in flight together
  },
  valid = function(p, problem)
    local width = p.lanes * p.vector * p.columns
    if width >= 2 * problem.n and width > 4 then return false, "covers at least twice as many columns as n" end
    if p.vector > 1 and problem.n % p.vector ~= 0 then return false, "loads vectors, and n is no multiple of them" end
    if p.columns * p.vector * p.batch > 32 then return false, "has more than 32 loaded values a lane" end
    return true
  end,
  passes = function(p)
    return {
      {
        kernel = "wlm_row_vec", units = "rows", units_per_block = 128 // p.lanes,
        columns_per_block = p.lanes * p.vector * p.columns, threads = 128,
      },
    }
  end,
  registers = function(p) return p.vector * p.columns * p.batch >= 32 and 96 or p.batch == 8 and 80 or 64 end,
}
