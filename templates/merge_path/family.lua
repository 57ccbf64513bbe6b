-- Small, because many small blocks fill a multiprocessor better than few large ones.
local threads = 128

return {
  target = "cuda",
  summary = "the same number of rows + non-zeros for every block, split rows by carry (Merrill and Garland's merge path)",
  split = "carry",
  parameters = {
    { "items", { 128, 256, 512, 1024, 2048 } }, -- rows + non-zeros of a block
    { "lanes", { 4, 8, 16, 32 } },    -- that walk a share of the block's non-zeros together
    { "vector", { 1, 2, 4 } },        -- columns a lane loads at once
    { "batch", { 4, 8 } },            -- non-zeros whose loads are in flight together
  },
  valid = function(p, problem)
    local width = p.lanes * p.vector
    if p.lanes > 4 and width >= 2 * problem.n then return false, "covers at least twice as many columns as n" end
    if 4 * width < problem.n and p.lanes < 32 then return false, "walks A more than four times" end
    if p.vector ~= (problem.n % 4 == 0 and 4 or problem.n % 2 == 0 and 2 or 1) then
      return false, "loads other vectors than the widest that n is a multiple of"
    end
    return true
  end,
  passes = function(p)
    return {
      {
        kernel = "wlm_merge_path", units = "rows+nnz", units_per_block = p.items,
        columns_per_block = p.lanes * p.vector, threads = threads,
      },
      {
        kernel = "wlm_merge_path_carry", units = "rows+nnz", units_per_block = p.items * threads // 32,
        columns_per_block = 32, threads = threads, dependent = true,
      },
    }
  end,
  -- for every block the row it leaves open, and a head and a tail of partial results
  workspace = function() return { blocks = 8, blocks_n = 2 * 4 } end,
  registers = function(p) return p.vector * p.batch >= 32 and 96 or 64 end,
}
