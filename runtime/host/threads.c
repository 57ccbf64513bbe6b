#include "runtime/host/threads.h"

#include <omp.h>
#include <sys/resource.h>

#include "core/base/clock.h"
#include "core/base/threads.h"

/* A product runs on several threads from this many elements on, counted as (non-zeros + rows) x N. Measured on two
 * cores of an x86-64 server (GCC 12, libgomp, f32 sums with 8 and 32 non-zeros per row; the best of 400 samples): two
 * threads begin to be faster between 70,000 and 600,000 elements, which take one thread 5 to 30 us. */
static double share_from = 1 << 18;

static _Thread_local wlmi_crowding crowding;

int64_t wlmi_host_switches(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : usage.ru_nivcsw;
}

static int threads_to_share(void) {
  const int most = omp_get_max_threads();
  const int is_crowded = most > 1 && wlmi_is_crowded(&crowding, wlmi_seconds(), most, wlmi_host_switches);
  return is_crowded ? wlmi_threads_and_one() : wlmi_threads();
}

int wlmi_host_threads(const struct wlm_args *args) {
  const double work = ((double)args->nnz + (double)args->rows) * (double)args->n;
  return work < share_from ? 1 : threads_to_share();
}

void wlmi_host_share_from(double work) { share_from = work; }

/* ---- crowding ---- */

/* A core in dispute gives some 50 to 130 interrupts in a second. Calm machines have a few, and more where there are
 * more cores. Counts over a long time say little about the products in it. */
static const double count_seconds = 20e-3, longest_count = 0.2;
static const double least_period = 0.1, longest_period = 2;
enum { LEAST_SWITCHES = 2, THREADS_PER_SWITCH = 16 };

static int are_many(int64_t switches, double seconds, int threads) {
  const double usual = threads > THREADS_PER_SWITCH ? (double)threads / THREADS_PER_SWITCH : 1;
  return switches >= LEAST_SWITCHES && (double)switches >= usual * seconds / count_seconds;
}

static double within(double low, double value, double high) { return value < low ? low : value > high ? high : value; }

int wlmi_is_crowded(wlmi_crowding *c, double now, int threads, int64_t (*switches)(void)) {
  if (now < c->until) return 1;
  if (c->until == 0 && now - c->since < count_seconds) return 0;
  const wlmi_crowding before = *c;
  c->since = now;
  c->switches = switches();
  c->until = 0;
  if (before.until > 0 || now - before.since > longest_count) return 0;
  if (!are_many(c->switches - before.switches, now - before.since, threads)) {
    c->period /= 2;
    return 0;
  }
  c->period = within(least_period, 2 * c->period, longest_period);
  c->until = now + c->period;
  return 1;
}
