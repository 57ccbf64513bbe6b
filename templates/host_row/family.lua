return {
  target = "host",
  version = 5,
  summary = "rows in blocks over OpenMP threads, vectorised over N",
  split = "none",
  positions = true,
  operands = true,
  samples = true,
  shares = true,
  simple = true,
  parameters = {
    { "rows", { 16, 128 } },         -- of a block, the unit that threads take
    { "tile", { 16, 32, 64, 128 } }, -- columns held in registers and cache at a time
  },
  valid = function(p, problem)
    if p.tile > 16 and p.tile >= 2 * problem.n then return false, "has a tile at least twice as wide as n" end
    if p.tile == 16 and problem.n > 16 then return false, "walks A more often than it must" end
    return true
  end,
  passes = function(p)
    return { { kernel = "wlm_host_row", units = "rows", units_per_block = p.rows } }
  end,
}
