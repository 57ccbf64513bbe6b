/* Selection: the order of its steps (this very matrix, the nearest bucket, the rules), and that only valid variants are
 * chosen. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/memory.h"
#include "generator/generator.h"
#include "select/rules.h"
#include "support/asserts.h"
#include "support/snapshot_fixture.h"

static const wlmi_limits cuda = {
    .target = WLM_TARGET_CUDA, .arch = 90, .threads_per_block = 1024, .shared_bytes = 232448, .processors = 132};
static const wlmi_limits host = {.target = WLM_TARGET_HOST, .processors = 8};

/* Kinds of problems other than those of the rules; the rules for sampling and for SDDMM serve them too. */
enum { SAMPLED_TRANSPOSE = WLM_RULE_SDDMM + 1, SAMPLED_SDDMM, KINDS };

static wlmi_spec spec_of(int64_t n, int kind) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_csr csr = WLM_CSR_INIT;
  wlmi_spec spec;
  problem.n = n;
  if (kind == WLM_RULE_SDDMM || kind == SAMPLED_SDDMM) problem.operation = WLM_SDDMM;
  problem.transpose = kind == SAMPLED_TRANSPOSE;
  if (kind == WLM_RULE_SAMPLED || kind > WLM_RULE_SDDMM) {
    problem.sampling.sample = WLM_SAMPLE_FASTRAND;
    problem.sampling.width = 2304;
  }
  csr.values = &csr;
  assert_int_equal(wlmi_spec_make(&problem, &csr, &spec), WLM_OK);
  return spec;
}

static wlm_stats stats_of(int64_t rows, int64_t nnz, double cv, uint64_t fingerprint) {
  wlm_stats stats = WLM_STATS_INIT;
  stats.rows = stats.cols = rows;
  stats.nnz = nnz;
  stats.longest = rows ? (nnz + rows - 1) / rows : 0;
  stats.mean = rows ? (double)nnz / (double)rows : 0;
  stats.cv = cv;
  stats.fingerprint[0] = fingerprint;
  return stats;
}

static void add_case(wlmi_snapshot *snapshot, const wlm_stats *stats, int exact, const char *problem, int64_t n,
                     const char *const variants[]) {
  snapshot_case(snapshot, stats, exact, problem, n);
  for (int i = 0; variants[i]; i++) snapshot_measured(snapshot, variants[i], i + 1, 0);
}

/* Valid are all variants except those that begin with "no"; "turned", which now needs preparation, is valid only if
 * that is allowed. */
static int accepts(void *user, const wlmi_variant *value, int may_prepare) {
  char variant[WLM_VARIANT_NAME];
  (void)user;
  wlmi_variant_print(snapshot_families(), value, variant);
  return strncmp(variant, "no", 2) != 0 && (may_prepare || strcmp(variant, "turned"));
}

static wlmi_variant_set accepted(void) {
  return (wlmi_variant_set){.families = snapshot_families(), .is_valid = accepts};
}

static wlmi_decision decide_for(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem, int64_t n,
                                int64_t calls) {
  wlmi_decision decision;
  wlmi_spec spec = spec_of(n, 0);
  const wlmi_variant_set variants = accepted();
  spec.problem.policy.expected_calls = calls;
  assert_int_equal(select_for(snapshot, stats, problem, &spec, &host, &variants, &decision), WLM_OK);
  return decision;
}

static wlmi_decision decide(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem, int64_t n) {
  return decide_for(snapshot, stats, problem, n, 1);
}

static void steps_are_in_order(void **state) {
  (void)state;
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7), alike = stats_of(1020, 9300, 1.1, 8),
                  near = stats_of(1000, 40000, 1, 9), far = stats_of(10000000, 20000000, 40, 10);
  add_case(&snapshot, &tuned, 0, "p", 32, (const char *const[]){"bucket", NULL});
  add_case(&snapshot, &tuned, 1, "p", 32, (const char *const[]){"exact", "second", NULL});
  wlmi_decision d = decide(&snapshot, &tuned, "p", 32);
  assert_int_equal(d.step, WLM_STEP_FINGERPRINT);
  assert_string_equal(d.variant, "exact");
  assert_int_equal(d.ranked_count, 2);
  assert_string_equal(d.ranked[1].variant, "second");
  assert_true(d.ranked[1].seconds == 2e-6 && d.ranked[1].relative == 2);
  assert_true(d.ranked[1].prepare == 0 && d.ranked[1].break_even == 0);
  assert_string_equal(d.other.variant, "");
  d = decide(&snapshot, &alike, "p", 32);
  assert_int_equal(d.step, WLM_STEP_BUCKET);
  assert_true(d.distance == 0);
  d = decide(&snapshot, &tuned, "p", 64); /* the exact case is for another N */
  assert_int_equal(d.step, WLM_STEP_BUCKET);
  assert_true(d.distance == 1 && d.tuned_n == 32);
  d = decide(&snapshot, &near, "p", 32);
  assert_int_equal(d.step, WLM_STEP_BUCKET);
  assert_true(d.distance > 1.9 && d.distance < 2.6);
  assert_int_equal(decide(&snapshot, &far, "p", 32).step, WLM_STEP_RULE);
  assert_int_equal(decide(&snapshot, &tuned, "another", 32).step, WLM_STEP_RULE);
  wlmi_snapshot_clear(&snapshot);
}

