% -- What is loaded for edge j of a batch, whose position is `place`.
% if problem.walk then
    const struct wlm_edge a@{j} = wlm_load_edge(args, @{place}, column@{j}, &terms, aligned);
% elseif problem.attention ~= "none" then
    const struct wlm_edge a@{j} = wlm_load_edge(args, @{place}, column@{j}, terms.head);
% if problem.products and problem.products.second then
    const struct wlm_piece other@{j} = wlm_load_other(args, &terms.side, column@{j}, aligned);
% end
% end
