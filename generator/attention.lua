-- Attention: what its kernels need of a problem, as data. prelude/attention_block.h has their operator block, and
-- prelude/attention.h or host_attention.h what families call.
--
-- A score is one number for each edge and head, a row's weights are its softmax, and C is the sum of the rows of B with
-- these weights. The forward pass folds edges online (Milakov and Gimelshein 2018): the state has a score of the row,
-- its base, the sum of exp(score - base) and the sum of rows of B with these factors. When a score comes that is much
-- larger than the base, it becomes the base and both sums are scaled; a little larger does no harm, and scaling takes
-- as long as the edge itself. Two states combine the same way, so families may split a row. The state also has the
-- largest score, to which the stored sum is relative, so that what is stored does not depend on the order of edges.
--
-- The gradient (transpose) walks A^T and makes the weights again from the largest score and the sum that the forward pass
-- stored (FlashAttention, Dao et al. 2022, stores the log of the sum, which loses the weights of large scores). Scores
-- have the same bits in each pass: terms are added in one order, and the columns of a head as sum_columns.h says. With
-- weight w of edge (i, k) and x = dC:
--   dB[k]  = sum w x[i]
--   dz     = w (<x[i], B[k]> - delta[i]) leaky_relu'(z)      the gradient of the edge's term
--   dright = sum dz
--
-- A score is a function of terms of the row, the column and the edge (gat, edge), or a sum over the columns of a head
-- (gatv2, dot; the table `products`), which the lanes of the head add up. Its gradient by q is a sum over the edges of a
-- row, so another pass (rows) walks A and makes weights and dz again; nothing of size edges x heads lies between the two.

local attention = {}

-- Scores that are sums over columns: a column of q's row and one of the other factor, which is of k (`keys`) or of B.
local products = { gatv2 = {}, dot = { keys = true } }

-- nil, or which rows a score is made of: `mine`, of the row that a kernel walks, and `other`, of the other side of the
-- edge, each by its name in the arguments. `second` is set where `other` is not the row that the kernel multiplies by the
-- weight, and `pair` where a row has two results of n columns: struct wlm_mix has a second sum, `more`.
function attention.products(problem)
  local product, pass = products[problem.score], attention.pass(problem)
  if not product or pass == "none" then return nil end
  local gradient, key = problem.transpose, product.keys and "k"
  return {
    keys = product.keys, second = gradient or product.keys, pair = pass == "rows" or gradient and product.keys,
    mine = gradient and (key or "x") or "q", other = gradient and "q" or key or "b",
  }
end

-- What templates ask: "none", "forward", "gradient", or "rows" for what a gradient sums over rows of A. The last two
-- make the weights again.
function attention.pass(problem)
  if problem.operation == "attention_rows" then return "rows" end
  if problem.operation ~= "attention" then return "none" end
  return problem.transpose and "gradient" or "forward"
end

-- Bytes of struct wlm_mix.
function attention.sum_bytes(problem) return problem.acc_bytes * (attention.pass(problem) == "forward" and 4 or 2) end

-- The base of a row whose scores all are -inf so far. It is finite, so no exponent is inf - inf.
function attention.least(problem) return problem.acc_bytes == 8 and "-1.7976931348623157e308" or "-3.402823466e38f" end

-- Completes what templates spell differently (variants.lua describes these names).
function attention.spell(problem, parameters)
  if problem.attention == "none" then return end
  parameters.merged, parameters.combine, parameters.folded = parameters.only, "wlm_combine_sums", "struct wlm_mix"
  parameters.whole = function() return "" end
  local product = problem.products
  local sides = product and (product.second and ", other%d, column%d" or ", piece%d, column%d") or ""
  parameters.sides = function(j) return sides:format(j, j) end
  if problem.attention == "forward" then
    parameters.fold_next = function(j) return ("wlm_add(sums, score%d, a%d, piece%d)"):format(j, j, j) end
  end
end

return attention
