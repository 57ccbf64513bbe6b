% -- What is loaded for edge j of a batch, whose position is `place`, into the variables of hold_edge.h.
% if problem.walk then
    a@{j} = wlm_load_edge(args, @{place}, column@{j}, &terms, @{aligned});
% elseif problem.attention ~= "none" then
    a@{j} = wlm_load_edge(args, @{place}, column@{j}, terms.head);
% if problem.products and problem.products.second then
    other@{j} = wlm_load_other(args, &terms.side, column@{j}, @{aligned});
% end
% end
