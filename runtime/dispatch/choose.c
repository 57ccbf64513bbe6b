/* Choosing goes from the most to the least that is known: this very matrix; what a model learned from matrices that are
 * not far; where there is no model, the nearest bucket of matrices that were tuned for the same operator and types; a
 * table of rules. Each step hands over a ranked list and the first candidate that is valid for the problem at hand
 * wins, because a variant that was best for one N need not exist for another. What is known to fail on this very matrix
 * is chosen by none of them. */
#include "runtime/dispatch/choose.h"

#include <math.h>
#include <string.h>

#include "runtime/dispatch/neighbours.h"
#include "runtime/dispatch/pins.h"
#include "runtime/dispatch/question.h"
#include "runtime/dispatch/rules.h"

const char *wlmi_step_name(wlm_step step) {
  static const char *const names[] = {"fingerprint", "bucket", "rule", "named", "builtin", "pin", "model"};
  return names[step];
}

static double log2_of(int64_t n) { return log2((double)(n > 0 ? n : 1)); }

double wlmi_bucket_distance(const wlmi_bucket *a, int64_t a_n, const wlmi_bucket *b, int64_t b_n) {
  double rows = (a->log2_rows - b->log2_rows) / 2.0;
  double mean = (a->half_log2_mean - b->half_log2_mean) / 2.0;
  double cv = a->cv_class - b->cv_class;
  double n = log2_of(a_n) - log2_of(b_n);
  return sqrt(rows * rows + mean * mean + cv * cv + n * n);
}

/* ---- tuned cases ------------------------------------------------------------------------------------- */

static int is_this_matrix(const wlmi_question *q, const wlmi_case *c, const char *key) {
  return c->exact && c->n == q->n && !memcmp(c->fingerprint, q->stats->fingerprint, sizeof c->fingerprint) &&
         !strcmp(c->problem, key);
}

static int may_decide(const wlmi_question *q, const wlmi_case *c) {
  for (int i = 0; i < q->doubt_count; i++)
    if (q->doubts[i] == c) return 0;
  return wlmi_ranking_serves(q, c);
}

static const wlmi_case *find_exact(const wlmi_question *q) {
  const wlmi_snapshot *s = q->snapshot;
  for (int64_t i = 0; i < s->case_count; i++)
    if (is_this_matrix(q, &s->cases[i], q->topic.key) && may_decide(q, &s->cases[i])) return &s->cases[i];
  return NULL;
}

static const wlmi_case *find_bucket(const wlmi_question *q, double *nearest_distance) {
  const wlmi_snapshot *s = q->snapshot;
  wlmi_bucket here;
  wlmi_bucket_of(q->stats, &here);
  const wlmi_case *nearest = NULL;
  *nearest_distance = WLM_FAR;
  for (int64_t i = 0; i < s->case_count; i++) {
    const wlmi_case *c = &s->cases[i];
    if (c->exact || c->bucket.version != here.version || strcmp(c->problem, q->topic.key)) continue;
    double distance = wlmi_bucket_distance(&here, q->n, &c->bucket, c->n);
    if (distance > *nearest_distance || (nearest && distance == *nearest_distance) || !may_decide(q, c)) continue;
    nearest = c;
    *nearest_distance = distance;
  }
  return nearest;
}

/* Of this device's class: what another class of devices cannot run may well run here. */
static const wlmi_case *matrix_of(const wlmi_question *q, const char *key) {
  const wlmi_snapshot *s = q->snapshot;
  for (int64_t i = 0; i < s->case_count && key; i++)
    if (is_this_matrix(q, &s->cases[i], key) && !s->cases[i].borrowed) return &s->cases[i];
  return NULL;
}

/* ---- rules ------------------------------------------------------------------------------------------- */

/* Skewed is not only what varies much: of a few equal rows each may be more than a processor's even share. */
static int is_skewed(const wlm_stats *s, double min_cv, const wlmi_limits *limits) {
  return s->cv >= min_cv || (double)s->longest * limits->processors > (double)s->nnz;
}

/* With the longest vector that is valid; where none is, with the shortest. */
static int spell_usable(const wlmi_question *q, const wlmi_rule *rule, int64_t n, char variant[WLM_VARIANT_NAME]) {
  for (int number = 0; wlmi_rule_spell(rule, n, number, variant); number++)
    if (wlmi_question_allows(q, variant, wlmi_question_may_prepare(q))) return 1;
  return 0;
}