static wlmi_decision decide_as(const wlmi_snapshot *snapshot, const wlm_stats *stats, const wlmi_spec *spec) {
  wlmi_decision decision;
  char key[WLM_SPEC_KEY];
  const wlmi_variant_set variants = accepted();
  wlmi_spec_key(spec, key);
  assert_int_equal(select_for(snapshot, stats, key, spec, &host, &variants, &decision), WLM_OK);
  return decision;
}

/* A tuning of the sum of products on this matrix serves other operators, unless they were tuned themselves. */
static void other_operators_follow_the_sum(void **state) {
  (void)state;
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7), alike = stats_of(1020, 9300, 1.1, 8);
  wlmi_spec spec = spec_of(32, 0);
  char sum[WLM_SPEC_KEY], max[WLM_SPEC_KEY];
  wlmi_spec_key(&spec, sum);
  spec.problem.reduce = WLM_MAX;
  wlmi_spec_key(&spec, max);
  add_case(&snapshot, &tuned, 1, sum, 32, (const char *const[]){"sum's", NULL});
  wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
  assert_int_equal(d.step, WLM_STEP_FINGERPRINT);
  assert_string_equal(d.variant, "sum's");
  assert_string_equal(d.like, ", for a sum of products");
  assert_int_equal(decide_as(&snapshot, &alike, &spec).step, WLM_STEP_RULE);
  spec.problem.want_argmax = 1;
  assert_string_equal(decide_as(&snapshot, &tuned, &spec).variant, "sum's");

  add_case(&snapshot, &tuned, 1, max, 32, (const char *const[]){"max's", NULL});
  d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "max's");
  assert_string_equal(d.like, ", without positions");
  spec.problem.want_argmax = 0;
  d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "max's");
  assert_string_equal(d.like, "");
  wlmi_snapshot_clear(&snapshot);
}

/* The same for a user-defined operator. */
static void a_custom_operator_follows_the_sum(void **state) {
  (void)state;
  wlmi_snapshot snapshot = {.case_count = 0};
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7);
  wlmi_spec sum = spec_of(32, 0), spec;
  wlm_problem problem = sum.problem;
  wlm_csr csr = WLM_CSR_INIT;
  char key[WLM_SPEC_KEY];
  csr.values = &csr;
  problem.reduce = WLM_CUSTOM;
  problem.custom = "init=0;reduce=acc+fabs(x)";
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
  wlmi_spec_key(&sum, key);
  add_case(&snapshot, &tuned, 1, key, 32, (const char *const[]){"sum's", NULL});
  const wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
  assert_int_equal(d.step, WLM_STEP_FINGERPRINT);
  assert_string_equal(d.variant, "sum's");
  assert_string_equal(d.like, ", for a sum of products");
  wlmi_snapshot_clear(&snapshot);
}

/* What was measured of another operation, or of the other direction, decides only where nothing is known of the own. */
static void attention_follows_attention(void **state) {
  (void)state;
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7), alike = stats_of(1020, 9300, 1.1, 8);
  wlmi_spec spec = spec_of(32, 0);
  char sum[WLM_SPEC_KEY], forward[WLM_SPEC_KEY], gradient[WLM_SPEC_KEY];
  wlmi_spec_key(&spec, sum);
  spec.problem.operation = WLM_ATTENTION;
  wlmi_spec_key(&spec, forward);
  add_case(&snapshot, &tuned, 1, sum, 32, (const char *const[]){"sum's", NULL});
  wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "sum's");
  assert_string_equal(d.like, ", for a sum of products");
  add_case(&snapshot, &alike, 0, forward, 32, (const char *const[]){"forward's", NULL});
  spec.problem.dropout = 1;
  spec.problem.heads = 4;
  d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "forward's");
  assert_string_equal(d.like, ", without dropout, with one head");
  assert_int_equal(d.step, WLM_STEP_BUCKET);
  spec.problem.transpose = 1;
  assert_string_equal(decide_as(&snapshot, &tuned, &spec).variant, "sum's");
  spec.problem.dropout = 0;
  spec.problem.heads = 1;
  wlmi_spec_key(&spec, gradient);
  add_case(&snapshot, &alike, 0, gradient, 32, (const char *const[]){"gradient's", NULL});
  assert_string_equal(decide_as(&snapshot, &tuned, &spec).variant, "gradient's");
  wlmi_snapshot_clear(&snapshot);
}

/* Of simpler problems the nearest decides: that with one head is nearer than that without a transpose. */
static void several_heads_follow_one_head(void **state) {
  (void)state;
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7);
  wlmi_spec spec = spec_of(32, 0);
  char sum[WLM_SPEC_KEY], transposed[WLM_SPEC_KEY];
  wlmi_spec_key(&spec, sum);
  spec.problem.transpose = 1;
  wlmi_spec_key(&spec, transposed);
  spec.problem.heads = 4;
  add_case(&snapshot, &tuned, 1, sum, 32, (const char *const[]){"sum's", NULL});
  wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "sum's");
  assert_string_equal(d.like, ", untransposed, with one head");
  add_case(&snapshot, &tuned, 1, transposed, 32, (const char *const[]){"transpose's", NULL});
  d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "transpose's");
  assert_string_equal(d.like, ", with one head");
  spec.problem.heads = 1;
  assert_string_equal(decide_as(&snapshot, &tuned, &spec).like, "");
  wlmi_snapshot_clear(&snapshot);
}

