/* Selection: the order of its steps (this very matrix, a similar one, the rules), and that only valid variants are
 * chosen. tests/unit/test_rules.c has the rules themselves. */
#include "core/problem/spec_key.h"
#include "support/emit_fixture.h"
#include "support/failing_malloc.h"
#include "support/snapshot_fixture.h"
#include "support/test.h"

/* What tests choose from, empty at their beginning, and matrices: one that most of them tune, and one like it. */
static wlmi_snapshot snapshot;
static const wlm_stats tuned = SQUARE(1000, 9000, 1, 7), alike = SQUARE(1020, 9300, 1.1, 8);

FIXTURE(forget) {
  wlmi_snapshot_clear(&snapshot);
  return 0;
}
EACH(forget, forget)

/* Adds a case to the snapshot, with variants that take 1, 2, ... us: MEASURED(&tuned, "p", 32, "fast", "slow"); */
#define MEASURED(stats, problem, n, ...) add_case(stats, problem, n, (const char *const[]){__VA_ARGS__, NULL})
static void add_case(const wlm_stats *stats, const char *problem, int64_t n, const char *const variants[]) {
  snapshot_case(&snapshot, stats, problem, n);
  for (int i = 0; variants[i]; i++) snapshot_measured(&snapshot, variants[i], i + 1, 0);
}

/* Adds a failure to the last case. */
static void add_failure(const char *variant) { snapshot_failure(&snapshot, variant, "it was wrong"); }

/* The problem with this key; any other text stands for sums. */
static wlmi_spec spec_of(const char *problem, int64_t n) {
  wlmi_spec spec = emit_spec(n);
  if (strchr(problem, '=')) assert_status(WLM_OK, wlmi_spec_from_key(problem, n, &spec));
  return spec;
}

static wlmi_decision decide_for(const wlm_stats *stats, const char *problem, int64_t n, int64_t calls) {
  wlmi_decision decision;
  wlmi_spec spec = spec_of(problem, n);
  const wlmi_variant_set variants = snapshot_accepted();
  spec.problem.policy.expected_calls = calls;
  assert_int_equal(select_for(&snapshot, stats, problem, &spec, &emit_host, &variants, &decision), WLM_OK);
  return decision;
}

static wlmi_decision decide(const wlm_stats *stats, const char *problem, int64_t n) {
  return decide_for(stats, problem, n, 1);
}

static void assert_rule(const wlm_stats *stats, const char *problem, int64_t n) {
  assert_int_equal(decide(stats, problem, n).step, WLMI_STEP_RULE);
}

/* Checks what is chosen for N = 32. `like`: how the problem that decided is simpler. */
static wlmi_decision expect(const wlm_stats *stats, const char *problem, wlmi_step step, const char *variant,
                            const char *like) {
  const wlmi_decision d = decide(stats, problem, 32);
  if (d.step != step || strcmp(d.variant, variant) || strcmp(d.like, like))
    fail_msg("%s: %s, %s%s instead of %s, %s%s", problem, wlmi_step_name(d.step), d.variant, d.like,
             wlmi_step_name(step), variant, like);
  return d;
}
static const wlmi_step fingerprint = WLMI_STEP_FINGERPRINT, similar = WLMI_STEP_SIMILAR, rule = WLMI_STEP_RULE;
static const char by_rule[] = "host_row/rows=128,tile=32"; /* for `tuned` and N = 32 */

TEST(steps_are_in_order) {
  const wlm_stats other = SQUARE(1000, 11000, 1, 9);
  MEASURED(&tuned, "p", 32, "exact", "second");
  wlmi_decision d = expect(&tuned, "p", fingerprint, "exact", "");
  assert_true(d.distance == 0);
  assert_int_equal(d.ranked_count, 2);
  assert_string_equal(d.ranked[1].variant, "second");
  assert_true(d.ranked[1].seconds == 2e-6 && d.ranked[1].relative == 2);
  assert_true(d.ranked[1].prepare == 0 && d.ranked[1].break_even == 0);
  assert_string_equal(d.other.variant, "");
  d = expect(&alike, "p", similar, "exact", "");
  assert_true(d.distance > 0 && d.distance < WLMI_NEAR);
  assert_rule(&other, "p", 32);
  assert_rule(&tuned, "p", 64);
  assert_rule(&alike, "p", 64);
  assert_rule(&tuned, "another", 32);
}

