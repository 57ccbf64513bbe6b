/* Choosing goes from the most to the least that is known: this very matrix; what a model learned from matrices that are
 * not far; where there is no model, the nearest bucket of matrices that were tuned for the same operator and types; a
 * table of rules. Each step hands over a ranked list and the first candidate that is valid for the problem at hand
 * wins, because a variant that was best for one N need not exist for another.
 *
 * Preparing is paid once and shared by the calls that the caller expects, so a candidate's price is its time + its
 * preparing / calls, and the list is ranked by that: those that need no preparing keep the order of the measurements
 * (which settles ties), and each of the others comes before the first of them that it beats. For a single call what
 * must be prepared is never chosen, whatever its price: a caller who declares no reuse need not know of preparing. */
#include "runtime/dispatch/choose.h"

#include <math.h>
#include <string.h>

#include "runtime/dispatch/neighbours.h"
#include "runtime/dispatch/pins.h"
#include "runtime/dispatch/predict.h"
#include "runtime/dispatch/rules.h"

const char *wlm_step_name(wlm_step step) {
  static const char *const names[] = {"fingerprint", "bucket", "rule", "named", "builtin", "pin", "model"};
  return names[step];
}

static double log2_of(int64_t n) { return log2((double)(n > 0 ? n : 1)); }

double wlm_bucket_distance(const wlm_bucket *a, int64_t a_n, const wlm_bucket *b, int64_t b_n) {
  double rows = (a->log2_rows - b->log2_rows) / 2.0;
  double mean = (a->half_log2_mean - b->half_log2_mean) / 2.0;
  double cv = a->cv_class - b->cv_class;
  double n = log2_of(a_n) - log2_of(b_n);
  return sqrt(rows * rows + mean * mean + cv * cv + n * n);
}

static void copy_name(char *to, size_t capacity, const char *from) { snprintf(to, capacity, "%s", from); }

/* ---- the candidates of a case, ranked for so many calls ------------------------------------------- */

typedef struct ranking {
  const wlm_case *c;
  const wlm_ranked *begin, *end;
  int64_t calls;
  const wlm_ranked *plain;    /* the next that needs no preparing */
  const wlm_ranked *prepared; /* the last given that does; NULL = none yet */
} ranking;

static ranking ranking_of(const wlm_snapshot *s, const wlm_case *c, int64_t calls) {
  const wlm_ranked *begin = s->ranked + c->first;
  return (ranking){c, begin, begin + c->count, calls, begin, NULL};
}

static double price(const ranking *r, const wlm_ranked *candidate) {
  return candidate->cost + candidate->prepare / (double)r->calls;
}

/* Equal prices keep the order of the case. */
static int is_before(const ranking *r, const wlm_ranked *a, const wlm_ranked *b) {
  double left = price(r, a), right = price(r, b);
  return left < right || (left == right && a < b);
}

/* From the best to the worst; NULL behind the last. */
static const wlm_ranked *next_ranked(ranking *r) {
  const wlm_ranked *best = NULL;
  while (r->plain < r->end && r->plain->prepare > 0) r->plain++;
  for (const wlm_ranked *i = r->begin; i < r->end; i++)
    if (i->prepare > 0 && (!r->prepared || is_before(r, r->prepared, i)) && (!best || is_before(r, i, best))) best = i;
  if (best && (r->plain == r->end || price(r, best) < price(r, r->plain))) return r->prepared = best;
  return r->plain < r->end ? r->plain++ : NULL;
}

/* Who asks, and what may be chosen. */
typedef struct question {
  const wlm_snapshot *snapshot;
  const wlm_stats *stats;
  const char *key;
  int64_t n, calls;
  const wlm_judge *judge;
  const wlm_model *model;          /* NULL = none for such problems */
  wlm_model_case asked;            /* of the model */
  const wlm_candidate *candidates; /* for the model */
  int64_t candidate_count;
} question;

static int may_prepare(const question *q) { return q->calls > 1; }

static int is_usable(const question *q, const char *variant, int prepare) {
  return q->judge->usable(q->judge->user, variant, prepare);
}