/* A fingerprint of zeros matches no case. */
static void no_fingerprint_matches_none(void **state) {
  (void)state;
  wlmi_snapshot snapshot = {.case_count = 0};
  const wlm_stats nameless = stats_of(1000, 9000, 1, 0);
  add_case(&snapshot, &nameless, 1, "p", 32, (const char *const[]){"exact", NULL});
  assert_int_equal(decide(&snapshot, &nameless, "p", 32).step, WLM_STEP_RULE);
  wlmi_snapshot_clear(&snapshot);
}

static void takes_the_nearest_bucket(void **state) {
  (void)state;
  wlmi_snapshot snapshot = {0};
  const wlm_stats here = stats_of(1000, 9000, 1, 1), twice = stats_of(1000, 18000, 1, 2),
                  four = stats_of(1000, 36000, 1, 3);
  add_case(&snapshot, &four, 0, "p", 32, (const char *const[]){"four", NULL});
  add_case(&snapshot, &twice, 0, "p", 32, (const char *const[]){"twice", NULL});
  add_case(&snapshot, &here, 0, "p", 64, (const char *const[]){"other n", NULL});
  assert_string_equal(decide(&snapshot, &here, "p", 32).variant, "twice");
  assert_string_equal(decide(&snapshot, &here, "p", 128).variant, "other n");
  wlmi_snapshot_clear(&snapshot);
}

static void leaves_out_invalid_variants(void **state) {
  (void)state;
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7);
  add_case(&snapshot, &tuned, 1, "p", 32, (const char *const[]){"no", "not", "yes", "later", NULL});
  add_case(&snapshot, &tuned, 1, "q", 32, (const char *const[]){"no", NULL});
  add_case(&snapshot, &tuned, 0, "q", 32, (const char *const[]){"none", NULL});
  wlmi_decision d = decide(&snapshot, &tuned, "p", 32);
  assert_string_equal(d.variant, "yes");
  assert_int_equal(d.refused, 2);
  assert_int_equal(d.ranked_count, 2);
  assert_int_equal(decide(&snapshot, &tuned, "q", 32).step, WLM_STEP_RULE);
  wlmi_snapshot_clear(&snapshot);
}

/* Measurements by a version that had other families or parameter values. */
static void leaves_out_variants_that_no_longer_exist(void **state) {
  (void)state;
  wlmi_snapshot snapshot = {.families = snapshot_families()};
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7);
  add_case(&snapshot, &tuned, 1, "p", 32,
           (const char *const[]){"host_gone/rows=1", "host_row/rows=3,tile=32", "host_row/rows=128,tile=16", NULL});
  add_case(&snapshot, &tuned, 1, "q", 32, (const char *const[]){"host_gone/rows=1", NULL});
  snapshot_failure(&snapshot, "host_gone/rows=2", "why");
  wlmi_decision d = decide(&snapshot, &tuned, "p", 32);
  assert_string_equal(d.variant, "host_row/rows=128,tile=16");
  assert_int_equal(d.step, WLM_STEP_FINGERPRINT);
  assert_int_equal(d.refused, 2);
  assert_string_equal(d.refusals[0].variant, "host_gone/rows=1");
  d = decide(&snapshot, &tuned, "q", 32);
  assert_int_equal(d.step, WLM_STEP_RULE);
  assert_true(d.failed == 1 && !strcmp(d.failures[0].variant, "host_gone/rows=2"));
  wlmi_snapshot_clear(&snapshot);
}

static void add_failure(wlmi_snapshot *snapshot, const char *variant) {
  snapshot_failure(snapshot, variant, "it was wrong");
}

/* A variant that failed on the matrix is not chosen for it by a bucket, a rule or another device class, but for
 * other matrices it is. */
