/* What every emitted host source stands on: plain C11 with OpenMP, no header. A host kernel runs all its blocks itself,
 * on as many threads as the launch says: void kernel(const struct wlm_args *args, long long unit_blocks, int threads).
 */
#define WLM_FN static inline __attribute__((always_inline))
#define WLM_KERNEL(name)                                                                                        \
  __attribute__((visibility("default"))) void name(const struct wlm_args *restrict args, long long unit_blocks, \
                                                   int threads)
#define WLM_INF        __builtin_inff()
#define __ldg(pointer) (*(pointer))

/* One block of a kernel's work, of `blocks`. */
#define WLM_BLOCK(name) static void name(const struct wlm_args *restrict args, long long block, long long blocks)

/* Runs all blocks. One thread needs no OpenMP: a parallel region costs more than a small product, and in a child of
 * fork it would wait for threads that are not there. */
static void wlm_run(void (*run)(const struct wlm_args *, long long, long long), const struct wlm_args *args,
                    long long blocks, int threads) {
  if (threads > 1) {
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (long long block = 0; block < blocks; block++) run(args, block, blocks);
  } else {
    for (long long block = 0; block < blocks; block++) run(args, block, blocks);
  }
}
