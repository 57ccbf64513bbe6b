/* What every emitted host source stands on: plain C11 with OpenMP, no header. A host kernel runs all its
 * blocks itself: void kernel(const struct wlm_args *args, long long unit_blocks). */
#define WLM_FN static inline __attribute__((always_inline))
#define WLM_KERNEL(name) \
  __attribute__((visibility("default"))) void name(const struct wlm_args *restrict args, long long unit_blocks)
#define WLM_INF __builtin_inff()
#define __ldg(pointer) (*(pointer))