/* ---- simpler problems ---------------------------------------------------------------------------- */

/* Keys of problems. */
#define KEY(op, type, rowptr, colind, values, rest) \
  "op=" op ",dense=" type ",rowptr=" rowptr ",colind=" colind ",values=" values ",sample=none" rest
#define OF(op, type, rest)         KEY(op, type, "i32", "i32", type, rest)
#define SUM                        OF("mul.sum", "f32", "")
#define MESSAGE(text, type, index) KEY("custom{" text "}", type, index, index, "none", ",operation=message")
#define OF_SUM                     ", for a sum of products"

/* A tuning of the sum of products on this matrix serves other operators, unless they were tuned themselves. */
TEST(other_operators_follow_the_sum) {
  static const char max[] = OF("mul.max", "f32", ""), narrow[] = OF("mul.max", "f32", ",arg=i32"),
                    wide[] = OF("mul.max", "f32", ",arg=i64");
  MEASURED(&tuned, SUM, 32, "sum's");
  expect(&tuned, max, fingerprint, "sum's", OF_SUM);
  expect(&alike, max, similar, "sum's", OF_SUM);
  expect(&tuned, narrow, fingerprint, "sum's", OF_SUM);
  MEASURED(&tuned, max, 32, "max's");
  expect(&tuned, narrow, fingerprint, "max's", ", without positions");
  expect(&tuned, wide, fingerprint, "max's", ", without positions");
  MEASURED(&alike, narrow, 32, "positions'");
  expect(&tuned, wide, similar, "positions'", ", with 32-bit positions");
  expect(&tuned, narrow, similar, "positions'", "");
  expect(&tuned, max, fingerprint, "max's", "");
}

/* The same for a user-defined operator. */
TEST(a_custom_operator_follows_the_sum) {
  MEASURED(&tuned, SUM, 32, "sum's");
  expect(&tuned, OF("custom{message=a*b;init=0;reduce=acc+fabs(x)}", "f32", ""), fingerprint, "sum's", OF_SUM);
}

/* A message follows itself with one head, then the sum of products. The sum comes after all steps for messages, if the
 * message has positions: its measurements of a similar matrix are better than the sum's of this very matrix. */
TEST(a_message_follows_the_sum) {
#define WINS(heads) OF("custom{w:row:wins;sum=relu(b)*w;max=a}", "f32", ",operation=message,arg=i64,transpose=1" heads)
  MEASURED(&tuned, SUM, 32, "sum's");
  expect(&tuned, WINS(",heads=4"), fingerprint, "sum's", OF_SUM);
  MEASURED(&alike, WINS(""), 32, "similar");
  expect(&tuned, WINS(",heads=4"), similar, "similar", ", with one head");
  MEASURED(&tuned, WINS(""), 32, "message's");
  expect(&tuned, WINS(",heads=4"), fingerprint, "message's", ", with one head");
}

/* A message that was never measured follows the one that moves the most similar bytes, of those that were measured on
 * this very matrix, or otherwise on similar ones. */
TEST(a_message_follows_the_nearest_one) {
#define TUNED(stats, text, type) MEASURED(stats, MESSAGE(text, type, "i32"), 32, text)
#define FOLLOWS(text, step, nearest) \
  expect(&tuned, MESSAGE(text, "f32", "i32"), step, nearest, ", for the message " nearest)
  TUNED(&alike, "sum=e", "f32");
  FOLLOWS("sum=relu(b+e)", similar, "sum=e");
  TUNED(&tuned, "sum=e", "f16"); /* of other types */
  TUNED(&alike, "sum=b*e", "f32");
  FOLLOWS("sum=relu(b+e)", similar, "sum=b*e");
  TUNED(&tuned, "sum=x*b", "f32"); /* without a line for each edge */
  FOLLOWS("sum=relu(b+e)", similar, "sum=b*e");
  TUNED(&tuned, "sum=e*e", "f32");
  FOLLOWS("sum=relu(b+e)", fingerprint, "sum=e*e");
  TUNED(&tuned, "sum=e-b", "f32");
  TUNED(&tuned, "edge_sum=b", "f32");
  FOLLOWS("sum=relu(b+e)", fingerprint, "sum=e-b");
  FOLLOWS("sum=relu(x*b+y)", fingerprint, "sum=x*b");
  FOLLOWS("edge_sum=k", fingerprint, "edge_sum=b");
}