static void refuse(const question *q, const char *variant, wlm_decision *choice) {
  const int index = choice->refused++;
  if (index >= WLM_REFUSALS || !q->judge->why) return;
  wlm_refusal *refusal = &choice->refusals[index];
  wlm_text reason = {0};
  q->judge->why(q->judge->user, variant, may_prepare(q), &reason);
  copy_name(refusal->variant, sizeof refusal->variant, variant);
  copy_name(refusal->reason, sizeof refusal->reason, reason.data && !reason.failed ? reason.data : "is not valid");
  wlm_text_release(&reason);
}

/* The first that may be chosen; NULL where none may. The decision, unless NULL, learns of those before it that are not
 * valid. */
static const wlm_ranked *first_usable(const question *q, const wlm_case *c, wlm_decision *choice) {
  ranking r = ranking_of(q->snapshot, c, q->calls);
  for (const wlm_ranked *candidate; (candidate = next_ranked(&r));) {
    if (candidate->prepare > 0 && !may_prepare(q)) continue;
    if (is_usable(q, candidate->variant, may_prepare(q))) return candidate;
    if (choice) refuse(q, candidate->variant, choice);
  }
  return NULL;
}

/* ---- what explain tells ------------------------------------------------------------------------------ */

/* The best usable one that needs no preparing. */
static const wlm_ranked *best_plain(const question *q, const ranking *r) {
  for (const wlm_ranked *i = r->begin; i < r->end; i++)
    if (!(i->prepare > 0) && is_usable(q, i->variant, 0)) return i;
  return NULL;
}

/* Never 1, for which nothing is prepared. */
static double break_even(const wlm_ranked *candidate, const wlm_ranked *plain) {
  if (!plain || !(candidate->prepare > 0)) return 0;
  if (candidate->cost >= plain->cost) return INFINITY;
  return fmax(2, floor(candidate->prepare / (plain->cost - candidate->cost)) + 1);
}

static const wlm_ranked *pays_soonest(const question *q, const ranking *r, const wlm_ranked *plain) {
  const wlm_ranked *soonest = NULL;
  double fewest = INFINITY;
  for (const wlm_ranked *i = r->begin; i < r->end; i++) {
    double calls = break_even(i, plain);
    if (calls == 0 || calls >= fewest || !is_usable(q, i->variant, 1)) continue;
    soonest = i;
    fewest = calls;
  }
  return soonest;
}

static void describe(const ranking *r, const wlm_ranked *candidate, const wlm_ranked *best, const wlm_ranked *plain,
                     wlm_runner_up *out) {
  copy_name(out->variant, sizeof out->variant, candidate->variant);
  out->seconds = r->c->exact ? candidate->cost : 0;
  out->prepare_seconds = r->c->exact ? candidate->prepare : 0;
  out->relative = price(r, candidate) / price(r, best);
  out->prepare = candidate->prepare / best->cost;
  out->break_even = break_even(candidate, plain);
}

static void decide(const question *q, const wlm_case *c, wlm_step step, double distance, wlm_decision *choice) {
  const wlm_ranked *chosen = first_usable(q, c, choice);
  choice->step = step;
  choice->distance = distance;
  choice->tuned_n = c->n;
  choice->bucket = c->bucket;
  choice->matrices = c->matrices;
  copy_name(choice->borrowed, sizeof choice->borrowed, c->borrowed ? c->borrowed : "");
  copy_name(choice->stale, sizeof choice->stale, chosen->stale ? chosen->stale : "");
  copy_name(choice->variant, sizeof choice->variant, chosen->variant);
  ranking r = ranking_of(q->snapshot, c, q->calls);
  const wlm_ranked *plain = best_plain(q, &r), *best = NULL, *candidate;
  const wlm_ranked *other = chosen->prepare > 0 ? plain : pays_soonest(q, &r, plain);
  while ((candidate = next_ranked(&r)) && choice->runner_count < WLM_RUNNERS_UP) {
    if (!best) best = candidate;
    if (candidate == chosen || choice->runner_count)
      describe(&r, candidate, best, plain, &choice->runners[choice->runner_count++]);
  }
  if (other) describe(&r, other, best, plain, &choice->other);
}

/* ---- the steps --------------------------------------------------------------------------------------- */

