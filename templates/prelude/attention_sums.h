% -- Of struct wlm_sums what attention has besides the piece of C: the members where `declared`, otherwise their first values.
% local forward, per_column = problem.attention == "forward", problem.products and problem.products.pair
% local others = forward and 3 or 1
% -- up to the alignment of the struct, since compilers copy padding byte by byte
% local unused = per_column and 0 or -(vector + others) % (math.min(16, problem.sum_bytes * vector) // problem.acc_bytes)
% if declared then
  wlm_acc_t @{per_column and "more[" .. vector .. "]" or forward and "base, total, largest" or "term"};
% if unused > 0 then
  wlm_acc_t unused[@{unused}];
% end
% elseif per_column then
% for v = 0, vector - 1 do
  sums.more[@{v}] = 0;
% end
% elseif forward then
  sums.base = sums.largest = WLM_LEAST;
  sums.total = 0;
% else
  sums.term = 0;
% end
