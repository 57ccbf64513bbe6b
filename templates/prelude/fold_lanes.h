% local exchange = from("wlm_exchange", "__shfl_xor_sync")
% if problem.arg ~= "none" then
WLM_FN struct wlm_winner wlm_exchange(unsigned int mask, struct wlm_winner acc, int bit) {
  acc.value = __shfl_xor_sync(mask, acc.value, bit);
  acc.place = __shfl_xor_sync(mask, acc.place, bit);
  return acc;
}

% end
/* What a lane has of a row. */
struct wlm_row_sums { @{sum} at[@{problem.n}]; };

/* Merges what @{lanes} neighbouring lanes have of a row of C, and stores it; lanes that are not inside take part in the
 * exchanges. As long as the columns can be halved, one lane of a pair goes on with the first half and the other with the
 * second, so every exchange moves half as much as the one before and the stores end up spread over the group. The order is
 * fixed: the same bits every time. */
WLM_FN void wlm_merge_lanes(const struct wlm_args *args, long long row, long long degree, struct wlm_row_sums own, int inside) {
  const unsigned int lane = threadIdx.x % @{lanes}u;
  /* From here on a lane is in charge of the columns from `column` on; of lanes that hold the same, one stores. */
  int column = 0, stores = inside;
  (void)lane;
% for v = 0, problem.n - 1 do
  @{sum} acc@{v} = own.at[@{v}];
% end
% local count, bit = problem.n, 1
% while bit < lanes do
% if count % 2 == 0 then
% count = count // 2
  {
    const int second = (lane & @{bit}u) != 0;
    if (second) column += @{count};
% for v = 0, count - 1 do
    const @{sum} kept@{v} = second ? acc@{v + count} : acc@{v}, given@{v} = second ? acc@{v} : acc@{v + count};
    acc@{v} = wlm_combine(kept@{v}, @{exchange}(0xffffffffu, given@{v}, @{bit}));
% end
  }
% else
% for v = 0, count - 1 do
  acc@{v} = wlm_combine(acc@{v}, @{exchange}(0xffffffffu, acc@{v}, @{bit}));
% end
  if (lane & @{bit}u) stores = 0;
% end
% bit = 2 * bit
% end
  if (!stores) return;
  wlm_c_t *c = (wlm_c_t *)args->c + row * args->ldc + @{in_c "column"};
% for v = 0, count - 1 do
  wlm_store(args, c + @{in_c(v)}, column + @{v}, wlm_finish(acc@{v}, degree));
% end
}
