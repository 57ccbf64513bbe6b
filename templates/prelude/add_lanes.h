% -- Adds up `product` of the lanes that have the columns of a head.
% if together > 1 then
  const unsigned int lanes = @{together == 32 and "0xffffffffu" or (1 << together) - 1 .. "u << (threadIdx.x % 32u / " .. together .. "u * " .. together .. "u)"};
% local step = together // 2
% while step > 0 do
  product += __shfl_xor_sync(lanes, product, @{step}, @{together});
% step = step // 2
% end
% end
