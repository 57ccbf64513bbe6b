/* Adds numbers that are rounded first: a product that becomes one operation with its sum would have other bits than where
 * it is stored in between, and than in other kernels. */
#ifdef __CUDA_ARCH__
WLM_FN wlm_acc_t wlm_plus(wlm_acc_t x, wlm_acc_t y) { return @{problem.acc_bytes == 8 and "__dadd_rn" or "__fadd_rn"}(x, y); }
#else
#ifdef __has_builtin
#if __has_builtin(__builtin_assoc_barrier)
#define wlm_rounded(x) __builtin_assoc_barrier(x)
#endif
#endif
#ifndef wlm_rounded
#define wlm_rounded(x) (x)
#endif
WLM_FN wlm_acc_t wlm_plus(wlm_acc_t x, wlm_acc_t y) { return wlm_rounded(x) + wlm_rounded(y); }
#endif
