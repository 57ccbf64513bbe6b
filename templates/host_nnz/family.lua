return {
  target = "host",
  version = 5,
  summary = "the same number of non-zeros for every block over OpenMP threads, split rows by carry",
  split = "carry",
  positions = true,
  operands = true,
  parameters = {
    { "nonzeros", { 1024, 8192, 65536 } }, -- of a block
    { "tile", { 16, 32, 64, 128 } },       -- columns held in registers and cache at a time
  },
  valid = function(p, problem)
    if p.tile > 16 and p.tile >= 2 * problem.n then return false, "has a tile at least twice as wide as n" end
    if p.tile == 16 and problem.n > 16 then return false, "walks A more often than it must" end
    return true
  end,
  passes = function(p)
    return {
      { kernel = "wlm_host_nnz", units = "nnz", units_per_block = p.nonzeros },
      { kernel = "wlm_host_nnz_carry", units = "nnz", units_per_block = p.nonzeros },
    }
  end,
  workspace = function(_, problem) return { blocks_n = 2 * problem.sum_bytes } end, -- a head and a tail of accumulators for every block
}
