return {
  target = "cuda",
  version = 1,
  summary = "a block loads its rows' non-zeros side by side and keeps the terms in shared memory, where lanes fold rows (CSR-stream)",
  split = "carry",
  positions = true,
  keeps_order = false, -- a lane takes every lanes-th non-zero
  parameters = {
    { "threads", { 128, 256 } },
    { "lanes", { 1, 2, 4, 8, 16 } }, -- that fold a row
    { "vector", { 1, 2, 4, 8 }, "widest" }, -- columns loaded at once
    { "batch", { 4, 8 } },           -- non-zeros of a thread whose loads are in flight together
  },
  valid = function(p, problem)
    if problem.n > 8 then return false, "keeps all columns in one lane, and n is above 8" end
    if p.threads * p.batch * problem.n * problem.sum_bytes > 32768 then return false, "keeps more terms than there is shared memory" end
    return true
  end,
  rows_together = function(p) return 32 // p.lanes end,
  passes = function(p)
    return {
      { kernel = "wlm_row_stage", units = "rows", units_per_block = p.threads // p.lanes, threads = p.threads, dependent = true },
    }
  end,
  -- As few as do not spill, because the more blocks there are at once, the more of a block's waiting is hidden.
  registers = function(p, problem)
    local words = problem.n * (p.batch * problem.dense_bytes + 2 * problem.sum_bytes) // 4
    local values = p.batch * (problem.n // problem.head_width - 1) * problem.acc_bytes // 4
    local places = problem.transpose and p.batch == 8 and problem.colind_type == "i64" and problem.dense_bytes == 2 and 8 or 0
    return (p.batch == 8 and 48 or 40) + math.max(0, words - 10) // 8 * 8 + (values + 7) // 8 * 8 + places + problem.extra_registers
  end,
}
