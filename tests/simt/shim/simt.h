/* Makes emitted CUDA text a C program; included before it with -include. Kernels become C functions that run with one
 * fiber per thread (simt.c). Everything that threads do together is a call into simt.c, which passes its line in the
 * template. For tests only. */
#pragma once

#define SIMT_PUBLIC __attribute__((visibility("default")))

struct simt_index {
  unsigned int x, y, z;
};
struct simt_place {
  struct simt_index thread, block, block_dim, grid_dim;
};
extern SIMT_PUBLIC const struct simt_place *simt_here; /* the position in the template of the running thread */

#define threadIdx simt_here->thread
#define blockIdx  simt_here->block
#define blockDim  simt_here->block_dim
#define gridDim   simt_here->grid_dim

/* ---- declarations ----------------------------------------------------------------------------- */

#define __device__
#define __global__      SIMT_PUBLIC
#define __forceinline__ inline /* without inlining: with it cc takes seven times as long for most kernels */
#define __noinline__ __attribute__((noinline, unused))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ restrict
#define __ldg(pointer) (*(pointer))

/* Shared memory is a static variable, because ASan does not guard thread-local ones. It lies in a section of its
 * own, which simt.c fills with a pattern before each block. */
#define __shared__ static __attribute__((section("simt_shared")))
#ifndef SIMT_RUNTIME
extern unsigned int __start_simt_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned int __stop_simt_shared[] __attribute__((weak, visibility("hidden")));
SIMT_PUBLIC void simt_shared_range(unsigned int **begin, unsigned int **end) {
  *begin = __start_simt_shared;
  *end = __stop_simt_shared;
}
#endif
/* Dynamic shared memory has exactly the launch's size, so that ASan guards its end. */
SIMT_PUBLIC void *simt_dynamic_shared(void);
#define WLM_DYNAMIC_SHARED(type, name) type *const name = (type *)simt_dynamic_shared()

/* ---- barriers and exchange ----------------------------------------------------------------------- */

enum simt_act {
  SIMT_SYNCTHREADS,
  SIMT_SYNCWARP,
  SIMT_SHFL,
  SIMT_SHFL_UP,
  SIMT_SHFL_DOWN,
  SIMT_SHFL_XOR,
  SIMT_BALLOT,
  SIMT_ANY,
  SIMT_ALL
};
/* Waits until every thread of the block (or lane of the mask) has reached the same line. `bits` is the lane's
 * contribution; returns its result. */
SIMT_PUBLIC unsigned long long simt_meet(enum simt_act act, unsigned int mask, unsigned long long bits, int operand,
                                         int width, const char *file, int line);

/* SIMT_OPTIONAL expands to its optional last argument, or to `fallback` without one. */
#define SIMT_SECOND(first, second, ...) second
#define SIMT_OPTIONAL(fallback, ...)    SIMT_SECOND(0, ##__VA_ARGS__, fallback)

#define SIMT_EXCHANGE(act, mask, value, operand, ...)                                                                  \
  __extension__({                                                                                                      \
    __typeof__(value) simt_value = (value);                                                                            \
    unsigned long long simt_bits = 0;                                                                                  \
    _Static_assert(sizeof simt_value <= sizeof simt_bits, "exchanges take at most 64 bits");                           \
    __builtin_memcpy(&simt_bits, &simt_value, sizeof simt_value);                                                      \
    simt_bits = simt_meet(act, mask, simt_bits, (int)(operand), SIMT_OPTIONAL(32, ##__VA_ARGS__), __FILE__, __LINE__); \
    __builtin_memcpy(&simt_value, &simt_bits, sizeof simt_value);                                                      \
    simt_value;                                                                                                        \
  })
#define SIMT_VOTE(act, mask, predicate) simt_meet(act, mask, (predicate) != 0, 0, 32, __FILE__, __LINE__)

#define __syncthreads() ((void)simt_meet(SIMT_SYNCTHREADS, 0, 0, 0, 32, __FILE__, __LINE__))
#define __syncwarp(...) \
  ((void)simt_meet(SIMT_SYNCWARP, SIMT_OPTIONAL(0xffffffffu, ##__VA_ARGS__), 0, 0, 32, __FILE__, __LINE__))
#define __shfl_sync(mask, value, lane, ...)       SIMT_EXCHANGE(SIMT_SHFL, mask, value, lane, ##__VA_ARGS__)
#define __shfl_up_sync(mask, value, delta, ...)   SIMT_EXCHANGE(SIMT_SHFL_UP, mask, value, delta, ##__VA_ARGS__)
#define __shfl_down_sync(mask, value, delta, ...) SIMT_EXCHANGE(SIMT_SHFL_DOWN, mask, value, delta, ##__VA_ARGS__)
#define __shfl_xor_sync(mask, value, bits, ...)   SIMT_EXCHANGE(SIMT_SHFL_XOR, mask, value, bits, ##__VA_ARGS__)
#define __ballot_sync(mask, predicate)            ((unsigned int)SIMT_VOTE(SIMT_BALLOT, mask, predicate))
#define __any_sync(mask, predicate)               ((int)SIMT_VOTE(SIMT_ANY, mask, predicate))
#define __all_sync(mask, predicate)               ((int)SIMT_VOTE(SIMT_ALL, mask, predicate))

/* ---- atomics: fibers switch only in simt_meet, so plain code is atomic ---------------------------- */

#define SIMT_ATOMIC(pointer, value, expression)               \
  __extension__({                                             \
    __typeof__(pointer) simt_pointer = (pointer);             \
    const __typeof__(*simt_pointer) simt_x = (value);         \
    const __typeof__(*simt_pointer) simt_old = *simt_pointer; \
    *simt_pointer = (expression);                             \
    simt_old;                                                 \
  })
#define atomicAdd(pointer, value)  SIMT_ATOMIC(pointer, value, simt_old + simt_x)
#define atomicMax(pointer, value)  SIMT_ATOMIC(pointer, value, simt_old > simt_x ? simt_old : simt_x)
#define atomicMin(pointer, value)  SIMT_ATOMIC(pointer, value, simt_old < simt_x ? simt_old : simt_x)
#define atomicExch(pointer, value) SIMT_ATOMIC(pointer, value, simt_x)
#define atomicCAS(pointer, compare, value)                                         \
  __extension__({                                                                  \
    __typeof__(pointer) simt_target = (pointer);                                   \
    const __typeof__(*simt_target) simt_compare = (compare);                       \
    SIMT_ATOMIC(simt_target, value, simt_old == simt_compare ? simt_x : simt_old); \
  })
#define __threadfence()       ((void)0)
#define __threadfence_block() ((void)0)

/* ---- the CUDA functions that kernels call ---------------------------------------------------------- */

#define __popc(x)  __builtin_popcount(x)
#define __ffs(x)   __builtin_ffs(x)
#define __clz(x)   ((x) ? __builtin_clz(x) : 32)
#define __clzll(x) ((x) ? __builtin_clzll((unsigned long long)(x)) : 64)
