% -- The variables into which load_edge.h puts what edge j of a batch has.
% if problem.has_operands then
    struct wlm_edge a@{j};
% end
% if problem.products and problem.products.second then
    struct wlm_piece other@{j};
% end
