#include "runtime/host/crowding.h"

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
