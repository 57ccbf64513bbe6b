/* Multiplies tiles whose rows of B come through shared memory, @{stages} tiles in turn for each warp: while one is
 * multiplied, the next ones are copied. Piece c of row 4 t + j is at c ^ 2 t, so lanes read different banks. In the end
 * the memory of a warp has its sums. */
struct wlm_stage { struct wlm_piece at[16][8]; };
union wlm_memory { struct wlm_stage stages[@{stages}]; float sums[@{sums}]; };

/* Copies a piece of 16 bytes to shared memory, or zeros where it is not inside B. It is there after wlm_wait_for_copies
 * and __syncwarp. */
WLM_FN void wlm_copy_piece(struct wlm_piece *to, const wlm_b_t *from, int inside, int aligned) {
#ifdef __CUDA_ARCH__
  if (aligned) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned int)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(inside ? 16 : 0) : "memory");
    return;
  }
#endif
  struct wlm_piece piece = {{0}};
  if (inside) piece = wlm_load_piece(from, aligned);
  *to = piece;
}

/* Ends a group of copies, of which the last @{stages - 2} may be under way after the wait. */
WLM_FN void wlm_end_copies(void) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

WLM_FN void wlm_wait_for_copies(void) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group @{stages - 2};" ::: "memory");
#endif
}

/* Copies 4 pieces: eight lanes have a row, so each of its lines is asked for once. */
WLM_FN void wlm_fetch(const struct wlm_args *args, const struct wlm_place *place, const struct wlm_columns *columns,
                      const int aligned, struct wlm_stage *stage) {
  const int lane = (int)(threadIdx.x % 32u), t = lane / 8, c = lane % 8;
  const int inside = place->column + 8 * c < args->n;
  const wlm_b_t *b = (const wlm_b_t *)args->b + place->column + (inside ? 8 * c : 0);
% for j = 0, 3 do
  wlm_copy_piece(&stage->at[4 * t + @{j}][c ^ 2 * t], wlm_b_row(args, b, columns->at[@{j}]), inside, aligned);
% end
}

/* Adds every `step`-th tile from `tile` on. Whole warp, which has `memory` for itself. */
WLM_FN void wlm_multiply(const struct wlm_args *args, const struct wlm_place *place, const struct wlm_tile *tile,
                         const struct wlm_tile *end, int step, const int aligned, union wlm_memory *memory,
                         struct wlm_product *product) {
  const int of_row = (int)(threadIdx.x % 32u / 8u);
  const struct wlm_tile *ahead = tile;
  struct wlm_columns columns = {{0}};
  unsigned long long edges[@{rows // 8}] = {0};
  int slot = 0;
% for d = 0, stages - 2 do
  if (ahead < end) {
    columns = ((const struct wlm_columns *)ahead->column)[of_row];
    wlm_fetch(args, place, &columns, aligned, &memory->stages[@{d}]);
  }
  wlm_end_copies();
  ahead += step;
% end
  if (ahead < end) columns = ((const struct wlm_columns *)ahead->column)[of_row];
  if (tile < end) {
% for r = 0, rows // 8 - 1 do
    edges[@{r}] = tile->edges[place->g + @{8 * r}];
% end
  }
#pragma unroll 1
  while (tile < end) {
    struct wlm_piece piece[4];
    struct wlm_values values[@{rows // 8}];
% for r = 0, rows // 8 - 1 do
    values[@{r}] = wlm_values_of(args, edges[@{r}], place->t);
% end
    wlm_wait_for_copies();
    __syncwarp();
    if (ahead < end) wlm_fetch(args, place, &columns, aligned, &memory->stages[slot == 0 ? @{stages - 1} : slot - 1]);
    wlm_end_copies();
    ahead += step;
    tile += step;
    if (ahead < end) columns = ((const struct wlm_columns *)ahead->column)[of_row];
    if (tile < end) {
% for r = 0, rows // 8 - 1 do
      edges[@{r}] = tile->edges[place->g + @{8 * r}];
% end
    }
% for k = 0, 3 do
    piece[@{k}] = memory->stages[slot].at[4 * place->t + @{k}][place->g ^ 2 * place->t];
% end
% for j = 0, words - 1 do
    wlm_multiply_word(piece, @{j}, values, product->at);
% end
    slot = slot == @{stages - 1} ? 0 : slot + 1;
  }
}