static int by_fingerprint(const question *q, wlm_decision *choice) {
  const wlm_snapshot *s = q->snapshot;
  for (int64_t i = 0; i < s->case_count; i++) {
    const wlm_case *c = &s->cases[i];
    if (!c->exact || c->n != q->n || memcmp(c->fingerprint, q->stats->fingerprint, sizeof c->fingerprint) ||
        strcmp(c->problem, q->key) || !first_usable(q, c, NULL))
      continue;
    decide(q, c, WLM_STEP_FINGERPRINT, 0, choice);
    return 1;
  }
  return 0;
}

static int by_bucket(const question *q, wlm_decision *choice) {
  const wlm_snapshot *s = q->snapshot;
  wlm_bucket here;
  wlm_bucket_of(q->stats, &here);
  const wlm_case *nearest = NULL;
  double nearest_distance = WLM_FAR;
  for (int64_t i = 0; i < s->case_count; i++) {
    const wlm_case *c = &s->cases[i];
    if (c->exact || c->bucket.version != here.version || strcmp(c->problem, q->key)) continue;
    double distance = wlm_bucket_distance(&here, q->n, &c->bucket, c->n);
    if (distance > nearest_distance || (nearest && distance == nearest_distance) || !first_usable(q, c, NULL)) continue;
    nearest = c;
    nearest_distance = distance;
  }
  if (nearest) decide(q, nearest, WLM_STEP_BUCKET, nearest_distance, choice);
  return nearest != NULL;
}

/* Skewed is not only what varies much: of a few equal rows each may be more than a processor's even share. */
static int is_skewed(const wlm_stats *s, double min_cv, const wlm_limits *limits) {
  return s->cv >= min_cv || (double)s->longest * limits->processors > (double)s->nnz;
}

/* The longest vector that is valid. */
static int spell_usable(const question *q, const wlm_rule *rule, int64_t n, char variant[WLM_VARIANT_NAME]) {
  for (int number = 0; wlm_rule_spell(rule, n, number, variant); number++)
    if (is_usable(q, variant, may_prepare(q))) return 1;
  return 0;
}

static int by_rule(const question *q, const wlm_spec *spec, const wlm_limits *limits, wlm_decision *choice) {
  const int kind = (int)wlm_rule_kind_of(&spec->problem);
  const int64_t n = kind == WLM_RULE_SDDMM ? q->n / spec->problem.heads : q->n; /* an sddmm for each head */
  for (int i = 0; i < wlm_rule_count; i++) {
    const wlm_rule *rule = &wlm_rules[i];
    if (rule->target != limits->target || rule->kind != kind || n > rule->max_n ||
        !is_skewed(q->stats, rule->min_cv, limits) || q->stats->nnz > rule->max_nnz || q->calls < rule->min_calls ||
        !spell_usable(q, rule, n, choice->variant))
      continue;
    choice->step = WLM_STEP_RULE;
    choice->rule = rule->why;
    return 1;
  }
  *choice->variant = 0;
  return 0;
}

/* The choice without it stays beside, so that explain can tell what a pin costs. */
static int by_pin(const question *q, wlm_decision *choice) {
  const wlm_pin *pin = wlm_pin_find(q->snapshot, q->stats, q->key, q->n);
  if (!pin) return 0;
  copy_name(choice->pin, sizeof choice->pin, pin->variant);
  choice->pin_exact = pin->exact;
  if (!is_usable(q, pin->variant, may_prepare(q))) return 0;
  memcpy(choice->unpinned, choice->variant, sizeof choice->unpinned);
  copy_name(choice->variant, sizeof choice->variant, pin->variant);
  choice->step = WLM_STEP_PIN;
  return 1;
}

/* ---- the model --------------------------------------------------------------------------------------- */

/* A model of another class of devices counts as WLM_FAR farther away: it knows why kernels are quick, but not this
 * device's numbers. */
static double remoteness(const wlm_model_case *asked) {
  return asked->distance + (asked->model->borrowed ? WLM_FAR : 0);
}

static int knows_more(const wlm_model_case *a, const wlm_model_case *b) {
  const int within = a->distance <= WLM_MODEL_FAR;
  if (within != (b->distance <= WLM_MODEL_FAR)) return within;
  if (remoteness(a) != remoteness(b)) return remoteness(a) < remoteness(b);
  return a->model->measurements > b->model->measurements;
}