/* All that the rules name failed on this very matrix: anything that did not. */
static int by_what_is_left(wlmi_question *q, wlmi_decision *choice) {
  if (!wlmi_question_failures(q)) return 0;
  wlmi_question_describe(q);
  for (int64_t i = 0; i < q->candidate_count; i++) {
    if (q->candidates[i].prepares) continue;
    choice->step = WLM_STEP_RULE;
    choice->rule = "what rules name failed here, so any that did not";
    wlmi_copy_name(choice->variant, sizeof choice->variant, q->candidates[i].variant);
    return 1;
  }
  return 0;
}

static int by_rule(wlmi_question *q, wlmi_decision *choice) {
  choice->distance = (double)NAN;
  const wlmi_spec *spec = q->spec;
  const wlmi_limits *limits = q->limits;
  const int kind = (int)wlmi_rule_kind_of(&spec->problem);
  const int64_t n = kind == WLM_RULE_SDDMM ? q->n / spec->problem.heads : q->n; /* an sddmm for each head */
  for (int i = 0; i < wlmi_rule_count; i++) {
    const wlmi_rule *rule = &wlmi_rules[i];
    if (rule->target != limits->target || rule->kind != kind || n > rule->max_n ||
        !is_skewed(q->stats, rule->min_cv, limits) || q->stats->nnz > rule->max_nnz || q->calls < rule->min_calls)
      continue;
    if (!spell_usable(q, rule, n, choice->variant)) {
      wlmi_question_refuse(q, choice->variant, choice);
      continue;
    }
    choice->step = WLM_STEP_RULE;
    choice->rule = rule->why;
    return 1;
  }
  *choice->variant = 0;
  return by_what_is_left(q, choice);
}

/* ---- from the most to the least that is known ------------------------------------------------------------ */

static int settle(wlmi_question *q, wlmi_decision *choice);

/* Where in the list of simpler problems the topic stands; 0 = before all of them. */
static int simplified(const wlmi_question *q) {
  for (int i = 0; i < q->simpler_count; i++)
    if (q->topic.key == q->simpler[i].key) return i + 1;
  return 0;
}

static void simplify(wlmi_question *q, int to, wlmi_decision *choice) {
  q->topic = wlmi_topic_make(q, q->simpler[to].key);
  wlmi_copy_name(choice->like, sizeof choice->like, q->simpler[to].like);
}

/* What was tuned for a simpler problem is worth more than a rule. Rules do not depend on the key: where they decide,
 * nothing was like anything. */
static int by_simpler_problem(wlmi_question *q, wlmi_decision *choice) {
  const wlmi_topic before = q->topic;
  const int next = simplified(q);
  if (next == q->simpler_count) return 0;
  simplify(q, next, choice);
  if (settle(q, choice) && choice->step != WLM_STEP_RULE) return 1;
  q->topic = before;
  *choice = (wlmi_decision){.calls = q->calls};
  return 0;
}

/* And where that is this very matrix, more than what a model expects. */
static const wlmi_case *find_exact_of_simpler(wlmi_question *q, wlmi_decision *choice) {
  const wlmi_topic before = q->topic;
  const int from = simplified(q);
  for (int next = from; next < q->simpler_count; next++) {
    simplify(q, next, choice);
    const wlmi_case *c = find_exact(q);
    if (c) return c;
  }
  q->topic = before;
  wlmi_copy_name(choice->like, sizeof choice->like, from ? q->simpler[from - 1].like : "");
  return NULL;
}

/* Too few to say what is best: less than WLM_THIN and less than a third of all there are. */
static int is_thin(wlmi_question *q, const wlmi_case *c) {
  const int64_t known = c->count + c->failure_count;
  if (known >= WLM_THIN) return 0;
  wlmi_question_describe(q);
  return 3 * known < q->candidate_count + wlmi_question_failures(q);
}

/* A thin case, left behind by a tuning that was cut short or by an import of a few lines, is believed only where it
 * measured what would be chosen without it: then its winner is better than that; otherwise nobody knows. */
static int doubt(wlmi_question *q, const wlmi_case *c, wlmi_decision *choice) {
  const wlmi_topic topic = q->topic;
  wlmi_decision instead = {.calls = q->calls};
  q->doubts[q->doubt_count++] = c;
  if (!settle(q, &instead) || wlmi_question_knows(q, c, instead.variant)) {
    q->topic = topic;
    return 0;
  }
  *choice = instead;
  choice->thin_known = c->count + c->failure_count;
  choice->thin_of = q->candidate_count + wlmi_question_failures(q);
  choice->thin_exact = c->exact;
  wlmi_copy_name(choice->thin_variant, sizeof choice->thin_variant, q->snapshot->ranked[c->first].variant);
  return 1;
}

