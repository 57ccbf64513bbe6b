/* A piece of a row: @{vector} neighbouring elements, moved at once where pointer and leading dimension are
 * aligned for it, and by element where they are not or where the row ends inside the piece. */
struct __align__(@{4 * vector}) wlm_piece { wlm_b_t at[@{vector}]; };

WLM_FN int wlm_aligned(const void *pointer, long long ld) {
  return (((unsigned long long)pointer | (unsigned long long)(ld * (long long)sizeof(wlm_b_t))) & @{4 * vector - 1}) == 0;
}

/* How many elements of a piece at `column` lie inside n; not above @{vector}, and 0 or less past the end. */
WLM_FN int wlm_left(long long n, long long column) {
  return n - column < @{vector} ? (int)(n - column) : @{vector};
}

WLM_FN struct wlm_piece wlm_load_piece(const wlm_b_t *b, int aligned, int left) {
  struct wlm_piece piece;
#if WLM_USES_B
  if (aligned && left == @{vector}) return *(const struct wlm_piece *)b;
% for v = 0, vector - 1 do
  piece.at[@{v}] = @{v} < left ? b[@{v}] : 0;
% end
#else
% for v = 0, vector - 1 do
  piece.at[@{v}] = 0;
% end
#endif
  return piece;
}