static void failed_variants_are_not_chosen(void **state) {
  (void)state;
  wlmi_snapshot snapshot = {0}, lent = {0};
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7), alike = stats_of(1020, 9300, 1.1, 8);
  add_case(&snapshot, &tuned, 1, "p", 32, (const char *const[]){"exact", NULL});
  add_failure(&snapshot, "bucket");
  add_case(&snapshot, &tuned, 1, "q", 32, (const char *const[]){NULL});
  add_failure(&snapshot, "bucket");
  add_failure(&snapshot, "other");
  add_case(&snapshot, &tuned, 0, "q", 32, (const char *const[]){"bucket", "second", NULL});
  assert_string_equal(decide(&snapshot, &alike, "q", 32).variant, "bucket");
  wlmi_decision d = decide(&snapshot, &tuned, "p", 32);
  assert_string_equal(d.variant, "exact");
  assert_true(d.failed == 1 && d.refused == 0);
  assert_string_equal(d.failures[0].variant, "bucket");
  d = decide(&snapshot, &tuned, "q", 32);
  assert_int_equal(d.step, WLM_STEP_BUCKET);
  assert_string_equal(d.variant, "second");
  assert_true(d.failed == 2 && d.refused == 1 && d.similar_count == 1);
  assert_string_equal(d.refusals[0].variant, "bucket");
  assert_string_equal(d.refusals[0].reason, "failed on this very matrix: it was wrong");

  char first[WLM_VARIANT_NAME];
  d = decide(&snapshot, &tuned, "r", 32);
  assert_int_equal(d.step, WLM_STEP_RULE);
  strcpy(first, d.variant);
  add_case(&snapshot, &tuned, 1, "r", 32, (const char *const[]){NULL});
  add_failure(&snapshot, first);
  d = decide(&snapshot, &tuned, "r", 32);
  assert_int_equal(d.step, WLM_STEP_RULE);
  assert_string_not_equal(d.variant, first);
  assert_string_equal(decide(&snapshot, &alike, "r", 32).variant, first);

  add_case(&lent, &tuned, 1, "r", 32, (const char *const[]){NULL});
  add_failure(&lent, first);
  lent.cases[0].borrowed = "another class";
  assert_string_equal(decide(&lent, &tuned, "r", 32).variant, first);
  wlmi_snapshot_clear(&snapshot);
  wlmi_snapshot_clear(&lent);
}

/* Screening compares only a few rows, so a matrix with nothing but screening runs does not count as tuned. */
static void screening_runs_decide_nothing(void **state) {
  (void)state;
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7);
  wlmi_snapshot snapshot = {0};
  add_case(&snapshot, &tuned, 1, "p", 32, (const char *const[]){"first", "second", "third", NULL});
  wlmi_measured *candidates = (wlmi_measured *)snapshot.cases[0].candidates;
  candidates[0].precise = 0;
  assert_string_equal(decide(&snapshot, &tuned, "p", 32).variant, "second");
  candidates[1].precise = candidates[2].precise = 0;
  assert_int_equal(decide(&snapshot, &tuned, "p", 32).step, WLM_STEP_RULE);
  candidates[2].online = 1; /* online tuning compares all rows */
  assert_string_equal(decide(&snapshot, &tuned, "p", 32).variant, "third");
  wlmi_snapshot_clear(&snapshot);
}

/* All kernels failed on this matrix: one that failed for another reason than a wrong result is chosen. */
static void a_kernel_is_chosen_even_if_all_failed(void **state) {
  (void)state;
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7);
  const wlmi_spec spec = spec_of(32, 0);
  wlmi_snapshot snapshot = {0};
  wlmi_decision decision;
  wlmi_candidate all[2] = {0};
  const wlmi_candidate_list list = {snapshot_families(), all, 2};
  wlmi_variant_set variants = accepted();
  variants.list = &list;
  snapshot_case(&snapshot, &tuned, 1, "p", 32);
  for (int tries = 0; tries < 20; tries++) { /* fails all kernels that the rules name */
    if (select_for(&snapshot, &tuned, "p", &spec, &host, &variants, &decision) != WLM_OK) break;
    char *name = strdup(decision.variant);
    if (tries < 2) all[tries].value = decision.entries[0].variant;
    snapshot_failure(&snapshot, name, "a result differs from the float64 reference: row 3");
  }
  assert_int_equal(decision.step, WLM_STEP_BUILTIN);
  assert_string_equal(decision.variant, "builtin");
  wlmi_measured *failures = (wlmi_measured *)snapshot.cases[0].candidates;
  failures[1].reason = "the device reported an error: it was busy";
  assert_status(WLM_OK, select_for(&snapshot, &tuned, "p", &spec, &host, &variants, &decision));
  assert_string_equal(decision.variant, failures[1].variant);
  for (int64_t i = 0; i < snapshot.cases[0].failed; i++) free((char *)failures[i].variant);
  wlmi_snapshot_clear(&snapshot);
}

/* ---- thin cases ---------------------------------------------------------------------------------- */

enum { ALL = 30 };

static wlmi_decision decide_among_all(const wlmi_snapshot *snapshot, const wlm_stats *stats, int64_t n) {
  static const wlmi_candidate all[ALL];
  wlmi_decision decision;
  const wlmi_spec spec = spec_of(n, 0);
  const wlmi_candidate_list list = {snapshot_families(), all, ALL};
  wlmi_variant_set variants = accepted();
  variants.list = &list;
  assert_int_equal(select_for(snapshot, stats, "p", &spec, &host, &variants, &decision), WLM_OK);
  return decision;
}

