#include "runtime/host/threads.h"

#include <math.h>
#include <omp.h>
#include <sys/resource.h>

#include "core/base/clock.h"
#include "core/base/threads.h"

/* A product runs on several threads from this many elements on, counted as (non-zeros + rows) x N. Measured on two
 * cores of an x86-64 server (GCC 12, libgomp, f32 sums with 8 and 32 non-zeros per row; the best of 400 samples): two
 * threads begin to be faster between 70,000 and 600,000 elements, which take one thread 5 to 30 us. */
static double share_from = 1 << 18;

/* On a crowded machine, from this many times as many on. Where 7 to 16 other threads wanted those two cores, two
 * threads took 2 to 40 times as long as one for 2^20 elements, 1.3 to 1.9 times for 2^25, and 0.7 to 1.1 times from
 * 2^26 on. */
enum { CROWDED_TIMES = 256 };

static _Thread_local wlmi_crowding crowding;

int64_t wlmi_host_switches(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : usage.ru_nivcsw;
}

wlmi_crowding *wlmi_host_crowding(void) { return &crowding; }

int wlmi_host_threads(const struct wlm_args *args, int64_t products) {
  const double work = ((double)args->nnz + (double)args->rows) * (double)args->n * (double)products;
  if (work < share_from) return 1;
  const int is_crowded = wlmi_is_crowded(&crowding, wlmi_seconds(), omp_get_max_threads(), wlmi_host_switches);
  return is_crowded && work < CROWDED_TIMES * share_from ? 1 : wlmi_threads();
}

void wlmi_host_share_from(double work) { share_from = work; }

/* ---- crowding ---- */

/* A core in dispute gives some 50 to 130 interrupts in a second. Calm machines have a few, and more where there are
 * more cores. Counts over a long time say little about the products in it. */
static const double count_seconds = 20e-3, longest_count = 0.2;
static const double crowded_period = 0.5;
enum { LEAST_SWITCHES = 2 };

/* With k cores in dispute all threads of a team run at once for about 1 / 2^k of the time, so sharing pays unless k
 * exceeds the logarithm of their number. */
static int are_many(int64_t switches, double seconds, int threads) {
  return switches >= LEAST_SWITCHES && (double)switches >= log2(threads) * seconds / count_seconds;
}

int wlmi_is_crowded(wlmi_crowding *c, double now, int threads, int64_t (*switches)(void)) {
  if (now < c->until) return 1;
  if (c->until == 0 && now - c->since < count_seconds) return 0;
  const wlmi_crowding before = *c;
  c->since = now;
  c->switches = switches();
  c->until = 0;
  const double counted = now - before.since;
  if (before.until > 0 || counted > longest_count || !are_many(c->switches - before.switches, counted, threads))
    return 0;
  c->until = now + crowded_period;
  c->all += crowded_period;
  return 1;
}

double wlmi_crowded_seconds(const wlmi_crowding *c, double now) {
  return c->all - (now < c->until ? c->until - now : 0);
}
