% -- Merges the sums that neighbouring lanes have of a row. part: "functions" for the top of a file, then "body" for the
% -- end of a kernel, which has args, row, begin, end, lane, inside and a lane's sums, acc0 and so on.
% local exchange = from("wlm_exchange", "__shfl_xor_sync")
% if part == "functions" then
% if problem.arg ~= "none" then
WLM_FN struct wlm_winner wlm_exchange(unsigned int mask, struct wlm_winner acc, int bit) {
  acc.value = __shfl_xor_sync(mask, acc.value, bit);
  acc.place = __shfl_xor_sync(mask, acc.place, bit);
  return acc;
}

% end
struct wlm_row_sums { @{sum} at[@{problem.n}]; };
% else
  /* Merges what @{lanes} neighbouring lanes have of a row, acc0 to acc@{problem.n - 1}, and stores it; lanes that are not inside take part
   * in the exchanges. As long as the columns can be halved, one lane of a pair goes on with the first half and the other
   * with the second, so every exchange moves half as much as the one before and the stores end up spread over the group.
   * The order is fixed: the same bits every time. */
  /* From here on a lane is in charge of the columns from `column` on; of lanes that hold the same, one stores. */
  int column = 0, stores = inside;
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
  wlm_c_t *c = (wlm_c_t *)args.c + row * args.ldc + column;
% for v = 0, count - 1 do
  wlm_store(&args, c + @{v}, column + @{v}, wlm_finish(acc@{v}, end - begin));
% end
% end
