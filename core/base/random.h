/* Random numbers from integers alone (splitmix64): the same on every machine. Each row, candidate or other numbered
 * item has its own generator, so the order of threads does not matter. */
#pragma once

#include <stdint.h>

#define WLMI_GOLDEN UINT64_C(0x9E3779B97F4A7C15)

typedef struct wlmi_random {
  uint64_t state;
} wlmi_random;

static inline uint64_t wlmi_mix(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

/* `stream` numbers the purposes for which one seed is used. */
static inline wlmi_random wlmi_random_for(uint64_t seed, uint64_t stream, uint64_t index) {
  return (wlmi_random){wlmi_mix(wlmi_mix(seed + stream * WLMI_GOLDEN) + index * WLMI_GOLDEN)};
}

static inline uint64_t wlmi_random_next(wlmi_random *r) { return wlmi_mix(r->state += WLMI_GOLDEN); }

/* 0 .. n - 1 for n > 0; the bias is below n / 2^64. */
static inline int64_t wlmi_random_below(wlmi_random *r, int64_t n) {
  return (int64_t)((unsigned __int128)wlmi_random_next(r) * (uint64_t)n >> 64);
}
