return {
  target = "host",
  version = 1,
  operation = "sddmm",
  summary = "the same number of edges for every block over OpenMP threads, each a vectorised dot product",
  split = "carry", -- lanes of a vector add up their parts of a product
  samples = true,
  simple = true,
  parameters = {
    { "nonzeros", { 1024, 8192 } }, -- of a block
    { "ahead", { 16, 4 } },         -- edges ahead whose row of B is asked for; 16 where none was measured
  },
  passes = function(p)
    return { { kernel = "wlm_sddmm_host", units = "nnz", units_per_block = p.nonzeros } }
  end,
}
