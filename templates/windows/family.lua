local warps = 4 -- of a block

local function splits(p) return p.chunk > 0 end
local function prepares(name, pass)
  pass.kernel, pass.when, pass.columns_per_block = "wlm_windows_" .. name, "prepare", 0
  return pass
end

return {
  target = "cuda",
  version = 1,
  summary = "tensor cores on windows of 8 rows, whose distinct columns form dense tiles (after FlashSparse)",
  split = "carry",
  batches = false,
  parameters = {
    { "grouped", { 0, 1 } },          -- whether windows are of rows with common columns, or of consecutive ones
    { "chunk", { 0, 256, 512 } },     -- distinct columns into which a window is cut, at least; 0: not cut
    { "share", { 1, 2, 4 } },         -- warps that share the tiles of a window
    { "vector", { 1, 2, 4, 8 } },     -- columns that a lane loads at once
  },
  valid = function(p, problem, limits)
    if problem.dense_bytes ~= 2 then return false, "is for 16-bit types" end
    if limits.arch < 80 then return false, "needs tensor cores of sm_80" end
    if problem.custom or problem.reduce ~= "sum" and problem.reduce ~= "mean" then return false, "adds up only" end
    if problem.message ~= "mul" and problem.message ~= "copy_b" then return false, "multiplies only" end
    if problem.uses_a and problem.value_type ~= problem.dense_type then return false, "needs values of the type of B" end
    if problem.heads == "many" then return false, "needs one value for each edge" end
    local width, widest = 8 * p.vector, problem.widest_vector
    if p.vector > widest then return false, "loads longer vectors than n is a multiple of" end
    if p.vector > 1 and width >= 2 * problem.n then return false, "covers at least twice as many columns as n" end
    if p.vector < widest and width < problem.n then return false, "loads shorter vectors than it could" end
    return true
  end,
  passes = function(p)
    local list, width = {}, 8 * p.vector
    if p.grouped == 1 then
      list[1] = prepares("keys", { units = "rows", units_per_block = 8, threads = 256 })
      list[2] = prepares("sort", { units = "one", units_per_block = 1, threads = 1024 })
      list[3] = prepares("group", { units = "rows", units_per_block = 1024, threads = 1024 })
    end
    list[#list + 1] = prepares("tiles", { units = "rows", units_per_block = 8, threads = 256 })
    if splits(p) then
      list[#list + 1] = {
        kernel = "wlm_windows_chunks", units = "nnz", units_per_block = p.chunk, columns_per_block = width,
        threads = 32 * warps, dependent = true,
      }
    end
    list[#list + 1] = {
      kernel = "wlm_windows", units = "rows", units_per_block = 8 * warps // p.share, columns_per_block = width,
      threads = 32 * warps, dependent = true,
    }
    return list
  end,
  -- the sums of each chunk of a window that is cut
  workspace = function(p) return splits(p) and { blocks_n = 4 * 8 } or {} end,
  -- where the tiles of each window and of each chunk are; the order of rows and the edges before each window; the
  -- tiles; for each edge how many distinct columns its row adds
  prepared = function(p, problem)
    local tile = 16 * problem.colind_bytes + 8 * 8
    return {
      one = 16 + 32 * p.grouped + tile, rows = 2 + 9 * p.grouped + math.max(tile // 8, 16 * p.grouped),
      nnz = tile // 16 + (problem.rowptr_type == "i64" and 8 or 4), blocks = splits(p) and 16 or 0,
    }
  end,
  registers = function(p, problem, limits)
    if p.vector < 8 then return problem.colind_type == "i64" and limits.arch > 90 and 88 or 80 end
    return problem.colind_type == "i64" and 112 or 96
  end,
  -- Above sm_90 the sort spills, which runs once a plan, in one block. Vectors of eight spill on some devices where
  -- eight registers more would mean fewer blocks.
  spilled = function(p, problem, limits)
    if limits.arch > 90 then return p.vector == 8 and 24 or 16 * p.grouped end
    return limits.arch < 90 and p.vector == 8 and problem.colind_type == "i32" and 8 or 0
  end,
}
