/* Trials on real calls must cost little. So a challenger runs on a share of the calls only. The time that challengers
 * have lost so far, plus the expected loss of the next trial, stays below a bound times the time of all calls; after a
 * slow trial, ordinary calls run until this holds again. A challenger that takes a multiple of the incumbent's time is
 * abandoned at once.
 *
 * The incumbent is timed next to each trial, alternately before and after it, and only the ratio of this pair counts:
 * frequency, temperature and other load change between calls, but affect both halves of a pair alike. Only one pair is
 * in flight at a time. A challenger replaces the incumbent when it is faster by a margin in the median and won at least
 * three quarters of its pairs. It is rejected when it lost three quarters of them, or when the maximum number of pairs
 * gave no decision. Challengers are tried one after another. */
#include "tuner/online_policy.h"

#include <math.h>
#include <string.h>

#include "tuner/timing.h"

enum { WARM_UPS = 2, BASE_SAMPLES = 3 }; /* of the incumbent, before the first trial */
static const double margin = 0.02;       /* a challenger must be faster by this in the median */

void wlmi_online_begin(wlmi_online *o, const wlmi_online_rules *rules, const double *expected, int count) {
  *o = (wlmi_online){.rules = *rules, .count = count, .challenger = 1};
  o->period = (int64_t)ceil(1 / rules->share);
  if (o->period < 2) o->period = 2;
  for (int i = 0; i < count; i++) o->contenders[i].expected = i ? expected[i] : 1;
}

int wlmi_online_is_over(const wlmi_online *o) { return o->challenger >= o->count; }

/* ---- times of a contender -------------------------------------------------------------------------------- */

static int kept(const wlmi_online_contender *c) {
  return c->timed < WLMI_ONLINE_SAMPLES ? (int)c->timed : WLMI_ONLINE_SAMPLES;
}

wlmi_online_summary wlmi_online_summarise(const wlmi_online_contender *c) {
  double seconds[WLMI_ONLINE_SAMPLES];
  wlmi_online_summary summary = {.samples = kept(c)};
  if (!summary.samples) return summary;
  memcpy(seconds, c->seconds, (size_t)summary.samples * sizeof *seconds);
  wlmi_timing_summarise(seconds, summary.samples, &summary.median, &summary.spread);
  return summary;
}

static void keep(wlmi_online_contender *c, double seconds) { c->seconds[c->timed++ % WLMI_ONLINE_SAMPLES] = seconds; }

static double incumbent_seconds(const wlmi_online *o) {
  return wlmi_online_summarise(&o->contenders[o->incumbent]).median;
}

static double expected_seconds(const wlmi_online *o, const wlmi_online_contender *c) {
  return c->timed ? wlmi_online_summarise(c).median : c->expected * o->first_seconds;
}

static double expected_loss(const wlmi_online *o) {
  return fmax(0, expected_seconds(o, &o->contenders[o->challenger]) - incumbent_seconds(o));
}

/* ---- the next call --------------------------------------------------------------------------------------- */

static int is_affordable(const wlmi_online *o) {
  return o->lost + expected_loss(o) <= o->rules.slowdown * (double)o->calls * incumbent_seconds(o);
}

/* Finds the next challenger that is worth a trial; skips the others for good. */
static void find_challenger(wlmi_online *o) {
  const double limit = o->rules.abandon * incumbent_seconds(o);
  for (; o->challenger < o->count; o->challenger++) {
    wlmi_online_contender *c = &o->contenders[o->challenger];
    if (o->challenger == o->incumbent || c->fate != WLMI_ONLINE_WAITING) continue;
    if (expected_seconds(o, c) < limit) return;
    c->fate = WLMI_ONLINE_ABANDONED;
  }
}

static wlmi_online_turn timed(wlmi_online *o, int contender) {
  o->in_flight++;
  return (wlmi_online_turn){contender, 1};
}