/* A case of a matrix or of a bucket is ignored if it has neither the rules' choice nor eight candidates. */
static void a_thin_case_does_not_beat_a_rule(void **state) {
  (void)state;
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7);
  const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", NULL};
  const wlmi_snapshot nothing = {0};
  char rule[WLM_VARIANT_NAME];
  strcpy(rule, decide(&nothing, &tuned, "p", 32).variant);
  for (int exact = 0; exact < 2; exact++) {
    const wlm_step step = exact ? WLM_STEP_FINGERPRINT : WLM_STEP_BUCKET;
    wlmi_snapshot thin = {0}, with_rule = {0}, with_failed_rule = {0}, enough = {0};
    add_case(&thin, &tuned, exact, "p", 32, (const char *const[]){"a", "b", NULL});
    wlmi_decision d = decide_among_all(&thin, &tuned, 32);
    assert_int_equal(d.step, WLM_STEP_RULE);
    assert_string_equal(d.variant, rule);
    assert_true(isnan(d.distance));
    assert_true(d.thin_known == 2 && d.thin_of == ALL && d.thin_exact == exact);
    assert_string_equal(d.thin_variant, "a");

    add_case(&with_rule, &tuned, exact, "p", 32, (const char *const[]){"a", rule, NULL});
    d = decide_among_all(&with_rule, &tuned, 32);
    assert_int_equal(d.step, step);
    assert_string_equal(d.variant, "a");
    assert_true(d.thin_known == 0 && d.distance == 0);

    add_case(&with_failed_rule, &tuned, 1, "p", 32, (const char *const[]){"a", NULL});
    add_failure(&with_failed_rule, rule);
    if (exact) assert_string_not_equal(decide_among_all(&with_failed_rule, &tuned, 32).variant, rule);

    add_case(&enough, &tuned, exact, "p", 32, names);
    d = decide_among_all(&enough, &tuned, 32);
    assert_int_equal(d.step, step);
    assert_string_equal(d.variant, "a");
    wlmi_snapshot_clear(&thin);
    wlmi_snapshot_clear(&with_rule);
    wlmi_snapshot_clear(&with_failed_rule);
    wlmi_snapshot_clear(&enough);
  }
}

/* After a thin case, a more distant bucket or another device class with enough measurements decides. */
static void other_cases_decide_after_a_thin_one(void **state) {
  (void)state;
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7), twice = stats_of(1000, 18000, 1, 2);
  const char *const names[] = {"s", "t", "u", "v", "w", "x", "y", "z", NULL};
  wlmi_snapshot snapshot = {0};
  add_case(&snapshot, &tuned, 1, "p", 32, (const char *const[]){"a", NULL});
  add_case(&snapshot, &tuned, 0, "p", 32, (const char *const[]){"a", NULL});
  add_case(&snapshot, &twice, 0, "p", 32, names);
  wlmi_decision d = decide_among_all(&snapshot, &tuned, 32);
  assert_int_equal(d.step, WLM_STEP_BUCKET);
  assert_string_equal(d.variant, "s");
  assert_true(d.distance > 0.9 && d.thin_exact && d.thin_known == 1);
  add_case(&snapshot, &tuned, 1, "p", 32, names);
  snapshot.cases[3].borrowed = "another class";
  d = decide_among_all(&snapshot, &tuned, 32);
  assert_int_equal(d.step, WLM_STEP_FINGERPRINT);
  assert_string_equal(d.borrowed, "another class");
  for (int i = 0; i < 8; i++) add_case(&snapshot, &tuned, 0, "p", 64, (const char *const[]){"a", NULL});
  assert_int_equal(decide_among_all(&snapshot, &tuned, 2048).step, WLM_STEP_RULE);
  wlmi_snapshot_clear(&snapshot);
}

/* ---- preparation --------------------------------------------------------------------------------- */

typedef struct measured {
  const char *variant;
  double cost, prepare;
} measured;

static void add_measured(wlmi_snapshot *snapshot, const wlm_stats *stats, int exact, const measured *list) {
  add_case(snapshot, stats, exact, "p", 32, (const char *const[]){NULL});
  for (; list->variant; list++) snapshot_measured(snapshot, list->variant, list->cost, list->prepare);
}

/* The best unprepared variant costs 8. q costs 6 + 9 / calls and wins from 5 calls on; p costs 4 + 60 / calls and
 * wins from 16 calls on (15 is a tie), and over q from 26 on. "not" would win from 7 calls on, but is not valid. */
static const measured amortised[] = {{"head", 8, 0}, {"slow", 10, 0},  {"p", 4, 60}, {"q", 6, 9},
                                     {"not", 1, 48}, {"dear", 9, 1.5}, {NULL, 0, 0}};

static double expected_break_even(const char *variant) {
  static const struct {
    const char *variant;
    double calls;
  } known[] = {{"p", 16}, {"q", 5}, {"not", 7}, {"dear", INFINITY}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].variant, variant)) return known[i].calls;
  return 0;
}

static void check_ranking(const wlmi_decision *d, const char *const *ranked, int exact) {
  for (int i = 0; i < d->ranked_count; i++) {
    const wlmi_ranked *r = &d->ranked[i];
    assert_string_equal(r->variant, ranked[i]);
    assert_true(r->break_even == expected_break_even(r->variant));
    assert_int_equal(r->prepare > 0, r->break_even > 0);
    assert_int_equal(r->seconds > 0, exact);
    assert_int_equal(r->prepare_seconds > 0, exact && r->prepare > 0);
    assert_true(r->relative >= (i ? d->ranked[i - 1].relative : 1));
  }
  assert_null(ranked[d->ranked_count]);
}

