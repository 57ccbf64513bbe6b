/* The clock that only goes forward, and the time of day. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline double wlmi_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#define WLMI_LAST_SECOND 253402300799 /* of the year 9999 */

/* Seconds since 1970, for records: from 0 to WLMI_LAST_SECOND, wherever the clock stands. */
static inline int64_t wlmi_time_of_day(void) {
  const int64_t now = (int64_t)time(NULL);
  return now < 0 ? 0 : now > WLMI_LAST_SECOND ? WLMI_LAST_SECOND : now;
}
