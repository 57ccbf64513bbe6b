/* The candidates of a tuned case, ranked for so many calls.
 *
 * Preparing is paid once and shared by the calls that the caller expects, so a candidate's price is its time + its
 * preparing / calls, and the list is ranked by that: those that need no preparing keep the order of the measurements
 * (which settles ties), and each of the others comes before the first of them that it beats. For a single call what
 * must be prepared is never chosen, whatever its price: a caller who declares no reuse need not know of preparing. */
#include <math.h>
#include <string.h>

#include "runtime/dispatch/predict.h"
#include "runtime/dispatch/question.h"

typedef struct ranking {
  const wlmi_case *c;
  const wlmi_ranked *begin, *end;
  int64_t calls;
  const wlmi_ranked *plain;    /* the next that needs no preparing */
  const wlmi_ranked *prepared; /* the last given that does; NULL = none yet */
} ranking;

static ranking ranking_of(const wlmi_snapshot *s, const wlmi_case *c, int64_t calls) {
  const wlmi_ranked *begin = s->ranked + c->first;
  return (ranking){c, begin, begin + c->count, calls, begin, NULL};
}

static double price(const ranking *r, const wlmi_ranked *candidate) {
  return candidate->cost + candidate->prepare / (double)r->calls;
}

/* Equal prices keep the order of the case. */
static int is_before(const ranking *r, const wlmi_ranked *a, const wlmi_ranked *b) {
  double left = price(r, a), right = price(r, b);
  return left < right || (left == right && a < b);
}

/* From the best to the worst; NULL behind the last. */
static const wlmi_ranked *next_ranked(ranking *r) {
  const wlmi_ranked *best = NULL;
  while (r->plain < r->end && r->plain->prepare > 0) r->plain++;
  for (const wlmi_ranked *i = r->begin; i < r->end; i++)
    if (i->prepare > 0 && (!r->prepared || is_before(r, r->prepared, i)) && (!best || is_before(r, i, best))) best = i;
  if (best && (r->plain == r->end || price(r, best) < price(r, r->plain))) return r->prepared = best;
  return r->plain < r->end ? r->plain++ : NULL;
}

/* The first that may be chosen; NULL where none may. The decision, unless NULL, learns of those before it that are not
 * valid. */
static const wlmi_ranked *first_usable(const wlmi_question *q, const wlmi_case *c, wlmi_decision *choice) {
  ranking r = ranking_of(q->snapshot, c, q->calls);
  for (const wlmi_ranked *candidate; (candidate = next_ranked(&r));) {
    if (candidate->prepare > 0 && !wlmi_question_may_prepare(q)) continue;
    if (wlmi_question_allows(q, candidate->variant, wlmi_question_may_prepare(q))) return candidate;
    if (choice) wlmi_question_refuse(q, candidate->variant, choice);
  }
  return NULL;
}

int wlmi_ranking_serves(const wlmi_question *q, const wlmi_case *c) { return first_usable(q, c, NULL) != NULL; }

/* ---- what explain tells ------------------------------------------------------------------------------ */

/* The best usable one that needs no preparing. */
static const wlmi_ranked *best_plain(const wlmi_question *q, const ranking *r) {
  for (const wlmi_ranked *i = r->begin; i < r->end; i++)
    if (!(i->prepare > 0) && wlmi_question_allows(q, i->variant, 0)) return i;
  return NULL;
}

static double break_even(const wlmi_ranked *candidate, const wlmi_ranked *plain) {
  return wlmi_break_even(candidate->cost, candidate->prepare, plain ? plain->cost : 0);
}

static const wlmi_ranked *pays_soonest(const wlmi_question *q, const ranking *r, const wlmi_ranked *plain) {
  const wlmi_ranked *soonest = NULL;
  double fewest = INFINITY;
  for (const wlmi_ranked *i = r->begin; i < r->end; i++) {
    double calls = break_even(i, plain);
    if (calls == 0 || calls >= fewest || !wlmi_question_allows(q, i->variant, 1)) continue;
    soonest = i;
    fewest = calls;
  }
  return soonest;
}

static void describe(const ranking *r, const wlmi_ranked *candidate, const wlmi_ranked *best, const wlmi_ranked *plain,
                     wlmi_runner_up *out) {
  wlmi_copy_name(out->variant, sizeof out->variant, candidate->variant);
  out->seconds = r->c->exact ? candidate->cost : 0;
  out->prepare_seconds = r->c->exact ? candidate->prepare : 0;
  out->relative = price(r, candidate) / price(r, best);
  out->prepare = candidate->prepare / best->cost;
  out->break_even = break_even(candidate, plain);
  out->spread = r->c->exact ? candidate->spread : 0;
  out->stale = candidate->stale != NULL;
}

/* Of the measurements behind it: in a bucket, whose matrices stand for themselves too, of any of theirs. */
static const char *stale_of(const wlmi_question *q, const wlmi_case *c, const wlmi_ranked *chosen) {
  const wlmi_snapshot *s = q->snapshot;
  if (c->exact) return chosen->stale;
  for (int64_t i = 0; i < s->case_count; i++) {
    const wlmi_case *one = &s->cases[i];
    if (!one->exact || one->n != c->n || wlmi_bucket_distance(&one->bucket, 1, &c->bucket, 1) > 0 ||
        !one->borrowed != !c->borrowed || strcmp(one->problem, c->problem))
      continue;
    for (int64_t k = one->first; k < one->first + one->count; k++)
      if (s->ranked[k].stale && !strcmp(s->ranked[k].variant, chosen->variant)) return s->ranked[k].stale;
  }
  return NULL;
}

void wlmi_ranking_decide(const wlmi_question *q, const wlmi_case *c, wlm_step step, double distance,
                         wlmi_decision *choice) {
  const wlmi_ranked *chosen = first_usable(q, c, choice);
  choice->step = step;
  choice->distance = distance;
  choice->tuned_n = c->n;
  choice->bucket = c->bucket;
  choice->matrices = c->matrices;
  wlmi_copy_name(choice->borrowed, sizeof choice->borrowed, c->borrowed ? c->borrowed : "");
  const char *stale = stale_of(q, c, chosen);
  wlmi_copy_name(choice->stale, sizeof choice->stale, stale ? stale : "");
  choice->online = chosen->online;
  for (int64_t i = c->first; i < c->first + c->count && !wlmi_question_may_prepare(q); i++)
    choice->unprepared += q->snapshot->ranked[i].prepare > 0;
  wlmi_copy_name(choice->variant, sizeof choice->variant, chosen->variant);
  ranking r = ranking_of(q->snapshot, c, q->calls);
  const wlmi_ranked *plain = best_plain(q, &r), *best = NULL, *candidate;
  const wlmi_ranked *other = chosen->prepare > 0 ? plain : pays_soonest(q, &r, plain);
  while ((candidate = next_ranked(&r)) && choice->runner_count < WLM_RUNNERS_UP) {
    if (!best) best = candidate;
    if (candidate == chosen || choice->runner_count)
      describe(&r, candidate, best, plain, &choice->runners[choice->runner_count++]);
  }
  if (other) describe(&r, other, best, plain, &choice->other);
}