/* Attention follows the sum of products only where nothing was measured for its own direction. */
TEST(attention_follows_attention) {
#define ATTENTION(rest) OF("mul.sum", "f32", ",operation=attention" rest)
  MEASURED(&tuned, SUM, 32, "sum's");
  expect(&tuned, ATTENTION(""), fingerprint, "sum's", OF_SUM);
  MEASURED(&alike, ATTENTION(""), 32, "forward's");
  expect(&tuned, ATTENTION(",dropout=1,heads=4"), similar, "forward's", ", without dropout, with one head");
  expect(&tuned, ATTENTION(",dropout=1,transpose=1,heads=4"), fingerprint, "sum's", OF_SUM);
  MEASURED(&alike, ATTENTION(",transpose=1"), 32, "gradient's");
  expect(&tuned, ATTENTION(",transpose=1"), similar, "gradient's", "");
}

/* Of simpler problems the nearest decides: that with one head is nearer than that without a transpose. */
TEST(several_heads_follow_one_head) {
  static const char transposed[] = OF("mul.sum", "f32", ",transpose=1"),
                    heads[] = OF("mul.sum", "f32", ",transpose=1,heads=4");
  MEASURED(&tuned, SUM, 32, "sum's");
  expect(&tuned, heads, fingerprint, "sum's", ", untransposed, with one head");
  MEASURED(&tuned, transposed, 32, "transpose's");
  expect(&tuned, heads, fingerprint, "transpose's", ", with one head");
  expect(&tuned, transposed, fingerprint, "transpose's", "");
}

/* f16 and bf16 stand for each other, after everything that was measured in the type itself. */
TEST(halves_follow_each_other) {
  static const struct {
    const char *sum, *other, *max, *like, *like_of_max;
  } types[] = {{OF("mul.sum", "bf16", ""), OF("mul.sum", "f16", ""), OF("mul.max", "bf16", ",arg=i32"), ", in f16",
                OF_SUM ", in f16"},
               {OF("mul.sum", "f16", ""), OF("mul.sum", "bf16", ""), OF("mul.max", "f16", ",arg=i32"), ", in bf16",
                OF_SUM ", in bf16"}};
  for (int i = 0; i < 2; i++) {
    forget(NULL);
    MEASURED(&tuned, types[i].other, 32, "other's");
    expect(&tuned, types[i].sum, fingerprint, "other's", types[i].like);
    expect(&tuned, types[i].max, fingerprint, "other's", types[i].like_of_max);
    MEASURED(&tuned, types[i].sum, 32, "own");
    expect(&tuned, types[i].max, fingerprint, "own", OF_SUM);
    assert_rule(&tuned, OF("mul.max", "f32", ",arg=i32"), 32);
  }
}

/* 64-bit indices follow 32-bit ones, after everything that was measured with 64-bit ones. */
TEST(wide_indices_follow_narrow_ones) {
#define WIDE(op, type, rest) \
  { KEY(op, type, "i64", "i64", type, rest), KEY(op, type, "i64", "i32", type, rest) }
  static const char *const heads[2] = WIDE("mul.max", "f16", ",arg=i32,heads=4"),
                           *const max[2] = WIDE("mul.max", "f16", ""), *const sum[2] = WIDE("mul.sum", "bf16", ""),
                           *const max_of_bf16[2] = WIDE("mul.max", "bf16", "");
  for (int i = 0; i < 2; i++) {
    forget(NULL);
    assert_rule(&tuned, heads[i], 32);
    MEASURED(&tuned, OF("mul.sum", "f16", ""), 32, "narrow sum's");
    expect(&tuned, heads[i], fingerprint, "narrow sum's", OF_SUM ", with 32-bit indices");
    MEASURED(&tuned, OF("mul.max", "f16", ""), 32, "narrow max's");
    expect(&tuned, heads[i], fingerprint, "narrow max's", ", without positions, with one head, with 32-bit indices");
    expect(&tuned, max[i], fingerprint, "narrow max's", ", with 32-bit indices");
    expect(&tuned, sum[i], fingerprint, "narrow sum's", ", in f16, with 32-bit indices");
    MEASURED(&tuned, sum[i], 32, "own");
    expect(&tuned, max_of_bf16[i], fingerprint, "own", OF_SUM);
  }
}

