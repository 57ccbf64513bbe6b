% -- The sum of term(j) for the columns j of a head, as `product`: in 16 parts, as vector registers have them, and these in
% -- pairs. Each kernel adds in this order, so that scores have the same bits in all.
% local lanes, step = math.min(16, width), 8
% local whole = width // 16 * 16
% while step > 1 and step >= lanes do step = step // 2 end
  wlm_acc_t part[@{lanes}], product;
  for (int j = 0; j < @{lanes}; j++) part[j] = 0;
% if whole > 0 then
  for (int i = 0; i < @{whole}; i += 16)
#pragma omp simd
    for (int j = 0; j < 16; j++) part[j] = wlm_plus(part[j], @{term("(i + j)")});
% end
% if width > whole then
#pragma omp simd
  for (int j = 0; j < @{width - whole}; j++) part[j] = wlm_plus(part[j], @{term("(" .. whole .. " + j)")});
% end
% if lanes > 1 then
  for (int step = @{step}; step > 0; step /= 2)
    for (int j = 0; j < step; j++)
      @{lanes & (lanes - 1) == 0 and "" or ("if (j + step < %d) "):format(lanes)}part[j] = wlm_plus(part[j], part[j + step]);
% end
  product = part[0];
