return {
  target = "cuda",
  operation = "sddmm",
  summary = "a group of lanes a row of A, which keeps its row of X in registers",
  split = "carry", -- lanes add up their parts of a product
  samples = true,
  parameters = {
    { "lanes", { 4, 8, 16, 32 } }, -- of a row; several rows share a warp
    { "vector", { 1, 2, 4, 8 }, "widest" },  -- columns a lane loads at once
    { "batch", { 4, 8 } },         -- edges whose loads are in flight together
  },
  valid = function(p, problem)
    local width = p.lanes * p.vector
    if p.lanes > 4 and width >= 2 * problem.head_width then return false, "covers at least twice as many columns as n" end
    if p.batch > p.lanes then return false, "has more edges in a batch than lanes to store them" end
    if p.lanes < 32 and problem.head_width * problem.dense_bytes > 64 * p.lanes then
      return false, "has too few lanes to keep a row of X"
    end
    return true
  end,
  passes = function(p, problem)
    return {
      {
        kernel = "wlm_sddmm_row", units = "rows", units_per_block = 128 // p.lanes, columns_per_block = problem.head_width,
        threads = 128, dependent = true,
      },
    }
  end,
  registers = function(p, problem, limits)
    if problem.message == "rdiv" then return 255 end -- a division of each element
    return (p.vector * p.batch * problem.dense_bytes >= 128 and 128 or 112) + (limits.arch >= 100 and 16 or 0)
  end,
}