/* Where memory runs out, choosing fails and names no other kernel. */
TEST(messages_without_memory_are_not_chosen_otherwise) {
  static const char key[] = MESSAGE("sum=relu(b+e)", "f32", "i32");
  const wlmi_variant_set variants = snapshot_accepted();
  const wlmi_spec spec = spec_of(key, 32);
  TUNED(&tuned, "sum=e", "f32");
  TUNED(&tuned, "sum=b*e", "f32");
  for (int64_t first = 1, failures = 1; failures; first++) {
    wlmi_decision d;
    failing_malloc_begin(first, INT64_MAX);
    const wlm_status status = select_for(&snapshot, &tuned, key, &spec, &emit_host, &variants, &d);
    failures = failing_malloc_end();
    assert_int_equal(status, failures ? WLM_ERR_OUT_OF_MEMORY : WLM_OK);
    if (!failures) assert_string_equal(d.variant, "sum=b*e");
    assert_true(first < 1000 && (failures || first > 5));
  }
}

/* A message with 64-bit indices follows the nearest one of those with 32-bit indices, and attention attention. */
TEST(wide_messages_and_attention_follow_their_own) {
  static const char message[] = MESSAGE("sum=relu(b+e)", "f32", "i64");
  TUNED(&tuned, "sum=b*e", "f32");
  expect(&tuned, message, fingerprint, "sum=b*e", ", for the message sum=b*e, with 32-bit indices");
  TUNED(&tuned, "sum=relu(b+e)", "f32");
  expect(&tuned, message, fingerprint, "sum=relu(b+e)", ", with 32-bit indices");
  MEASURED(&tuned, ATTENTION(""), 32, "forward's");
  expect(&tuned, KEY("mul.sum", "f32", "i64", "i64", "f32", ",operation=attention,dropout=1,heads=4"), fingerprint,
         "forward's", ", without dropout, with one head, with 32-bit indices");
}

/* ---- variants that are left out ------------------------------------------------------------------ */

/* A fingerprint of zeros matches no case, but the statistics may. */
TEST(no_fingerprint_matches_none) {
  const wlm_stats nameless = SQUARE(1000, 9000, 1, 0);
  MEASURED(&nameless, "p", 32, "exact");
  expect(&nameless, "p", similar, "exact", "");
}

TEST(takes_the_most_similar_matrix) {
  const wlm_stats here = SQUARE(1000, 9000, 1, 1), nearest = SQUARE(1000, 9300, 1, 2), near = SQUARE(1000, 9600, 1, 3);
  MEASURED(&near, "p", 32, "near");
  MEASURED(&nearest, "p", 32, "nearest");
  MEASURED(&near, "q", 32, "near");
  MEASURED(&nearest, "q", 32, "not valid");
  expect(&here, "p", similar, "nearest", "");
  expect(&here, "q", similar, "near", "");
}

TEST(leaves_out_invalid_variants) {
  MEASURED(&tuned, "p", 32, "no", "not", "yes", "later");
  MEASURED(&tuned, "q", 32, "no");
  MEASURED(&alike, "q", 32, "none");
  const wlmi_decision d = expect(&tuned, "p", fingerprint, "yes", "");
  assert_int_equal(d.refused, 2);
  assert_int_equal(d.ranked_count, 2);
  assert_rule(&tuned, "q", 32);
}

/* Measurements by a version that had other families or parameter values. */
TEST(leaves_out_variants_that_no_longer_exist) {
  snapshot.families = snapshot_families();
  MEASURED(&tuned, "p", 32, "host_gone/rows=1", "host_row/rows=3,tile=32", "host_row/rows=128,tile=16");
  MEASURED(&tuned, "q", 32, "host_gone/rows=1");
  snapshot_failure(&snapshot, "host_gone/rows=2", "why");
  wlmi_decision d = expect(&tuned, "p", fingerprint, "host_row/rows=128,tile=16", "");
  assert_int_equal(d.refused, 2);
  assert_string_equal(d.refusals[0].variant, "host_gone/rows=1");
  d = expect(&tuned, "q", rule, by_rule, "");
  assert_true(d.failed == 1 && !strcmp(d.failures[0].variant, "host_gone/rows=2"));
}

/* A variant that failed on the matrix is not chosen for it by a similar matrix, a rule or another device class, but for
 * other matrices it is. */
