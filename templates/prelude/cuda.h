/* What every emitted CUDA source stands on. The text stays in the subset that is both CUDA and C11 and
 * includes no header, so that NVRTC compiles it without an include path and the tests compile it with
 * the host's C compiler. */
#ifdef __cplusplus
#define WLM_C extern "C"
#else
#define WLM_C
#endif
#define WLM_FN static __device__ __forceinline__
/* WLM_REGISTERS is how many a thread may have; the compiler is told it as the number of blocks that a
 * multiprocessor with its 65536 registers shall hold. Left to itself, ptxas trades registers for occupancy, until
 * few loads are in flight, which is what a gather lives on. */
#define WLM_KERNEL(name, threads)                                                         \
  WLM_C __global__ void __launch_bounds__(threads, 65536 / ((threads) * (WLM_REGISTERS))) \
      name(const __grid_constant__ struct wlm_args args)

#ifdef __CUDA_ARCH__
#define WLM_ASSUME(condition) __builtin_assume(condition)
#define WLM_INF __int_as_float(0x7f800000)
/* Sized at launch; one per kernel. */
#define WLM_DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
#else
#define WLM_ASSUME(condition) ((void)0)
#define WLM_INF __builtin_inff()
#endif

/* For a pass that is launched as dependent: let_next_pass_start says that this block needs no more room than it has,
 * wait_for_pass_before returns when all that the pass before wrote can be read. Elsewhere passes simply follow
 * each other. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
WLM_FN void wlm_let_next_pass_start(void) { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
WLM_FN void wlm_wait_for_pass_before(void) { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
WLM_FN void wlm_let_next_pass_start(void) {}
WLM_FN void wlm_wait_for_pass_before(void) {}
#endif

/* The same for the first pass of a program, which may be launched while the call before drains. A thread that reads the
 * pattern of A (rowptr, colind) before its turn calls this first: the pattern of a planned matrix is ready, that of a
 * fresh one may still be written by what was enqueued before. let_next_pass_start comes after it: with the blocks of
 * several calls waiting side by side, the multiprocessors get unequal shares of them. */
WLM_FN void wlm_wait_for_pattern(const struct wlm_args *args) {
  if ((int)args->fresh) wlm_wait_for_pass_before(); /* one comparison of 32 bits */
}

/* Values, B, what was prepared and C may be read only after this. `seen` is made of what was read of the pattern, and
 * never the least number; the wait hangs on it, or the compiler would read later. The result is 0, but the compiler does
 * not know: added to an index, it keeps loads behind the wait. */
WLM_FN long long wlm_wait_for_turn(long long seen) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  long long zero;
  asm volatile("{ .reg .pred always; setp.ne.s64 always, %1, -9223372036854775808; @always griddepcontrol.wait; mov.u64 %0, 0; }"
               : "=l"(zero) : "l"(seen) : "memory");
  return zero;
#else
  (void)seen;
  return 0;
#endif
}

/* The same number, which the compiler keeps in a register: it would compute again in a loop what takes a few instructions. */
WLM_FN int wlm_held(int number) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(number));
#endif
  return number;
}

/* base + index * bytes in one instruction; how far rows of B and C lie apart fits 32 bits. */
WLM_FN const void *wlm_step(const void *base, unsigned int index, unsigned int bytes) {
#ifdef __CUDA_ARCH__
  unsigned long long place;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(place) : "r"(index), "r"(bytes), "l"((unsigned long long)base));
  return (const void *)place;
#else
  return (const char *)base + (unsigned long long)index * bytes;
#endif
}

/* Loads of what is read once and must not drive out of L2 what is read again, and of the latter. */
#ifdef __CUDA_ARCH__
WLM_FN unsigned int wlm_read4_once(const void *from) {
  unsigned int word;
  asm("{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0;"
      " ld.global.nc.L2::cache_hint.u32 %0, [%1], policy; }"
      : "=r"(word) : "l"(from));
  return word;
}
WLM_FN uint4 wlm_read16_kept(const void *from) {
  uint4 words;
  asm("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
      " ld.global.nc.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }"
      : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w) : "l"(from));
  return words;
}
#endif
/* Stores of whole vectors, which the compiler would take apart, marked as used once so that B stays in L2 longer. */
#ifdef __CUDA_ARCH__
WLM_FN void wlm_write4(void *to, const unsigned int *word) {
  asm volatile("{ .reg .u64 p; cvta.to.global.u64 p, %0; st.global.cs.u32 [p], %1; }" : : "l"(to), "r"(word[0]) : "memory");
}
WLM_FN void wlm_write8(void *to, const unsigned int *word) {
  asm volatile("{ .reg .u64 p; cvta.to.global.u64 p, %0; st.global.cs.v2.u32 [p], {%1, %2}; }"
               : : "l"(to), "r"(word[0]), "r"(word[1]) : "memory");
}
WLM_FN void wlm_write16(void *to, const unsigned int *word) {
  asm volatile("{ .reg .u64 p; cvta.to.global.u64 p, %0; st.global.cs.v4.u32 [p], {%1, %2, %3, %4}; }"
               : : "l"(to), "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3]) : "memory");
}
#endif

/* The grid: the fast axis is x, the slow one is folded over y and z because y alone ends at 65535.
 * A pass says which of the two moves over units (rows, non-zeros). Blocks past the end do nothing. */
WLM_FN long long wlm_fast_block(void) { return blockIdx.x; }
WLM_FN long long wlm_slow_block(void) { return blockIdx.y + (long long)gridDim.y * blockIdx.z; }