static void preparation_is_divided_by_the_calls(void **state) {
  (void)state;
  static const struct {
    int64_t calls;
    int refused;
    const char *other, *ranked[7];
  } cases[] = {
      {1, 0, "q", {"head", "slow", "dear", "q", "not", "p"}},    {4, 0, "q", {"head", "q", "dear", "slow", "not", "p"}},
      {5, 0, "head", {"q", "head", "dear", "slow", "not", "p"}}, {10, 1, "head", {"q", "head", "dear", "slow", "p"}},
      {25, 1, "head", {"q", "p", "head", "dear", "slow"}},       {26, 1, "head", {"p", "q", "head", "dear", "slow"}},
      {INT64_MAX, 1, "head", {"p", "q", "head", "dear", "slow"}}};
  for (int exact = 0; exact < 2; exact++) {
    wlmi_snapshot snapshot = {0};
    const wlm_stats tuned = stats_of(1000, 9000, 1, 7);
    add_measured(&snapshot, &tuned, exact, amortised);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      wlmi_decision d = decide_for(&snapshot, &tuned, "p", 32, cases[i].calls);
      assert_int_equal(d.step, exact ? WLM_STEP_FINGERPRINT : WLM_STEP_BUCKET);
      assert_int_equal(d.calls, cases[i].calls);
      assert_string_equal(d.variant, cases[i].ranked[0]);
      assert_int_equal(d.refused, cases[i].refused);
      check_ranking(&d, cases[i].ranked, exact);
      assert_string_equal(d.other.variant, cases[i].other);
      assert_true(d.other.break_even == expected_break_even(cases[i].other));
    }
    wlmi_snapshot_clear(&snapshot);
  }
}

/* With one call no prepared variant is chosen: not if it is faster with its whole preparation, not if it is the only
 * measured one, and not if its measurement is older than its prepare pass. */
static void nothing_is_prepared_for_one_call(void **state) {
  (void)state;
  wlmi_snapshot cheap = {0}, only = {0}, older = {0};
  const wlm_stats tuned = stats_of(1000, 9000, 1, 7);
  add_measured(&cheap, &tuned, 1, (const measured[]){{"plain", 9, 0}, {"quick", 1, 2}, {NULL, 0, 0}});
  assert_string_equal(decide_for(&cheap, &tuned, "p", 32, 1).variant, "plain");
  assert_string_equal(decide_for(&cheap, &tuned, "p", 32, 2).variant, "quick");
  add_measured(&only, &tuned, 1, (const measured[]){{"quick", 1, 2}, {NULL, 0, 0}});
  assert_int_equal(decide_for(&only, &tuned, "p", 32, 1).step, WLM_STEP_RULE);
  add_measured(&only, &tuned, 0, (const measured[]){{"plain", 1, 0}, {NULL, 0, 0}});
  wlmi_decision d = decide_for(&only, &tuned, "p", 32, 1);
  assert_int_equal(d.step, WLM_STEP_BUCKET);
  assert_string_equal(d.variant, "plain");
  d = decide_for(&only, &tuned, "p", 32, 2);
  assert_string_equal(d.variant, "quick");
  assert_string_equal(d.other.variant, "");
  assert_true(d.ranked[0].break_even == 0); /* there is no unprepared variant to compare with */
  add_measured(&older, &tuned, 1, (const measured[]){{"turned", 1, 0}, {"plain", 2, 0}, {NULL, 0, 0}});
  d = decide_for(&older, &tuned, "p", 32, 1);
  assert_string_equal(d.variant, "plain");
  assert_int_equal(d.refused, 1);
  assert_string_equal(decide_for(&older, &tuned, "p", 32, 2).variant, "turned");
  wlmi_snapshot_clear(&cheap);
  wlmi_snapshot_clear(&only);
  wlmi_snapshot_clear(&older);
}

/* ---- the rules with the real families ----------------------------------------------------------- */

typedef struct real_families {
  wlmi_generator *generator;
  const wlmi_spec *spec;
  const wlmi_limits *limits;
} real_families;

static int is_candidate(void *user, const wlmi_variant *variant, int may_prepare) {
  const real_families *r = user;
  char name[WLM_VARIANT_NAME];
  wlmi_text reason = {0};
  wlmi_variant_print(wlmi_generator_families(r->generator), variant, name);
  assert_status(WLM_OK, wlmi_generator_refusal(r->generator, name, r->spec, r->limits, &reason));
  const int yes = reason.size == 0;
  wlmi_text_release(&reason);
  return yes && (may_prepare || !strstr(name, "prepared=1"));
}

static wlm_status select_real(real_families *r, const wlm_stats *stats, wlmi_decision *decision) {
  const wlmi_snapshot nothing = {0};
  const wlmi_variant_set variants = {
      .families = wlmi_generator_families(r->generator), .is_valid = is_candidate, .user = r};
  return select_for(&nothing, stats, "p", r->spec, r->limits, &variants, decision);
}