static int settle(wlmi_question *q, wlmi_decision *choice) {
  const int asks = q->doubt_count < WLM_DOUBTS;
  const wlmi_case *c = asks ? find_exact(q) : NULL;
  double distance = 0;
  if (!c && asks) c = find_exact_of_simpler(q, choice);
  if (!c && wlmi_choose_by_model(q, choice)) return 1;
  if (!c && asks) c = find_bucket(q, &distance);
  if (!c) return by_simpler_problem(q, choice) || by_rule(q, choice);
  if (!is_thin(q, c) || !doubt(q, c, choice))
    wlmi_ranking_decide(q, c, c->exact ? WLM_STEP_FINGERPRINT : WLM_STEP_BUCKET, distance, choice);
  return 1;
}

/* The choice without it stays beside, so that explain can tell what a pin costs. */
static int by_pin(const wlmi_question *q, const char *key, wlmi_decision *choice) {
  const wlmi_pin *pin = wlmi_pin_find(q->snapshot, q->stats, key, q->n);
  if (!pin && q->topic.key != key) pin = wlmi_pin_find(q->snapshot, q->stats, q->topic.key, q->n);
  if (!pin) return 0;
  wlmi_copy_name(choice->pin, sizeof choice->pin, pin->variant);
  choice->pin_exact = pin->exact;
  if (!wlmi_question_allows(q, pin->variant, wlmi_question_may_prepare(q))) {
    wlmi_question_reason(q, pin->variant, choice->pin_reason);
    return 0;
  }
  memcpy(choice->unpinned, choice->variant, sizeof choice->unpinned);
  wlmi_copy_name(choice->variant, sizeof choice->variant, pin->variant);
  choice->step = WLM_STEP_PIN;
  return 1;
}

/* Kernels for A^T, for positions and for heads are those for A with a few lines more; those for any operator are those
 * for a sum of products with another line. */
static void add_simpler(const wlmi_spec *simpler, const char *problem_key, const char *like,
                        wlmi_simpler list[WLM_SIMPLER], int *count) {
  wlmi_simpler *s = &list[*count];
  wlmi_spec_key(simpler, s->key);
  if (!strcmp(s->key, problem_key) || (*count && !strcmp(s->key, list[0].key))) return;
  wlmi_copy_name(s->like, sizeof s->like, like);
  ++*count;
}

static int find_simpler(const wlmi_spec *spec, const char *problem_key, wlmi_simpler list[WLM_SIMPLER]) {
  const wlm_problem *p = &spec->problem;
  wlmi_spec simpler = *spec;
  char like[WLM_LIKE];
  int count = 0;
  snprintf(like, sizeof like, "%s%s%s", p->transpose ? ", untransposed" : "",
           p->want_argmax ? ", without positions" : "", p->heads > 1 ? ", with one head" : "");
  simpler.problem.transpose = simpler.problem.want_argmax = 0;
  simpler.problem.heads = 1;
  add_simpler(&simpler, problem_key, like, list, &count);
  simpler.problem.message = WLM_MUL;
  simpler.problem.reduce = WLM_SUM;
  simpler.problem.custom = NULL;
  simpler.problem.empty = WLM_EMPTY_ZERO;
  add_simpler(&simpler, problem_key, ", for a sum of products", list, &count);
  return count;
}

wlm_status wlmi_choose(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem_key,
                       const wlmi_spec *spec, const wlmi_limits *limits, const wlmi_judge *judge,
                       wlmi_decision *choice) {
  wlmi_question q = {.snapshot = snapshot,
                     .stats = stats,
                     .spec = spec,
                     .limits = limits,
                     .n = spec->problem.n,
                     .calls = spec->problem.policy.expected_calls,
                     .judge = judge};
  wlmi_simpler simpler[WLM_SIMPLER];
  *choice = (wlmi_decision){.calls = q.calls};
  q.simpler = simpler;
  q.simpler_count = find_simpler(spec, problem_key, simpler);
  q.matrices[0] = matrix_of(&q, problem_key);
  for (int i = 0; i < q.simpler_count; i++) q.matrices[1 + i] = matrix_of(&q, simpler[i].key);
  q.topic = wlmi_topic_make(&q, problem_key);
  const int found = settle(&q, choice);
  wlmi_question_tell_failures(&q, choice);
  choice->neighbour_count = wlmi_neighbours_find(snapshot, stats, q.topic.key, q.n, choice->neighbours);
  const int chosen = by_pin(&q, problem_key, choice) || found;
  if (chosen) wlmi_add_predictions(&q, choice);
  wlmi_question_release(&q);
  if (chosen) return WLM_OK;
  return wlmi_fail(WLM_ERR_NOT_FOUND,
                   "nothing tuned and no built-in rule serves %s with n = %lld on this device%s; tune it, or name a "
                   "variant",
                   problem_key, (long long)q.n, choice->failed ? ", and some kernels failed on this very matrix" : "");
}