/* Every model of such problems is asked; the one that learned from the nearest case keeps the word, of equals the one
 * that learned from more. So a few matrices tuned here stand beside a shipped model of hundreds, not in front of it. */
static void find_model(question *q) {
  char problems[WLM_PROBLEM_CLASS];
  wlm_problem_class(q->key, problems);
  for (int64_t i = 0; i < q->snapshot->model_count; i++) {
    const wlm_model *model = &q->snapshot->models[i];
    wlm_model_case asked;
    if (strcmp(model->problems, problems)) continue;
    wlm_model_ask(model, q->stats, q->key, q->n, &asked);
    if (q->model && !knows_more(&asked, &q->asked)) continue;
    q->model = model;
    q->asked = asked;
  }
}

static void ask_model(question *q, wlm_decision *choice) {
  if (q->judge->describe) find_model(q);
  if (!q->model) return;
  q->candidate_count = q->judge->describe(q->judge->user, &q->candidates);
  choice->trained_at = q->model->made_at;
  choice->trained_on = q->model->measurements;
}

static double predict(question *q, const char *variant) {
  if (!q->model || q->asked.distance > WLM_MODEL_FAR) return 0;
  for (int64_t i = 0; i < q->candidate_count; i++)
    if (!strcmp(q->candidates[i].variant, variant)) return wlm_model_seconds(&q->asked, &q->candidates[i]);
  return 0;
}

/* The least predicted price wins. Candidates of families that nobody measured yet are left out and counted. */
static int by_model(question *q, wlm_decision *choice) {
  wlm_prediction best[WLM_RUNNERS_UP];
  if (!q->model || q->asked.distance > WLM_MODEL_FAR) return 0;
  const int count =
      wlm_predict(&q->asked, q->candidates, q->candidate_count, q->calls, best, WLM_RUNNERS_UP, &choice->untrained);
  if (!count) return 0;
  choice->step = WLM_STEP_MODEL;
  choice->distance = q->asked.distance;
  choice->matrices = q->model->place_count;
  copy_name(choice->borrowed, sizeof choice->borrowed, q->model->borrowed ? q->model->borrowed : "");
  copy_name(choice->variant, sizeof choice->variant, best[0].candidate->variant);
  for (int i = 0; i < count; i++) {
    wlm_runner_up *runner = &choice->runners[choice->runner_count++];
    copy_name(runner->variant, sizeof runner->variant, best[i].candidate->variant);
    runner->relative = best[i].price / best[0].price;
    runner->prepare = best[i].prepare / best[0].seconds;
  }
  return 1;
}

static void add_predictions(question *q, wlm_decision *choice) {
  if (!q->model) return;
  for (int i = 0; i < choice->runner_count; i++) choice->runners[i].predicted = predict(q, choice->runners[i].variant);
  choice->predicted = predict(q, choice->variant);
  choice->spread = choice->predicted > 0 ? wlm_model_spread(&q->asked) : 0;
}

wlm_status wlm_choose(const wlm_snapshot *snapshot, const wlm_stats *stats, const char *problem_key,
                      const wlm_spec *spec, const wlm_limits *limits, const wlm_judge *judge, wlm_decision *choice) {
  const int64_t n = spec->problem.n, calls = spec->problem.expected_calls;
  question q = {.snapshot = snapshot, .stats = stats, .key = problem_key, .n = n, .calls = calls, .judge = judge};
  *choice = (wlm_decision){.calls = calls};
  ask_model(&q, choice);
  const int found =
      by_fingerprint(&q, choice) || by_model(&q, choice) || by_bucket(&q, choice) || by_rule(&q, spec, limits, choice);
  choice->neighbour_count = wlm_neighbours_find(snapshot, stats, problem_key, n, choice->neighbours);
  if (by_pin(&q, choice) || found) {
    add_predictions(&q, choice);
    return WLM_OK;
  }
  return wlm_fail(
      WLM_ERR_NOT_FOUND,
      "nothing tuned and no built-in rule serves %s with n = %lld on this device; tune it, or name a variant",
      problem_key, (long long)n);
}