static void rules_serve_every_problem(void **state) {
  (void)state;
  real_families r = {0};
  assert_int_equal(wlmi_generator_create(NULL, &r.generator), WLM_OK);
  for (int64_t n = 1; n <= 600; n += n < 140 ? 1 : 47)
    for (int number = 0; number < 4 * KINDS; number++) {
      wlmi_spec spec = spec_of(n, number / 4);
      for (int64_t heads = 2; heads <= 8; heads++) /* as many heads as divide n */
        if (n % heads == 0 && number & 1) spec.problem.heads = heads;
      wlm_stats stats = stats_of(1000, number & 2 ? 400 : 4000000, number & 1 ? 30 : 0.1, 1);
      wlmi_decision decision;
      r.spec = &spec;
      for (int device = 0; device < 2; device++) {
        r.limits = device ? &cuda : &host;
        if (select_real(&r, &stats, &decision) != WLM_OK)
          fail_msg("kind %d, n = %lld, %lld heads: %s", number / 4, (long long)n, (long long)spec.problem.heads,
                   wlm_error_detail());
        assert_int_equal(decision.step, WLM_STEP_RULE);
        assert_non_null(decision.rule);
      }
    }
  wlmi_generator_destroy(r.generator);
}

/* Checks that a rule names a candidate for some N; *prepares says whether that needs preparation. */
static void rule_prepares(real_families *r, const wlmi_rule *rule, int *prepares) {
  char variant[WLM_VARIANT_NAME];
  wlmi_variant value;
  const wlmi_candidate_list *list;
  for (int64_t number = 2 * (rule->max_n < 256 ? rule->max_n : 256); number > 1; number--) {
    const int64_t n = number / 2;
    wlmi_spec spec = spec_of(n, number % 2 && rule->kind == WLM_RULE_SAMPLED ? SAMPLED_TRANSPOSE : (int)rule->kind);
    r->spec = &spec;
    r->limits = rule->target == WLM_TARGET_CUDA ? &cuda : &host;
    for (int number = 0; wlmi_rule_spell(rule, n, number, variant); number++) {
      assert_status(WLM_OK, wlmi_variant_parse(wlmi_generator_families(r->generator), variant, &value));
      if (!is_candidate(r, &value, 1)) continue;
      assert_status(WLM_OK, wlmi_generator_describe(r->generator, &spec, r->limits, &list));
      *prepares = wlmi_candidate_find(list, &value)->prepares;
      wlmi_candidates_drop(list);
      return;
    }
  }
  fail_msg("%s serves no n", rule->variant);
}

static void rules_prepare_only_for_many_calls(void **state) {
  (void)state;
  real_families r = {0};
  int prepares;
  assert_int_equal(wlmi_generator_create(NULL, &r.generator), WLM_OK);
  for (int i = 0; i < wlmi_rule_count; i++) {
    rule_prepares(&r, &wlmi_rules[i], &prepares);
    if (wlmi_rules[i].min_calls <= prepares) fail_msg("rule %d, %s, is for 1 call", i, wlmi_rules[i].variant);
  }
  wlmi_generator_destroy(r.generator);
}

/* Each rule decides for some problem: the rules above it do not always apply first. */
static void every_rule_can_decide(void **state) {
  (void)state;
  real_families r = {0};
  assert_int_equal(wlmi_generator_create(NULL, &r.generator), WLM_OK);
  for (int i = 0; i < wlmi_rule_count; i++) {
    const wlmi_rule *rule = &wlmi_rules[i];
    static const int64_t widths[] = {1, 3, 4, 8, 16, 24, 32, 33, 34, 48, 64, 65, 128, 130, 256, 2, 512};
    int found = 0;
    for (size_t number = 0; number < 4 * sizeof widths / sizeof *widths && !found; number++) {
      const int64_t n = widths[number / 4];
      if (n > rule->max_n) continue;
      wlmi_spec spec = spec_of(n, number & 2 && rule->kind == WLM_RULE_SAMPLED ? SAMPLED_TRANSPOSE : (int)rule->kind);
      if (number % 2) spec.problem.dense_type = WLM_F16;
      spec.problem.policy.expected_calls = rule->min_calls;
      int64_t nnz = rule->max_nnz < 4000000 ? rule->max_nnz : 4000000;
      if (rule->max_longest < nnz / 1000) nnz = 1000 * rule->max_longest;
      const wlm_stats stats = stats_of(1000, nnz, rule->min_cv, 1);
      wlmi_decision decision;
      r.spec = &spec;
      r.limits = rule->target == WLM_TARGET_CUDA ? &cuda : &host;
      assert_int_equal(select_real(&r, &stats, &decision), WLM_OK);
      char variant[WLM_VARIANT_NAME];
      for (int spelling = 0; !found && wlmi_rule_spell(rule, n, spelling, variant); spelling++)
        found = !strcmp(decision.variant, variant);
    }
    if (!found) fail_msg("rule %d, %s, never decides", i, rule->variant);
  }
  wlmi_generator_destroy(r.generator);
}

