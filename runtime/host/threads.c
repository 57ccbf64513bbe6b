#include "runtime/host/threads.h"

#include <omp.h>
#include <sys/resource.h>
#include <time.h>

#include "core/base/threads.h"
#include "runtime/host/crowding.h"

/* A product runs on several threads from this many elements on, counted as (non-zeros + rows) x N. Measured on two
 * cores of an x86-64 server (GCC 12, libgomp, f32 sums with 8 and 32 non-zeros per row; the best of 400 samples): two
 * threads begin to be faster between 70,000 and 600,000 elements, which take one thread 5 to 30 us. */
static double share_from = 1 << 18;

static _Thread_local wlmi_crowding crowding;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int64_t wlmi_host_switches(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : usage.ru_nivcsw;
}

static int threads_to_share(void) {
  const int most = omp_get_max_threads();
  const int is_crowded = most > 1 && wlmi_is_crowded(&crowding, now(), most, wlmi_host_switches);
  return is_crowded ? wlmi_threads_and_one() : wlmi_threads();
}

int wlmi_host_threads(const struct wlm_args *args) {
  const double work = ((double)args->nnz + (double)args->rows) * (double)args->n;
  return work < share_from ? 1 : threads_to_share();
}

void wlmi_host_share_from(double work) { share_from = work; }