TEST(failed_variants_are_not_chosen) {
  MEASURED(&tuned, "p", 32, "exact");
  add_failure("failed");
  MEASURED(&tuned, "q", 32, NULL);
  add_failure("failed");
  add_failure("other");
  MEASURED(&alike, "q", 32, "failed", "second");
  expect(&alike, "q", fingerprint, "failed", "");
  wlmi_decision d = expect(&tuned, "p", fingerprint, "exact", "");
  assert_true(d.failed == 1 && d.refused == 0);
  assert_string_equal(d.failures[0].variant, "failed");
  d = expect(&tuned, "q", similar, "second", "");
  assert_true(d.failed == 2 && d.refused == 1 && d.similar_count == 2);
  assert_string_equal(d.refusals[0].variant, "failed");
  assert_string_equal(d.refusals[0].reason, "failed on this very matrix: it was wrong");

  expect(&tuned, "r", rule, by_rule, "");
  MEASURED(&tuned, "r", 32, NULL);
  add_failure(by_rule);
  d = decide(&tuned, "r", 32);
  assert_int_equal(d.step, rule);
  assert_string_not_equal(d.variant, by_rule);
  assert_string_equal(decide(&alike, "r", 32).variant, by_rule);
  forget(NULL);
  MEASURED(&tuned, "r", 32, NULL);
  add_failure(by_rule);
  snapshot.cases[0].borrowed = "another class";
  assert_string_equal(decide(&tuned, "r", 32).variant, by_rule);
}

/* Screening compares only a few rows, so a matrix with nothing but screening runs does not count as tuned. */
TEST(screening_runs_decide_nothing) {
  MEASURED(&tuned, "p", 32, "first", "second", "third");
  wlmi_measured *candidates = (wlmi_measured *)snapshot.cases[0].candidates;
  candidates[0].precise = 0;
  expect(&tuned, "p", fingerprint, "second", "");
  candidates[1].precise = candidates[2].precise = 0;
  assert_rule(&tuned, "p", 32);
  candidates[2].online = 1; /* online tuning compares all rows */
  expect(&tuned, "p", fingerprint, "third", "");
}

/* All kernels failed on this matrix: one that failed for another reason than a wrong result is chosen. */
TEST(a_kernel_is_chosen_even_if_all_failed) {
  const wlmi_spec spec = emit_spec(32);
  wlmi_decision decision;
  wlmi_candidate all[2] = {0};
  const wlmi_candidate_list list = {snapshot_families(), all, 2};
  wlmi_variant_set variants = snapshot_accepted();
  variants.list = &list;
  snapshot_case(&snapshot, &tuned, "p", 32);
  for (int tries = 0; tries < 20; tries++) { /* fails all kernels that the rules name */
    if (select_for(&snapshot, &tuned, "p", &spec, &emit_host, &variants, &decision) != WLM_OK) break;
    char *name = strdup(decision.variant);
    if (tries < 2) all[tries].value = decision.entries[0].variant;
    snapshot_failure(&snapshot, name, "a result differs from the float64 reference: row 3");
  }
  assert_int_equal(decision.step, WLMI_STEP_BUILTIN);
  assert_string_equal(decision.variant, "builtin");
  wlmi_measured *failures = (wlmi_measured *)snapshot.cases[0].candidates;
  failures[1].reason = "the device reported an error: it was busy";
  assert_status(WLM_OK, select_for(&snapshot, &tuned, "p", &spec, &emit_host, &variants, &decision));
  assert_string_equal(decision.variant, failures[1].variant);
  for (int64_t i = 0; i < snapshot.cases[0].failed; i++) free((char *)failures[i].variant);
}

/* ---- thin cases ---------------------------------------------------------------------------------- */

enum { ALL = 30 };

static wlmi_decision decide_among(const wlm_stats *stats, int64_t n, int count) {
  static const wlmi_candidate all[ALL];
  wlmi_decision decision;
  const wlmi_spec spec = emit_spec(n);
  const wlmi_candidate_list list = {snapshot_families(), all, count};
  wlmi_variant_set variants = snapshot_accepted();
  variants.list = &list;
  assert_int_equal(select_for(&snapshot, stats, "p", &spec, &emit_host, &variants, &decision), WLM_OK);
  return decision;
}

