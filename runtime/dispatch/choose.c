/* Choosing goes from the most to the least that is known: this very matrix; the nearest bucket of matrices
 * that were tuned for the same operator and types; a table of rules. Each step hands over a ranked list and
 * the first candidate that is valid for the problem at hand wins, because a variant that was best for one N
 * need not exist for another. */
#include "runtime/dispatch/choose.h"

#include <math.h>
#include <string.h>

#include "runtime/dispatch/rules.h"

const char *wlm_step_name(wlm_step step) {
  static const char *const names[] = {"fingerprint", "bucket", "rule", "named", "builtin"};
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

/* Index of the first usable candidate of a case, -1 where there is none. */
static int64_t first_usable(const wlm_snapshot *s, const wlm_case *c, int (*usable)(void *, const char *), void *user) {
  for (int64_t i = 0; i < c->count; i++)
    if (usable(user, s->ranked[c->first + i].variant)) return i;
  return -1;
}

static void decide(const wlm_snapshot *s, const wlm_case *c, int64_t index, wlm_step step, double distance,
                   wlm_decision *choice) {
  choice->step = step;
  choice->distance = distance;
  choice->tuned_n = c->n;
  choice->bucket = c->bucket;
  choice->refused = (int)index;
  choice->matrices = c->matrices;
  copy_name(choice->variant, sizeof choice->variant, s->ranked[c->first + index].variant);
  for (int64_t i = index; i < c->count && choice->runner_count < WLM_RUNNERS_UP; i++) {
    const wlm_ranked *r = &s->ranked[c->first + i];
    wlm_runner_up *runner = &choice->runners[choice->runner_count++];
    copy_name(runner->variant, sizeof runner->variant, r->variant);
    runner->seconds = r->seconds;
    runner->relative = r->relative;
  }
}

static int by_fingerprint(const wlm_snapshot *s, const wlm_stats *stats, const char *key, int64_t n,
                          int (*usable)(void *, const char *), void *user, wlm_decision *choice) {
  for (int64_t i = 0; i < s->case_count; i++) {
    const wlm_case *c = &s->cases[i];
    if (!c->exact || c->n != n || memcmp(c->fingerprint, stats->fingerprint, sizeof c->fingerprint) ||
        strcmp(c->problem, key))
      continue;
    int64_t index = first_usable(s, c, usable, user);
    if (index < 0) continue;
    decide(s, c, index, WLM_STEP_FINGERPRINT, 0, choice);
    return 1;
  }
  return 0;
}

static int by_bucket(const wlm_snapshot *s, const wlm_stats *stats, const char *key, int64_t n,
                     int (*usable)(void *, const char *), void *user, wlm_decision *choice) {
  wlm_bucket here;
  wlm_bucket_of(stats, &here);
  const wlm_case *nearest = NULL;
  double nearest_distance = WLM_FAR;
  int64_t index = -1;
  for (int64_t i = 0; i < s->case_count; i++) {
    const wlm_case *c = &s->cases[i];
    if (c->exact || c->bucket.version != here.version || strcmp(c->problem, key)) continue;
    double distance = wlm_bucket_distance(&here, n, &c->bucket, c->n);
    if (distance > nearest_distance || (nearest && distance == nearest_distance)) continue;
    int64_t candidate = first_usable(s, c, usable, user);
    if (candidate < 0) continue;
    nearest = c;
    nearest_distance = distance;
    index = candidate;
  }
  if (nearest) decide(s, nearest, index, WLM_STEP_BUCKET, nearest_distance, choice);
  return nearest != NULL;
}

static int by_rule(const wlm_stats *stats, const wlm_spec *spec, const wlm_limits *limits,
                   int (*usable)(void *, const char *), void *user, wlm_decision *choice) {
  int sampled = spec->problem.sample != WLM_SAMPLE_NONE;
  for (int i = 0; i < wlm_rule_count; i++) {
    const wlm_rule *rule = &wlm_rules[i];
    if (rule->target != limits->target || rule->sampled != sampled || spec->problem.n > rule->max_n ||
        stats->cv < rule->min_cv || stats->nnz > rule->max_nnz || spec->problem.expected_calls < rule->min_calls ||
        !usable(user, rule->variant))
      continue;
    choice->step = WLM_STEP_RULE;
    choice->rule = rule->why;
    copy_name(choice->variant, sizeof choice->variant, rule->variant);
    return 1;
  }
  return 0;
}

wlm_status wlm_choose(const wlm_snapshot *snapshot, const wlm_stats *stats, const char *problem_key,
                      const wlm_spec *spec, const wlm_limits *limits, int (*usable)(void *user, const char *variant),
                      void *user, wlm_decision *choice) {
  *choice = (wlm_decision){0};
  int64_t n = spec->problem.n;
  if (by_fingerprint(snapshot, stats, problem_key, n, usable, user, choice)) return WLM_OK;
  if (by_bucket(snapshot, stats, problem_key, n, usable, user, choice)) return WLM_OK;
  if (by_rule(stats, spec, limits, usable, user, choice)) return WLM_OK;
  return wlm_fail(
      WLM_ERR_NOT_FOUND,
      "nothing tuned and no built-in rule serves %s with n = %lld on this device; tune it, or name a variant",
      problem_key, (long long)n);
}