static void rules_are_spelled_for_every_vector(void **state) {
  (void)state;
  static const char *const spelled[] = {"f/lanes=8,vector=8,batch=4", "f/lanes=16,vector=4,batch=4",
                                        "f/lanes=32,vector=2,batch=4", "f/lanes=32,vector=1,batch=4"};
  char variant[WLM_VARIANT_NAME];
  wlmi_rule rule = {.variant = "f/lanes=64/@,vector=@,batch=4"};
  for (int number = 0; number < 4; number++) {
    assert_true(wlmi_rule_spell(&rule, 100, number, variant));
    assert_string_equal(variant, spelled[number]);
  }
  assert_false(wlmi_rule_spell(&rule, 100, 4, variant));
  rule.variant = "f/lanes=16/@,vector=@";
  assert_true(wlmi_rule_spell(&rule, 100, 0, variant));
  assert_string_equal(variant, "f/lanes=4,vector=8");
  assert_true(wlmi_rule_spell(&rule, 7, 3, variant)); /* half of the lanes would have no column */
  assert_string_equal(variant, "f/lanes=8,vector=1");
  rule.variant = "f/cf=2,rows=8";
  assert_true(wlmi_rule_spell(&rule, 100, 0, variant));
  assert_string_equal(variant, "f/cf=2,rows=8");
  assert_false(wlmi_rule_spell(&rule, 100, 1, variant));
}

/* For every type, N and number of heads: kernels that give whole rows to a group of lanes would wait for the longest
 * row. */
static void skewed_rows_are_split(void **state) {
  (void)state;
  static const struct shape {
    int64_t n, heads;
  } shapes[] = {{1, 1},  {2, 1},  {3, 1},  {7, 1},  {16, 1},  {33, 1},
                {34, 1}, {36, 1}, {64, 4}, {40, 8}, {100, 4}, {128, 1}};
  real_families r = {.limits = &cuda};
  assert_int_equal(wlmi_generator_create(NULL, &r.generator), WLM_OK);
  for (int type = WLM_F32; type <= WLM_F64; type++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (int64_t nnz = 100000; nnz <= 100000000; nnz *= 10) {
        wlmi_spec spec = spec_of(shapes[i].n, WLM_RULE_PLAIN);
        const wlm_stats stats = stats_of(10000, nnz, 3, 1);
        wlmi_decision decision;
        const wlmi_candidate_list *list;
        spec.problem.dense_type = spec.value_type = (wlm_type)type;
        spec.problem.heads = shapes[i].heads;
        r.spec = &spec;
        assert_int_equal(select_real(&r, &stats, &decision), WLM_OK);
        assert_int_equal(wlmi_generator_describe(r.generator, &spec, &cuda, &list), WLM_OK);
        const wlmi_candidate *chosen = wlmi_candidate_named(list, decision.variant);
        assert_non_null(chosen);
        if (chosen->whole_rows && !strstr(decision.variant, "row_fold/"))
          fail_msg("type %d, n = %lld, %lld heads: %s", type, (long long)shapes[i].n, (long long)shapes[i].heads,
                   decision.variant);
        wlmi_candidates_drop(list);
      }
  wlmi_generator_destroy(r.generator);
}

/* The terms of a graph's nodes are products with two rows: many short rows, for which a group takes few lanes. */
static void short_rows_of_a_gradient_take_few_lanes(void **state) {
  (void)state;
  static const struct sddmm {
    int64_t longest;
    const char *variant;
  } cases[] = {{2, "sddmm_row/lanes=8,vector=4,batch=4"},
               {4, "sddmm_row/lanes=8,vector=4,batch=4"},
               {5, "sddmm_row/lanes=16,vector=4,batch=8"}};
  real_families r = {.limits = &cuda};
  assert_int_equal(wlmi_generator_create(NULL, &r.generator), WLM_OK);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlmi_spec spec = spec_of(64, WLM_RULE_SDDMM);
    const wlm_stats stats = stats_of(50000, 50000 * cases[i].longest, 0, 1);
    wlmi_decision decision;
    r.spec = &spec;
    assert_int_equal(select_real(&r, &stats, &decision), WLM_OK);
    assert_string_equal(decision.variant, cases[i].variant);
  }
  wlmi_generator_destroy(r.generator);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_are_in_order),
      cmocka_unit_test(other_operators_follow_the_sum),
      cmocka_unit_test(a_custom_operator_follows_the_sum),
      cmocka_unit_test(attention_follows_attention),
      cmocka_unit_test(several_heads_follow_one_head),
      cmocka_unit_test(no_fingerprint_matches_none),
      cmocka_unit_test(takes_the_nearest_bucket),
      cmocka_unit_test(leaves_out_invalid_variants),
      cmocka_unit_test(leaves_out_variants_that_no_longer_exist),
      cmocka_unit_test(failed_variants_are_not_chosen),
      cmocka_unit_test(screening_runs_decide_nothing),
      cmocka_unit_test(a_kernel_is_chosen_even_if_all_failed),
      cmocka_unit_test(a_thin_case_does_not_beat_a_rule),
      cmocka_unit_test(other_cases_decide_after_a_thin_one),
      cmocka_unit_test(preparation_is_divided_by_the_calls),
      cmocka_unit_test(nothing_is_prepared_for_one_call),
      cmocka_unit_test(rules_serve_every_problem),
      cmocka_unit_test(rules_prepare_only_for_many_calls),
      cmocka_unit_test(every_rule_can_decide),
      cmocka_unit_test(rules_are_spelled_for_every_vector),
      cmocka_unit_test(skewed_rows_are_split),
      cmocka_unit_test(short_rows_of_a_gradient_take_few_lanes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
