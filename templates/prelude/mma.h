/* The lower halves of two words, and the upper ones: one instruction each, which the compiler does not find. */
#ifdef __CUDA_ARCH__
WLM_FN unsigned int wlm_lower_halves(unsigned int a, unsigned int b) { return __byte_perm(a, b, 0x5410); }
WLM_FN unsigned int wlm_upper_halves(unsigned int a, unsigned int b) { return __byte_perm(a, b, 0x7632); }
#else
WLM_FN unsigned int wlm_lower_halves(unsigned int a, unsigned int b) { return (a & 0xffffu) | b << 16; }
WLM_FN unsigned int wlm_upper_halves(unsigned int a, unsigned int b) { return a >> 16 | (b & 0xffff0000u); }
#endif

/* D = A B + D on tensor cores for 16-bit types: A is 16 x 16, B 16 x 8, D 16 x 8 in f32, each spread over a warp as
 * mma.m16n8k16 of PTX demands. Lane 4 g + t holds of A the rows g and g + 8 (a[0] and a[1]: columns 2 t, 2 t + 1; a[2] and
 * a[3]: 8 columns further), of B column g (b0: rows 2 t, 2 t + 1; b1: 8 rows further) and of D the columns 2 t, 2 t + 1 of
 * row g (d[0], d[1]) and of row g + 8 (d[2], d[3]). The lower half of a word is the first of its two elements. */
WLM_FN void wlm_mma(float *d, const unsigned int *a, unsigned int b0, unsigned int b1) {
#ifdef __CUDA_ARCH__
  asm("mma.sync.aligned.m16n8k16.row.col.f32.@{problem.dense_type}.@{problem.dense_type}.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  const int lane = (int)(threadIdx.x % 32u);
  for (int q = 0; q < 4; q++) { /* the lanes with columns 2 q, 2 q + 1 of A and 8 more */
    unsigned int row[4], column[2][2];
    for (int i = 0; i < 4; i++) row[i] = __shfl_sync(0xffffffffu, a[i], lane / 4 * 4 + q);
    for (int j = 0; j < 2; j++) {
      column[j][0] = __shfl_sync(0xffffffffu, b0, (lane % 4 * 2 + j) * 4 + q);
      column[j][1] = __shfl_sync(0xffffffffu, b1, (lane % 4 * 2 + j) * 4 + q);
    }
    for (int i = 0; i < 4; i++)
      for (int k = 0; k < 4; k++) {
        const unsigned int left = row[i / 2 + k / 2 * 2] >> k % 2 * 16, right = column[i % 2][k / 2] >> k % 2 * 16;
        d[i] += wlm_widen((wlm_b_t)left) * wlm_widen((wlm_b_t)right);
      }
  }
#endif
}
