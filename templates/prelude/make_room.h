% if problem.attention == "forward" then
% local largest = "score0"
/* For a batch of edges of one row: their scores, and the sums made ready for the largest. */
% for j = 0, batch - 1 do
    const wlm_acc_t score@{j} = wlm_score(args, @{problem.products and "wlm_product(args, &terms.side" .. sides(j) .. ")" or "terms.row_term"}, a@{j});
%   if j > 0 then largest = ("wlm_larger(%s, score%d)"):format(largest, j) end
% end
    sums = wlm_raise(sums, @{largest});
% end
