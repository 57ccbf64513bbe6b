-- ES-SpMM uses 32 to 128 threads per row and 4 to 16 rows per block, at most 512 threads (section IV-B).
return {
  target = "cuda",
  version = 1,
  summary = "samples at most S edges of a row into shared memory, then multiplies them (ES-SpMM, Algorithm 1)",
  split = "none",
  positions = true,
  samples = "only",
  operands = true,
  simple = true,
  parameters = {
    { "threads", { 32, 64, 128 } }, -- of a row
    { "rows", { 2, 4, 8, 16 } },    -- of a block
    { "vector", { 1, 2, 4, 8 } },   -- columns a thread loads at once
    { "batch", { 4, 8 } },          -- edges whose loads are in flight together
  },
  valid = function(p, problem)
    if p.threads * p.rows > 512 then return false, "has more than 512 threads a block" end
    local bytes = p.vector * problem.dense_bytes
    if p.vector > 1 and bytes ~= 16 and (p.vector ~= 4 or bytes > 16) then return false, "loads vectors of neither 4 columns nor 16 bytes" end
    if p.vector > 1 and problem.head_width % p.vector ~= 0 then
      return false, "loads vectors, and n or the columns of a head are no multiple of them"
    end
    if p.vector > 1 and p.threads * p.vector >= 2 * problem.n then
      return false, "covers at least twice as many columns as n"
    end
    return true
  end,
  rows_together = function(p) return math.max(1, 32 // p.threads) end,
  passes = function(p, problem)
    local value = problem.heads == "one" and problem.acc_bytes or problem.rowptr_type == "i64" and 8 or 4
    if problem.has_operands then value = problem.rowptr_type == "i64" and 8 or 4 end -- where its operands are
    local edge = problem.colind_bytes + ((problem.uses_a or problem.has_operands) and value or 0) +
      (problem.has_operands and 0 or problem.arg_bytes)
    return {
      {
        kernel = "wlm_row_sample", units = "rows", units_per_block = p.rows, threads = p.threads * p.rows,
        shared_bytes = p.rows * problem.sample_width * edge, dependent = true,
      },
    }
  end,
  registers = function(p, problem, limits)
    if problem.walk then return problem.walk.registers(p) end
    local base = p.vector * problem.dense_bytes * p.batch >= 128 and 96 or 80
    local singles = p.vector == 1 and (problem.colind_type == "i64" and 16 or 8) or 0
    return base + singles + (problem.dense_type == "f64" and 24 or 0) + (limits.arch >= 100 and 16 or 0)
  end,
  -- On sm_100 the compiler takes 32 to 40 of these registers for some kernels in f64, and spills a few.
  spilled = function(_, problem, limits) return problem.dense_type == "f64" and limits.arch >= 100 and 40 or 0 end,
}