static wlmi_decision expect_among(const wlm_stats *stats, int64_t n, int count, wlmi_step step, const char *variant) {
  const wlmi_decision d = decide_among(stats, n, count);
  assert_int_equal(d.step, step);
  assert_string_equal(d.variant, variant);
  return d;
}

/* The matrix's own case is ignored if it has neither the rules' choice nor eight candidates. */
TEST(a_thin_case_does_not_beat_a_rule) {
  assert_string_equal(decide(&tuned, "p", 32).variant, by_rule);
  MEASURED(&tuned, "p", 32, "a", "b");
  wlmi_decision d = expect_among(&tuned, 32, ALL, rule, by_rule);
  assert_true(isnan(d.distance));
  assert_true(d.thin_known == 2 && d.thin_of == ALL);
  assert_string_equal(d.thin_variant, "a");
  forget(NULL);
  MEASURED(&tuned, "p", 32, "a", by_rule);
  d = expect_among(&tuned, 32, ALL, fingerprint, "a");
  assert_true(d.thin_known == 0 && d.distance == 0);
  forget(NULL);
  MEASURED(&tuned, "p", 32, "a");
  add_failure(by_rule);
  assert_string_not_equal(decide_among(&tuned, 32, ALL).variant, by_rule);
  forget(NULL);
  MEASURED(&tuned, "p", 32, "a", "b", "c", "d", "e", "f", "g", "h");
  expect_among(&tuned, 32, ALL, fingerprint, "a");
}

/* A case that knows a third of the candidates is not thin. */
TEST(a_third_of_the_candidates_is_enough) {
  MEASURED(&tuned, "p", 32, "a", "b", "c", "d", "e");
  expect_among(&tuned, 32, 15, fingerprint, "a");
  expect_among(&tuned, 32, 16, rule, by_rule);
}

/* After a thin case, a similar matrix or another device class with enough measurements decides; a thin case of a
 * similar matrix never does. */
TEST(other_cases_decide_after_a_thin_one) {
  const wlm_stats nearer = SQUARE(1000, 9000, 1.05, 9);
  MEASURED(&tuned, "p", 32, "a");
  MEASURED(&nearer, "p", 32, "a");
  expect_among(&tuned, 32, ALL, rule, by_rule);
  MEASURED(&alike, "p", 32, "s", "t", "u", "v", "w", "x", "y", "z");
  wlmi_decision d = expect_among(&tuned, 32, ALL, similar, "s");
  assert_true(d.distance > 0 && d.thin_known == 1);
  MEASURED(&tuned, "p", 32, "s", "t", "u", "v", "w", "x", "y", "z");
  snapshot.cases[3].borrowed = "another class";
  d = expect_among(&tuned, 32, ALL, fingerprint, "s");
  assert_string_equal(d.borrowed, "another class");
  for (int i = 0; i < 8; i++) MEASURED(&alike, "p", 64, "a");
  assert_int_equal(decide_among(&tuned, 64, ALL).step, rule);
}

/* ---- similar cases ------------------------------------------------------------------------------- */

/* Explain shows the tuned matrices of this class of problems, the most similar first, and at most WLMI_SIMILAR. */
TEST(similar_matrices_are_sorted) {
  static const int octaves[WLMI_SIMILAR + 2] = {3, 1, 6, 2, 5, 4};
  const wlm_stats here = SQUARE(1000, 9000, 1, 1);
  for (int i = 0; i < WLMI_SIMILAR + 2; i++) {
    const wlm_stats stats = snapshot_stats(1000, (int64_t)9000 << octaves[i], 1, (uint64_t)(10 + i));
    MEASURED(&stats, SUM, 32, "a");
  }
  MEASURED(&here, KEY("mul.sum", "f16", "i32", "i32", "f32", ""), 32, "a");
  const wlmi_decision d = decide(&here, SUM, 32);
  assert_int_equal(d.similar_count, WLMI_SIMILAR);
  for (int i = 0; i < WLMI_SIMILAR; i++) assert_int_equal(d.similar[i].nnz, (int64_t)9000 << (1 + i));
}

/* ---- preparation --------------------------------------------------------------------------------- */

typedef struct measured {
  const char *variant;
  double cost, prepare;
} measured;

