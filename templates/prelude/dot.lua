-- A family of SDDMM whose kernels share prelude/dot.h: a group of lanes keeps a row of X, and edges come in batches.
return function(kernel, units)
  return {
    target = "cuda",
    operation = "sddmm",
    split = "carry", -- lanes add up their parts of a product
    parameters = {
      { "lanes", { 4, 8, 16, 32 } },          -- of a group
      { "vector", { 1, 2, 4, 8 }, "widest" }, -- columns a lane loads at once
      { "batch", { 4, 8 } },                  -- edges whose loads are in flight together
    },
    valid = function(p, problem)
      local width = p.lanes * p.vector
      if p.batch > p.lanes then return false, "has more edges in a batch than lanes to store them" end
      if p.lanes < 32 and problem.head_width * problem.dense_bytes > 64 * p.lanes then
        return false, "has too few lanes to keep a row of X", "slow"
      end
      if p.lanes > 4 and width >= 2 * problem.head_width then return false, "covers at least twice as many columns as n", "slow" end
      return true
    end,
    passes = function(p, problem)
      return { {
        kernel = kernel, units = units, units_per_block = 128 // p.lanes * (p.share or 1),
        columns_per_block = problem.head_width, threads = 128, dependent = true,
      } }
    end,
  }
end