/* One half of a pair; the challenger comes first in every other pair. */
static wlmi_online_turn half_of_pair(wlmi_online *o, int second) {
  const int challenger_first = o->contenders[o->challenger].pairs % 2;
  o->second_half = !second;
  return timed(o, challenger_first != second ? o->challenger : o->incumbent);
}

wlmi_online_turn wlmi_online_next(wlmi_online *o) {
  const wlmi_online_turn plain = {o->incumbent, 0};
  const int64_t call = o->calls++;
  if (wlmi_online_is_over(o)) return plain;
  if (o->second_half) return half_of_pair(o, 1);
  if (o->in_flight || call < WARM_UPS) return plain;
  if (o->contenders[o->incumbent].timed < BASE_SAMPLES) return timed(o, o->incumbent);
  if (!o->first_seconds) o->first_seconds = incumbent_seconds(o);
  if (call % o->period) return plain;
  find_challenger(o);
  if (wlmi_online_is_over(o) || !is_affordable(o)) return plain;
  o->trials++;
  o->in_pair = 1;
  return half_of_pair(o, 0);
}

/* ---- what came out --------------------------------------------------------------------------------------- */

static void replace_incumbent(wlmi_online *o) {
  o->contenders[o->incumbent].fate = WLMI_ONLINE_BEATEN;
  o->incumbent = o->challenger++;
  o->replacements++;
}

static void dismiss(wlmi_online *o, wlmi_online_fate fate) { o->contenders[o->challenger++].fate = fate; }

static double quantile(const double *sorted, int count, double q) { return sorted[(int)(q * (count - 1) + 0.5)]; }

static void decide(wlmi_online *o) {
  const wlmi_online_contender *c = &o->contenders[o->challenger];
  double ratios[WLMI_ONLINE_SAMPLES], median, spread;
  memcpy(ratios, c->ratios, (size_t)c->pairs * sizeof *ratios);
  wlmi_timing_summarise(ratios, c->pairs, &median, &spread); /* sorts */
  if (ratios[0] >= o->rules.abandon) return dismiss(o, WLMI_ONLINE_ABANDONED);
  if (c->pairs < WLMI_ONLINE_LEAST) return;
  if (median <= 1 - margin && quantile(ratios, c->pairs, 0.75) < 1) return replace_incumbent(o);
  if (quantile(ratios, c->pairs, 0.25) > 1 || c->pairs == WLMI_ONLINE_SAMPLES) dismiss(o, WLMI_ONLINE_REJECTED);
}

static void end_pair(wlmi_online *o) {
  const double own = o->half[0], other = o->half[1];
  wlmi_online_contender *c = &o->contenders[o->challenger];
  keep(&o->contenders[o->incumbent], own);
  keep(c, other);
  c->ratios[c->pairs++] = other / own;
  o->lost += fmax(0, other - own);
  o->in_pair = 0;
  o->half[0] = o->half[1] = 0;
  decide(o);
}

void wlmi_online_add_time(wlmi_online *o, int contender, double seconds) {
  if (!o->in_flight) return;
  if (!(seconds > 0)) return wlmi_online_withdraw(o); /* shorter than the resolution of the timer: no information */
  o->in_flight--;
  if (!o->in_pair) return keep(&o->contenders[o->incumbent], seconds);
  o->half[contender != o->incumbent] = seconds;
  if (!o->in_flight && !o->second_half) end_pair(o);
}

void wlmi_online_withdraw(wlmi_online *o) {
  if (o->in_pair) o->lost += o->half[1] > 0 ? fmax(0, o->half[1] - incumbent_seconds(o)) : expected_loss(o);
  o->in_flight = o->second_half = o->in_pair = 0;
  o->half[0] = o->half[1] = 0;
}

void wlmi_online_exclude(wlmi_online *o, int contender) {
  wlmi_online_withdraw(o);
  if (contender == o->challenger)
    dismiss(o, WLMI_ONLINE_ABANDONED);
  else if (contender != o->incumbent)
    o->contenders[contender].fate = WLMI_ONLINE_ABANDONED;
}