/* Adds a case with costs and preparing in us: ADD_PREPARED(&tuned, {"plain", 9, 0}, {"quick", 1, 2}); */
#define ADD_PREPARED(stats, ...) add_measured(stats, (const measured[]){__VA_ARGS__, {NULL, 0, 0}})
static void add_measured(const wlm_stats *stats, const measured *list) {
  MEASURED(stats, "p", 32, NULL);
  for (; list->variant; list++) snapshot_measured(&snapshot, list->variant, list->cost, list->prepare);
}

/* The best unprepared variant costs 8. q costs 6 + 9 / calls and wins from 5 calls on; p costs 4 + 60 / calls and
 * wins from 16 calls on (15 is a tie), and over q from 26 on. "not" would win from 7 calls on, but is not valid. */
static double expected_break_even(const char *variant) {
  static const struct {
    const char *variant;
    double calls;
  } known[] = {{"p", 16}, {"q", 5}, {"not", 7}, {"dear", INFINITY}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].variant, variant)) return known[i].calls;
  return 0;
}

static void check_ranking(const wlmi_decision *d, const char *const *ranked) {
  for (int i = 0; i < d->ranked_count; i++) {
    const wlmi_ranked *r = &d->ranked[i];
    assert_string_equal(r->variant, ranked[i]);
    assert_true(r->break_even == expected_break_even(r->variant));
    assert_int_equal(r->prepare > 0, r->break_even > 0);
    assert_true(r->seconds > 0);
    assert_int_equal(r->prepare_seconds > 0, r->prepare > 0);
    assert_true(r->relative >= (i ? d->ranked[i - 1].relative : 1));
  }
  assert_null(ranked[d->ranked_count]);
}

TEST(preparation_is_divided_by_the_calls) {
  static const struct {
    int64_t calls;
    int refused;
    const char *other, *ranked[7];
  } cases[] = {
      {1, 0, "q", {"head", "slow", "dear", "q", "not", "p"}},    {4, 0, "q", {"head", "q", "dear", "slow", "not", "p"}},
      {5, 0, "head", {"q", "head", "dear", "slow", "not", "p"}}, {10, 1, "head", {"q", "head", "dear", "slow", "p"}},
      {25, 1, "head", {"q", "p", "head", "dear", "slow"}},       {26, 1, "head", {"p", "q", "head", "dear", "slow"}},
      {INT64_MAX, 1, "head", {"p", "q", "head", "dear", "slow"}}};
  ADD_PREPARED(&tuned, {"head", 8, 0}, {"slow", 10, 0}, {"p", 4, 60}, {"q", 6, 9}, {"not", 1, 48}, {"dear", 9, 1.5});
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_decision d = decide_for(&tuned, "p", 32, cases[i].calls);
    assert_int_equal(d.step, fingerprint);
    assert_int_equal(d.calls, cases[i].calls);
    assert_string_equal(d.variant, cases[i].ranked[0]);
    assert_int_equal(d.refused, cases[i].refused);
    check_ranking(&d, cases[i].ranked);
    assert_string_equal(d.other.variant, cases[i].other);
    assert_true(d.other.break_even == expected_break_even(cases[i].other));
  }
}

/* With one call no prepared variant is chosen: not if it is faster with its whole preparation, not if it is the only
 * measured one, and not if its measurement is older than its prepare pass. */
TEST(nothing_is_prepared_for_one_call) {
  ADD_PREPARED(&tuned, {"plain", 9, 0}, {"quick", 1, 2});
  assert_string_equal(decide_for(&tuned, "p", 32, 1).variant, "plain");
  assert_string_equal(decide_for(&tuned, "p", 32, 2).variant, "quick");
  forget(NULL);
  ADD_PREPARED(&tuned, {"quick", 1, 2});
  assert_rule(&tuned, "p", 32);
  ADD_PREPARED(&alike, {"plain", 1, 0});
  expect(&tuned, "p", similar, "plain", "");
  wlmi_decision d = decide_for(&tuned, "p", 32, 2);
  assert_string_equal(d.variant, "quick");
  assert_string_equal(d.other.variant, "");
  assert_true(d.ranked[0].break_even == 0); /* there is no unprepared variant to compare with */
  forget(NULL);
  ADD_PREPARED(&tuned, {"turned", 1, 0}, {"plain", 2, 0});
  d = expect(&tuned, "p", fingerprint, "plain", "");
  assert_int_equal(d.refused, 1);
  assert_string_equal(decide_for(&tuned, "p", 32, 2).variant, "turned");
}
