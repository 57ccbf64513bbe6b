return {
  target = "cuda",
  version = 1,
  summary = "a group of 4 to 32 lanes a row, vector loads of B, a batch of them in flight (GraphBLAST's row split, refined)",
  split = "none",
  positions = true,
  operands = true,
  simple = true,
  parameters = {
    { "lanes", { 1, 2, 4, 8, 16, 32 } }, -- of a row; several rows share a warp
    { "vector", { 1, 2, 4, 8 }, "halved" },  -- columns a lane loads at once
    { "batch", { 4, 8, 16 } },      -- non-zeros whose loads are in flight together
  },
  valid = function(p, problem)
    local width = p.lanes * p.vector
    if p.lanes < 4 and (problem.has_operands or width < problem.n) then return false, "has fewer lanes than a row of C needs" end
    if p.lanes == 2 and width >= 2 * problem.n then return false, "covers at least twice as many columns as n", "slow" end
    if p.lanes > 4 and width >= 2 * problem.n then return false, "covers at least twice as many columns as n", "slow" end
    return true
  end,
  rows_together = function(p) return 32 // p.lanes end,
  passes = function(p)
    return {
      {
        kernel = "wlm_row_vec", units = "rows", units_per_block = 128 // p.lanes,
        columns_per_block = p.lanes * p.vector, threads = 128, dependent = true,
      },
    }
  end,
  registers = function(p, problem, limits)
    if problem.walk then return problem.walk.registers(p) end
    if problem.attention ~= "none" then -- backward another row is kept, too
      local piece = math.max(4, p.vector * problem.dense_bytes) // 4 + (problem.colind_bytes + (problem.dropout and 4 or 3) * problem.acc_bytes) // 4
      local terms = (problem.attention == "forward" and 48 or 72) + (problem.acc_bytes == 8 and 24 or 0)
      if problem.products then -- the pieces of q's row and of att, and of a gradient a second row for each edge
        terms = terms + p.vector * (problem.acc_bytes + problem.dense_bytes) // 4
        if problem.products.second then piece = piece + math.max(4, p.vector * problem.dense_bytes) // 4 end
      end
      return math.min(240, (terms + p.batch * piece + 2 * p.vector) // 8 * 8 + 8)
    end
    local plain = problem.dense_type == "f32"
    local piece = math.max(4, p.vector * problem.dense_bytes) + (problem.dense_bytes == 2 and 4 or 0) -- not aligned: a word more
    if problem.extra_registers >= 16 and not (plain and problem.colind_type == "i32") then
      local column = problem.colind_type == "i64" and 3 or 1
      return (56 + p.batch * (piece // 4 + column) + p.vector) // 8 * 8 + 8
    end
    local bytes = p.batch * piece -- in flight
    local places = (problem.arg == "i64" or problem.arg == "i32" and p.vector == 1) and 16 or 0
    local values = problem.heads == "many" and bytes < 256 and 2 * p.batch or 0 -- in flight beside little of B
    local singles = problem.dense_bytes == 2 and p.vector == 1 and 8 or 0 -- each a load and a word
    local offsets = problem.rowptr_type == "i64" and problem.extra_registers >= 16 and bytes >= 128 and 8 or 0
    local newer = limits.arch > 90 and problem.rowptr_type == "i64" and bytes < 128 and 8 or 0
    return (bytes >= (plain and 256 or 176) and 128 or bytes >= 128 and 80 or plain and 56 or 64) + places + values + singles +
      offsets + newer
  end,
  -- Eight registers more would mean fewer blocks.
  spilled = function(p, problem, limits)
    if p.batch < 16 then return 0 end
    return p.vector == 1 and 48 or limits.arch > 90 and problem.dense_type == "f64" and 88 or 0
  end,
}
