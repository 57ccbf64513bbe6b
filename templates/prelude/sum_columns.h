% -- The sum over the columns of a head, whose lanes all come here together, as `product`. A score must have the same bits
% -- in each kernel that makes it, so its order depends on the width of a head alone: with the largest power of two that
% -- divides it, columns that lie so far apart are added one after the other, and then neighbours in pairs.
% -- Parameters: pieces, of a head, 0 = any number; together, the lanes that share them, side by side in a head; held, the
% -- terms of the lane's piece, for a head that the lanes have whole; head; term(v), that of column j + v, which is loaded.
% local function in_pairs(list)
%   while #list > 1 do
%     local sums = {}
%     for i = 1, #list, 2 do sums[#sums + 1] = ("wlm_plus(%s, %s)"):format(list[i], list[i + 1]) end
%     list = sums
%   end
%   return list[1]
% end
% -- Of pairs of groups, those whose first one waits for the second.
% local groups = pieces > 0 and (pieces & -pieces) // together or 1
% local function carried(level)
%   if 1 << level >= groups then return "" end
%   return ("if (group & %d) { product = wlm_plus(waiting%d, product); %s } else waiting%d = product;"):format(1 << level, level, carried(level + 1), level)
% end
% if pieces == together then
  wlm_acc_t product = @{in_pairs(held)};
% elseif pieces == 0 then
  wlm_acc_t product = 0;
#pragma unroll 1
  for (long long j = @{head} * @{problem.head_text}; j < (@{head} + 1) * @{problem.head_text}; j += @{vector}) {
% for v = 0, vector - 1 do
    product = wlm_plus(product, @{term(v)});
% end
  }
% else
%   local apart = pieces & -pieces
%   local parts, waiting = {}, ""
%   for v = 0, vector - 1 do parts[v + 1] = "part" .. v end
%   for level = 0, math.tointeger(math.log(groups, 2)) - 1 do waiting = waiting .. ", waiting" .. level .. " = 0" end
  /* A head is wider than the lanes that can add up: each takes several pieces of it. */
  const long long first = @{head} * @{problem.head_text} + threadIdx.x % @{together}u * @{groups * vector};
  wlm_acc_t product = 0@{waiting};
#pragma unroll 1
  for (int group = 0; group < @{groups}; group++) {
    wlm_acc_t @{table.concat(parts, " = 0, ")} = 0;
#pragma unroll 1
    for (long long j = first + group * @{vector}; j < (@{head} + 1) * @{problem.head_text}; j += @{apart * vector}) {
% for v = 0, vector - 1 do
      part@{v} = wlm_plus(part@{v}, @{term(v)});
% end
    }
    product = @{in_pairs(parts)};
    @{carried(0)}
  }
% end
% if together > 1 then
  const unsigned int lanes = @{together == 32 and "0xffffffffu" or (1 << together) - 1 .. "u << (threadIdx.x % 32u / " .. together .. "u * " .. together .. "u)"};
% local step = 1
% while step < together do
  product = wlm_plus(product, __shfl_xor_sync(lanes, product, @{step}, @{together}));
% step = step * 2
% end
% end
