/* The clock that only goes forward. */
#pragma once

#include <time.h>

static inline double wlmi_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
