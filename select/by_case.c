/* Ranks the candidates of a tuned matrix for a number of calls.
 *
 * Preparing is paid once for all calls that the caller expects, so a candidate's price is its time + preparing / calls.
 * Unprepared candidates keep the order of the case, which settles ties; each prepared one is inserted before the first
 * unprepared one that it beats. For a single call no prepared candidate is chosen, so callers that declare no reuse
 * never have to call wlm_plan_prepare. */
#include <math.h>
#include <string.h>

#include "select/model.h"
#include "select/state.h"

typedef struct ranking {
  const wlmi_case *c;
  const wlmi_measured *begin, *end;
  int64_t calls;
  const wlmi_measured *plain;    /* the next unprepared candidate */
  const wlmi_measured *prepared; /* the last prepared candidate returned; NULL = none yet */
} ranking;

static ranking ranking_of(const wlmi_case *c, int64_t calls) {
  return (ranking){c, c->candidates, c->candidates + c->count, calls, c->candidates, NULL};
}

static double price(const ranking *r, const wlmi_measured *candidate) {
  return candidate->cost + candidate->prepare / (double)r->calls;
}

/* Equal prices keep the order of the case. */
static int is_before(const ranking *r, const wlmi_measured *a, const wlmi_measured *b) {
  double left = price(r, a), right = price(r, b);
  return left < right || (left == right && a < b);
}

/* Returns the candidates from the best to the worst, then NULL. */
static const wlmi_measured *next_ranked(ranking *r) {
  const wlmi_measured *best = NULL;
  while (r->plain < r->end && r->plain->prepare > 0) r->plain++;
  for (const wlmi_measured *i = r->begin; i < r->end; i++)
    if (i->prepare > 0 && (!r->prepared || is_before(r, r->prepared, i)) && (!best || is_before(r, i, best))) best = i;
  if (best && (r->plain == r->end || price(r, best) < price(r, r->plain))) return r->prepared = best;
  return r->plain < r->end ? r->plain++ : NULL;
}

/* The first candidate that may be chosen, or NULL. Adds the ones before it to the decision's refusals, unless decision
 * is NULL. */
static const wlmi_measured *first_allowed(const wlmi_selection *s, const wlmi_case *c, wlmi_decision *decision) {
  ranking r = ranking_of(c, s->calls);
  for (const wlmi_measured *candidate; (candidate = next_ranked(&r));) {
    if ((candidate->prepare > 0 && !wlmi_may_prepare(s)) || !wlmi_measured_is_verified(candidate)) continue;
    if (wlmi_is_allowed(s, &candidate->value, wlmi_may_prepare(s))) return candidate;
    if (decision) wlmi_refuse(s, &candidate->value, candidate->variant, decision);
  }
  return NULL;
}

int wlmi_case_serves(const wlmi_selection *s, const wlmi_case *c) { return first_allowed(s, c, NULL) != NULL; }

/* ---- what explain shows ------------------------------------------------------------------------------ */

/* The best unprepared candidate that may be chosen. */
static const wlmi_measured *best_plain(const wlmi_selection *s, const ranking *r) {
  for (const wlmi_measured *i = r->begin; i < r->end; i++)
    if (!(i->prepare > 0) && wlmi_is_allowed(s, &i->value, 0)) return i;
  return NULL;
}

static double break_even(const wlmi_measured *candidate, const wlmi_measured *plain) {
  return wlmi_break_even(candidate->cost, candidate->prepare, plain ? plain->cost : 0);
}

static const wlmi_measured *pays_soonest(const wlmi_selection *s, const ranking *r, const wlmi_measured *plain) {
  const wlmi_measured *soonest = NULL;
  double fewest = INFINITY;
  for (const wlmi_measured *i = r->begin; i < r->end; i++) {
    double calls = break_even(i, plain);
    if (calls == 0 || calls >= fewest || !wlmi_is_allowed(s, &i->value, 1)) continue;
    soonest = i;
    fewest = calls;
  }
  return soonest;
}

static void describe(const wlmi_snapshot *s, const ranking *r, const wlmi_measured *candidate,
                     const wlmi_measured *best, const wlmi_measured *plain, wlmi_ranked *out) {
  wlmi_copy_name(out->variant, sizeof out->variant, candidate->variant);
  out->seconds = candidate->cost / WLMI_PICOSECONDS;
  out->prepare_seconds = candidate->prepare / WLMI_PICOSECONDS;
  out->relative = price(r, candidate) / price(r, best);
  out->prepare = candidate->prepare / best->cost;
  out->break_even = break_even(candidate, plain);
  out->spread = candidate->spread / candidate->cost;
  out->stale = wlmi_snapshot_is_stale(s, candidate->compiler, candidate->driver);
}

static void describe_stale(const wlmi_snapshot *s, const wlmi_measured *chosen, wlmi_decision *decision) {
  wlmi_text text = {0};
  wlmi_snapshot_stale(s, chosen->compiler, chosen->driver, &text);
  wlmi_copy_name(decision->stale, sizeof decision->stale, text.data);
  wlmi_text_release(&text);
}

void wlmi_select_by_case(const wlmi_selection *s, const wlmi_case *c, wlmi_decision *decision) {
  const wlmi_measured *chosen = first_allowed(s, c, decision);
  decision->distance = wlmi_case_distance(s, c);
  decision->step = wlmi_same_fingerprint(c->stats, s->stats) ? WLMI_STEP_FINGERPRINT : WLMI_STEP_SIMILAR;
  wlmi_copy_name(decision->borrowed, sizeof decision->borrowed, c->borrowed);
  describe_stale(s->snapshot, chosen, decision);
  decision->online = chosen->online;
  for (int64_t i = 0; i < c->count && !wlmi_may_prepare(s); i++) decision->unprepared += c->candidates[i].prepare > 0;
  ranking r = ranking_of(c, s->calls);
  const wlmi_measured *plain = best_plain(s, &r), *best = NULL, *candidate;
  const wlmi_measured *other = chosen->prepare > 0 ? plain : pays_soonest(s, &r, plain);
  int is_behind = 0; /* 1 once the chosen one was passed */
  while ((candidate = next_ranked(&r)) &&
         (decision->ranked_count < WLMI_RANKED || decision->entry_count < WLMI_STEP_ENTRIES)) {
    if (!best) best = candidate;
    is_behind |= candidate == chosen;
    if (is_behind && decision->ranked_count < WLMI_RANKED)
      describe(s->snapshot, &r, candidate, best, plain, &decision->ranked[decision->ranked_count++]);
    if (!is_behind || decision->entry_count == WLMI_STEP_ENTRIES || (candidate->prepare > 0 && !wlmi_may_prepare(s)))
      continue;
    if (candidate == chosen || wlmi_is_allowed(s, &candidate->value, wlmi_may_prepare(s)))
      wlmi_add_entry(decision, &candidate->value, candidate->cost / WLMI_PICOSECONDS, decision->step,
                     decision->step == WLMI_STEP_FINGERPRINT ? "measured on this very matrix"
                                                             : "measured on a matrix like this one");
  }
  if (other) describe(s->snapshot, &r, other, best, plain, &decision->other);
}
