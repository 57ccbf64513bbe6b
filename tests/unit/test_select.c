/* Selection: the order of its steps (this very matrix, a similar one, the rules), and that only valid variants are
 * chosen. tests/unit/test_rules.c has the rules themselves. */
#include "support/emit_fixture.h"
#include "support/failing_malloc.h"
#include "support/snapshot_fixture.h"
#include "support/test.h"

static void add_case(wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem, int64_t n,
                     const char *const variants[]) {
  snapshot_case(snapshot, stats, problem, n);
  for (int i = 0; variants[i]; i++) snapshot_measured(snapshot, variants[i], i + 1, 0);
}

/* Valid are all variants except those that begin with "no"; "turned", which now needs preparation, is valid only if
 * that is allowed. */
static int accepts(void *user, const wlmi_variant *value, int may_prepare) {
  char variant[WLMI_VARIANT_NAME];
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
  wlmi_spec spec = emit_spec(n);
  const wlmi_variant_set variants = accepted();
  spec.problem.policy.expected_calls = calls;
  assert_int_equal(select_for(snapshot, stats, problem, &spec, &emit_host, &variants, &decision), WLM_OK);
  return decision;
}

static wlmi_decision decide(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem, int64_t n) {
  return decide_for(snapshot, stats, problem, n, 1);
}

TEST(steps_are_in_order) {
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7), alike = snapshot_stats(1020, 9300, 1.1, 8),
                  other = snapshot_stats(1000, 11000, 1, 9);
  add_case(&snapshot, &tuned, "p", 32, (const char *const[]){"exact", "second", NULL});
  wlmi_decision d = decide(&snapshot, &tuned, "p", 32);
  assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
  assert_true(d.distance == 0);
  assert_string_equal(d.variant, "exact");
  assert_int_equal(d.ranked_count, 2);
  assert_string_equal(d.ranked[1].variant, "second");
  assert_true(d.ranked[1].seconds == 2e-6 && d.ranked[1].relative == 2);
  assert_true(d.ranked[1].prepare == 0 && d.ranked[1].break_even == 0);
  assert_string_equal(d.other.variant, "");
  d = decide(&snapshot, &alike, "p", 32);
  assert_int_equal(d.step, WLMI_STEP_SIMILAR);
  assert_string_equal(d.variant, "exact");
  assert_true(d.distance > 0 && d.distance < WLMI_NEAR);
  assert_int_equal(decide(&snapshot, &other, "p", 32).step, WLMI_STEP_RULE);
  assert_int_equal(decide(&snapshot, &tuned, "p", 64).step, WLMI_STEP_RULE);
  assert_int_equal(decide(&snapshot, &alike, "p", 64).step, WLMI_STEP_RULE);
  assert_int_equal(decide(&snapshot, &tuned, "another", 32).step, WLMI_STEP_RULE);
  wlmi_snapshot_clear(&snapshot);
}

static wlmi_decision decide_as(const wlmi_snapshot *snapshot, const wlm_stats *stats, const wlmi_spec *spec) {
  wlmi_decision decision;
  char key[WLMI_SPEC_KEY];
  const wlmi_variant_set variants = accepted();
  wlmi_spec_key(spec, key);
  assert_int_equal(select_for(snapshot, stats, key, spec, &emit_host, &variants, &decision), WLM_OK);
  return decision;
}

/* A tuning of the sum of products on this matrix serves other operators, unless they were tuned themselves. */
TEST(other_operators_follow_the_sum) {
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7), alike = snapshot_stats(1020, 9300, 1.1, 8);
  wlmi_spec spec = emit_spec(32);
  char sum[WLMI_SPEC_KEY], max[WLMI_SPEC_KEY], positions[WLMI_SPEC_KEY];
  wlmi_spec_key(&spec, sum);
  spec.problem.reduce = WLM_MAX;
  wlmi_spec_key(&spec, max);
  add_case(&snapshot, &tuned, sum, 32, (const char *const[]){"sum's", NULL});
  wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
  assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
  assert_string_equal(d.variant, "sum's");
  assert_string_equal(d.like, ", for a sum of products");
  assert_int_equal(decide_as(&snapshot, &alike, &spec).step, WLMI_STEP_SIMILAR);
  spec.problem.want_argmax = 1;
  assert_string_equal(decide_as(&snapshot, &tuned, &spec).variant, "sum's");

  add_case(&snapshot, &tuned, max, 32, (const char *const[]){"max's", NULL});
  d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "max's");
  assert_string_equal(d.like, ", without positions");
  wlmi_spec_key(&spec, positions);
  spec.problem.argmax_type = WLM_I64;
  assert_string_equal(decide_as(&snapshot, &tuned, &spec).variant, "max's");
  add_case(&snapshot, &alike, positions, 32, (const char *const[]){"positions'", NULL});
  d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "positions'");
  assert_string_equal(d.like, ", with 32-bit positions");
  spec.problem.argmax_type = WLM_I32;
  assert_string_equal(decide_as(&snapshot, &tuned, &spec).variant, "positions'");
  spec.problem.want_argmax = 0;
  d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "max's");
  assert_string_equal(d.like, "");
  wlmi_snapshot_clear(&snapshot);
}

/* The same for a user-defined operator. */
TEST(a_custom_operator_follows_the_sum) {
  wlmi_snapshot snapshot = {.case_count = 0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  wlmi_spec sum = emit_spec(32), spec;
  wlm_problem problem = sum.problem;
  wlm_csr csr = CSR(.values = &csr);
  char key[WLMI_SPEC_KEY];
  problem.reduce = WLM_CUSTOM;
  problem.custom = "init=0;reduce=acc+fabs(x)";
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
  wlmi_spec_key(&sum, key);
  add_case(&snapshot, &tuned, key, 32, (const char *const[]){"sum's", NULL});
  const wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
  assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
  assert_string_equal(d.variant, "sum's");
  assert_string_equal(d.like, ", for a sum of products");
  wlmi_snapshot_clear(&snapshot);
}

/* A message follows itself with one head, then the sum of products. The sum comes after all steps for messages, if the
 * message has positions: its measurements of a similar matrix are better than the sum's of this very matrix. */
TEST(a_message_follows_the_sum) {
  wlmi_snapshot snapshot = {.case_count = 0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7), alike = snapshot_stats(1020, 9300, 1.1, 8);
  wlmi_spec sum = emit_spec(32), spec, one_head;
  wlm_problem problem = sum.problem;
  wlm_csr csr = CSR(.values = &csr);
  char key[WLMI_SPEC_KEY];
  problem.operation = WLM_MESSAGE;
  problem.reduce = WLM_CUSTOM;
  problem.custom = "w:row:wins; sum = relu(b) * w; max = a";
  problem.transpose = problem.want_argmax = 1;
  problem.argmax_type = WLM_I64;
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &one_head));
  problem.heads = 4;
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
  wlmi_spec_key(&sum, key);
  add_case(&snapshot, &tuned, key, 32, (const char *const[]){"sum's", NULL});
  wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
  assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
  assert_string_equal(d.variant, "sum's");
  assert_string_equal(d.like, ", for a sum of products");

  wlmi_spec_key(&one_head, key);
  add_case(&snapshot, &alike, key, 32, (const char *const[]){"similar", NULL});
  d = decide_as(&snapshot, &tuned, &spec);
  assert_int_equal(d.step, WLMI_STEP_SIMILAR);
  assert_string_equal(d.variant, "similar");
  assert_string_equal(d.like, ", with one head");
  add_case(&snapshot, &tuned, key, 32, (const char *const[]){"message's", NULL});
  d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "message's");
  assert_string_equal(d.like, ", with one head");
  wlmi_snapshot_clear(&snapshot);
}

static void message_spec(const char *text, wlm_type type, wlmi_spec *spec) {
  wlm_problem problem =
      PROBLEM(.operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = text, .n = 32, .dense_type = type);
  const wlm_csr csr = WLM_CSR_INIT;
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, spec));
}

static void add_message(wlmi_snapshot *snapshot, const wlm_stats *stats, const char *text, wlm_type type) {
  static char keys[16][WLMI_SPEC_KEY];
  static int count;
  wlmi_spec spec;
  assert_true(count < 16);
  message_spec(text, type, &spec);
  wlmi_spec_key(&spec, keys[count]);
  add_case(snapshot, stats, keys[count++], 32, (const char *const[]){text, NULL});
}

/* A message that was never measured follows the one that moves the most similar bytes, of those that were measured on
 * this very matrix, or otherwise on similar ones. */
TEST(a_message_follows_the_nearest_one) {
  wlmi_snapshot snapshot = {.case_count = 0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7), alike = snapshot_stats(1020, 9300, 1.1, 8);
  wlmi_spec of_edges, of_rows, of_sums;
  message_spec("sum=relu(b+e)", WLM_F32, &of_edges);
  message_spec("sum=relu(x*b+y)", WLM_F32, &of_rows);
  message_spec("edge_sum=k", WLM_F32, &of_sums);
  add_message(&snapshot, &alike, "sum=e", WLM_F32);
  wlmi_decision d = decide_as(&snapshot, &tuned, &of_edges);
  assert_int_equal(d.step, WLMI_STEP_SIMILAR);
  assert_string_equal(d.variant, "sum=e");
  assert_string_equal(d.like, ", for the message sum=e");
  add_message(&snapshot, &tuned, "sum=e", WLM_F16); /* of other types */
  add_message(&snapshot, &alike, "sum=b*e", WLM_F32);
  assert_string_equal(decide_as(&snapshot, &tuned, &of_edges).variant, "sum=b*e");
  add_message(&snapshot, &tuned, "sum=x*b", WLM_F32); /* without a line for each edge */
  assert_string_equal(decide_as(&snapshot, &tuned, &of_edges).variant, "sum=b*e");
  add_message(&snapshot, &tuned, "sum=e*e", WLM_F32);
  d = decide_as(&snapshot, &tuned, &of_edges);
  assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
  assert_string_equal(d.variant, "sum=e*e");
  add_message(&snapshot, &tuned, "sum=e-b", WLM_F32);
  add_message(&snapshot, &tuned, "edge_sum=b", WLM_F32);
  assert_string_equal(decide_as(&snapshot, &tuned, &of_edges).variant, "sum=e-b");
  assert_string_equal(decide_as(&snapshot, &tuned, &of_rows).variant, "sum=x*b");
  assert_string_equal(decide_as(&snapshot, &tuned, &of_sums).variant, "edge_sum=b");
  wlmi_snapshot_clear(&snapshot);
}

/* Attention follows the sum of products only where nothing was measured for its own direction. */
TEST(attention_follows_attention) {
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7), alike = snapshot_stats(1020, 9300, 1.1, 8);
  wlmi_spec spec = emit_spec(32);
  char sum[WLMI_SPEC_KEY], forward[WLMI_SPEC_KEY], gradient[WLMI_SPEC_KEY];
  wlmi_spec_key(&spec, sum);
  spec.problem.operation = WLM_ATTENTION;
  wlmi_spec_key(&spec, forward);
  add_case(&snapshot, &tuned, sum, 32, (const char *const[]){"sum's", NULL});
  wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "sum's");
  assert_string_equal(d.like, ", for a sum of products");
  add_case(&snapshot, &alike, forward, 32, (const char *const[]){"forward's", NULL});
  spec.problem.dropout = 1;
  spec.problem.heads = 4;
  d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "forward's");
  assert_string_equal(d.like, ", without dropout, with one head");
  assert_int_equal(d.step, WLMI_STEP_SIMILAR);
  spec.problem.transpose = 1;
  assert_string_equal(decide_as(&snapshot, &tuned, &spec).variant, "sum's");
  spec.problem.dropout = 0;
  spec.problem.heads = 1;
  wlmi_spec_key(&spec, gradient);
  add_case(&snapshot, &alike, gradient, 32, (const char *const[]){"gradient's", NULL});
  assert_string_equal(decide_as(&snapshot, &tuned, &spec).variant, "gradient's");
  wlmi_snapshot_clear(&snapshot);
}

/* Of simpler problems the nearest decides: that with one head is nearer than that without a transpose. */
TEST(several_heads_follow_one_head) {
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  wlmi_spec spec = emit_spec(32);
  char sum[WLMI_SPEC_KEY], transposed[WLMI_SPEC_KEY];
  wlmi_spec_key(&spec, sum);
  spec.problem.transpose = 1;
  wlmi_spec_key(&spec, transposed);
  spec.problem.heads = 4;
  add_case(&snapshot, &tuned, sum, 32, (const char *const[]){"sum's", NULL});
  wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "sum's");
  assert_string_equal(d.like, ", untransposed, with one head");
  add_case(&snapshot, &tuned, transposed, 32, (const char *const[]){"transpose's", NULL});
  d = decide_as(&snapshot, &tuned, &spec);
  assert_string_equal(d.variant, "transpose's");
  assert_string_equal(d.like, ", with one head");
  spec.problem.heads = 1;
  assert_string_equal(decide_as(&snapshot, &tuned, &spec).like, "");
  wlmi_snapshot_clear(&snapshot);
}

/* f16 and bf16 stand for each other, after everything that was measured in the type itself. */
TEST(halves_follow_each_other) {
  static const wlm_type types[2][2] = {{WLM_F16, WLM_BF16}, {WLM_BF16, WLM_F16}};
  static const char *const likes[2] = {", in f16", ", in bf16"};
  static const char *const likes_of_max[2] = {", for a sum of products, in f16", ", for a sum of products, in bf16"};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  for (int i = 0; i < 2; i++) {
    wlmi_snapshot snapshot = {0};
    wlmi_spec spec = emit_spec(32);
    char other[WLMI_SPEC_KEY], own[WLMI_SPEC_KEY];
    spec.problem.dense_type = spec.value_type = types[i][0];
    wlmi_spec_key(&spec, other);
    add_case(&snapshot, &tuned, other, 32, (const char *const[]){"other's", NULL});
    spec.problem.dense_type = spec.value_type = types[i][1];
    wlmi_spec_key(&spec, own);
    wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
    assert_string_equal(d.variant, "other's");
    assert_string_equal(d.like, likes[i]);
    assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
    spec.problem.reduce = WLM_MAX;
    spec.problem.want_argmax = 1;
    d = decide_as(&snapshot, &tuned, &spec);
    assert_string_equal(d.variant, "other's");
    assert_string_equal(d.like, likes_of_max[i]);
    add_case(&snapshot, &tuned, own, 32, (const char *const[]){"own", NULL});
    d = decide_as(&snapshot, &tuned, &spec);
    assert_string_equal(d.variant, "own");
    assert_string_equal(d.like, ", for a sum of products");
    spec.problem.dense_type = spec.value_type = WLM_F32;
    assert_int_equal(decide_as(&snapshot, &tuned, &spec).step, WLMI_STEP_RULE);
    wlmi_snapshot_clear(&snapshot);
  }
}

/* 64-bit indices follow 32-bit ones, after everything that was measured with 64-bit ones. */
TEST(wide_indices_follow_narrow_ones) {
  static const wlm_index types[][2] = {{WLM_I64, WLM_I64}, {WLM_I64, WLM_I32}};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  for (int i = 0; i < 2; i++) {
    wlmi_snapshot snapshot = {0};
    wlmi_spec spec = emit_spec(32);
    char narrow[2][WLMI_SPEC_KEY], own[WLMI_SPEC_KEY];
    spec.problem.dense_type = spec.value_type = WLM_F16;
    wlmi_spec_key(&spec, narrow[0]);
    spec.problem.reduce = WLM_MAX;
    wlmi_spec_key(&spec, narrow[1]);
    spec.problem.want_argmax = 1;
    spec.problem.heads = 4;
    spec.rowptr_type = types[i][0];
    spec.colind_type = types[i][1];
    assert_int_equal(decide_as(&snapshot, &tuned, &spec).step, WLMI_STEP_RULE);
    add_case(&snapshot, &tuned, narrow[0], 32, (const char *const[]){"narrow sum's", NULL});
    wlmi_decision d = decide_as(&snapshot, &tuned, &spec);
    assert_string_equal(d.variant, "narrow sum's");
    assert_string_equal(d.like, ", for a sum of products, with 32-bit indices");
    assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
    add_case(&snapshot, &tuned, narrow[1], 32, (const char *const[]){"narrow max's", NULL});
    d = decide_as(&snapshot, &tuned, &spec);
    assert_string_equal(d.variant, "narrow max's");
    assert_string_equal(d.like, ", without positions, with one head, with 32-bit indices");
    spec.problem.want_argmax = 0;
    spec.problem.heads = 1;
    assert_string_equal(decide_as(&snapshot, &tuned, &spec).like, ", with 32-bit indices");
    spec.problem.reduce = WLM_SUM;
    spec.problem.dense_type = spec.value_type = WLM_BF16;
    assert_string_equal(decide_as(&snapshot, &tuned, &spec).like, ", in f16, with 32-bit indices");
    wlmi_spec_key(&spec, own);
    add_case(&snapshot, &tuned, own, 32, (const char *const[]){"own", NULL});
    spec.problem.reduce = WLM_MAX;
    d = decide_as(&snapshot, &tuned, &spec);
    assert_string_equal(d.variant, "own");
    assert_string_equal(d.like, ", for a sum of products");
    wlmi_snapshot_clear(&snapshot);
  }
}

/* Where memory runs out, choosing fails and names no other kernel. */
TEST(messages_without_memory_are_not_chosen_otherwise) {
  wlmi_snapshot snapshot = {.case_count = 0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  const wlmi_variant_set variants = accepted();
  wlmi_spec spec;
  char key[WLMI_SPEC_KEY];
  message_spec("sum=relu(b+e)", WLM_F32, &spec);
  wlmi_spec_key(&spec, key);
  add_message(&snapshot, &tuned, "sum=e", WLM_F32);
  add_message(&snapshot, &tuned, "sum=b*e", WLM_F32);
  for (int64_t first = 1, failures = 1; failures; first++) {
    wlmi_decision d;
    failing_malloc_begin(first, INT64_MAX);
    const wlm_status status = select_for(&snapshot, &tuned, key, &spec, &emit_host, &variants, &d);
    failures = failing_malloc_end();
    assert_int_equal(status, failures ? WLM_ERR_OUT_OF_MEMORY : WLM_OK);
    if (!failures) assert_string_equal(d.variant, "sum=b*e");
    assert_true(first < 1000 && (failures || first > 5));
  }
  wlmi_snapshot_clear(&snapshot);
}

/* A message with 64-bit indices follows the nearest one of those with 32-bit indices, and attention attention. */
TEST(wide_messages_and_attention_follow_their_own) {
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  wlmi_spec message, attention = emit_spec(32);
  char forward[WLMI_SPEC_KEY];
  message_spec("sum=relu(b+e)", WLM_F32, &message);
  message.rowptr_type = message.colind_type = WLM_I64;
  add_message(&snapshot, &tuned, "sum=b*e", WLM_F32);
  wlmi_decision d = decide_as(&snapshot, &tuned, &message);
  assert_string_equal(d.variant, "sum=b*e");
  assert_string_equal(d.like, ", for the message sum=b*e, with 32-bit indices");
  add_message(&snapshot, &tuned, "sum=relu(b+e)", WLM_F32);
  d = decide_as(&snapshot, &tuned, &message);
  assert_string_equal(d.variant, "sum=relu(b+e)");
  assert_string_equal(d.like, ", with 32-bit indices");

  attention.problem.operation = WLM_ATTENTION;
  wlmi_spec_key(&attention, forward);
  add_case(&snapshot, &tuned, forward, 32, (const char *const[]){"forward's", NULL});
  attention.problem.dropout = 1;
  attention.problem.heads = 4;
  attention.rowptr_type = attention.colind_type = WLM_I64;
  d = decide_as(&snapshot, &tuned, &attention);
  assert_string_equal(d.variant, "forward's");
  assert_string_equal(d.like, ", without dropout, with one head, with 32-bit indices");
  wlmi_snapshot_clear(&snapshot);
}

/* A fingerprint of zeros matches no case, but the statistics may. */
TEST(no_fingerprint_matches_none) {
  wlmi_snapshot snapshot = {.case_count = 0};
  const wlm_stats nameless = snapshot_stats(1000, 9000, 1, 0);
  add_case(&snapshot, &nameless, "p", 32, (const char *const[]){"exact", NULL});
  assert_int_equal(decide(&snapshot, &nameless, "p", 32).step, WLMI_STEP_SIMILAR);
  wlmi_snapshot_clear(&snapshot);
}

TEST(takes_the_most_similar_matrix) {
  wlmi_snapshot snapshot = {0};
  const wlm_stats here = snapshot_stats(1000, 9000, 1, 1), nearest = snapshot_stats(1000, 9300, 1, 2),
                  near = snapshot_stats(1000, 9600, 1, 3);
  add_case(&snapshot, &near, "p", 32, (const char *const[]){"near", NULL});
  add_case(&snapshot, &nearest, "p", 32, (const char *const[]){"nearest", NULL});
  add_case(&snapshot, &near, "q", 32, (const char *const[]){"near", NULL});
  add_case(&snapshot, &nearest, "q", 32, (const char *const[]){"not valid", NULL});
  assert_string_equal(decide(&snapshot, &here, "p", 32).variant, "nearest");
  assert_string_equal(decide(&snapshot, &here, "q", 32).variant, "near");
  wlmi_snapshot_clear(&snapshot);
}

TEST(leaves_out_invalid_variants) {
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7), alike = snapshot_stats(1020, 9300, 1.1, 8);
  add_case(&snapshot, &tuned, "p", 32, (const char *const[]){"no", "not", "yes", "later", NULL});
  add_case(&snapshot, &tuned, "q", 32, (const char *const[]){"no", NULL});
  add_case(&snapshot, &alike, "q", 32, (const char *const[]){"none", NULL});
  wlmi_decision d = decide(&snapshot, &tuned, "p", 32);
  assert_string_equal(d.variant, "yes");
  assert_int_equal(d.refused, 2);
  assert_int_equal(d.ranked_count, 2);
  assert_int_equal(decide(&snapshot, &tuned, "q", 32).step, WLMI_STEP_RULE);
  wlmi_snapshot_clear(&snapshot);
}

/* Measurements by a version that had other families or parameter values. */
TEST(leaves_out_variants_that_no_longer_exist) {
  wlmi_snapshot snapshot = {.families = snapshot_families()};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  add_case(&snapshot, &tuned, "p", 32,
           (const char *const[]){"host_gone/rows=1", "host_row/rows=3,tile=32", "host_row/rows=128,tile=16", NULL});
  add_case(&snapshot, &tuned, "q", 32, (const char *const[]){"host_gone/rows=1", NULL});
  snapshot_failure(&snapshot, "host_gone/rows=2", "why");
  wlmi_decision d = decide(&snapshot, &tuned, "p", 32);
  assert_string_equal(d.variant, "host_row/rows=128,tile=16");
  assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
  assert_int_equal(d.refused, 2);
  assert_string_equal(d.refusals[0].variant, "host_gone/rows=1");
  d = decide(&snapshot, &tuned, "q", 32);
  assert_int_equal(d.step, WLMI_STEP_RULE);
  assert_true(d.failed == 1 && !strcmp(d.failures[0].variant, "host_gone/rows=2"));
  wlmi_snapshot_clear(&snapshot);
}

static void add_failure(wlmi_snapshot *snapshot, const char *variant) {
  snapshot_failure(snapshot, variant, "it was wrong");
}

/* A variant that failed on the matrix is not chosen for it by a similar matrix, a rule or another device class, but for
 * other matrices it is. */
TEST(failed_variants_are_not_chosen) {
  wlmi_snapshot snapshot = {0}, lent = {0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7), alike = snapshot_stats(1020, 9300, 1.1, 8);
  add_case(&snapshot, &tuned, "p", 32, (const char *const[]){"exact", NULL});
  add_failure(&snapshot, "failed");
  add_case(&snapshot, &tuned, "q", 32, (const char *const[]){NULL});
  add_failure(&snapshot, "failed");
  add_failure(&snapshot, "other");
  add_case(&snapshot, &alike, "q", 32, (const char *const[]){"failed", "second", NULL});
  assert_string_equal(decide(&snapshot, &alike, "q", 32).variant, "failed");
  wlmi_decision d = decide(&snapshot, &tuned, "p", 32);
  assert_string_equal(d.variant, "exact");
  assert_true(d.failed == 1 && d.refused == 0);
  assert_string_equal(d.failures[0].variant, "failed");
  d = decide(&snapshot, &tuned, "q", 32);
  assert_int_equal(d.step, WLMI_STEP_SIMILAR);
  assert_string_equal(d.variant, "second");
  assert_true(d.failed == 2 && d.refused == 1 && d.similar_count == 2);
  assert_string_equal(d.refusals[0].variant, "failed");
  assert_string_equal(d.refusals[0].reason, "failed on this very matrix: it was wrong");

  char first[WLMI_VARIANT_NAME];
  d = decide(&snapshot, &tuned, "r", 32);
  assert_int_equal(d.step, WLMI_STEP_RULE);
  strcpy(first, d.variant);
  add_case(&snapshot, &tuned, "r", 32, (const char *const[]){NULL});
  add_failure(&snapshot, first);
  d = decide(&snapshot, &tuned, "r", 32);
  assert_int_equal(d.step, WLMI_STEP_RULE);
  assert_string_not_equal(d.variant, first);
  assert_string_equal(decide(&snapshot, &alike, "r", 32).variant, first);

  add_case(&lent, &tuned, "r", 32, (const char *const[]){NULL});
  add_failure(&lent, first);
  lent.cases[0].borrowed = "another class";
  assert_string_equal(decide(&lent, &tuned, "r", 32).variant, first);
  wlmi_snapshot_clear(&snapshot);
  wlmi_snapshot_clear(&lent);
}

/* Screening compares only a few rows, so a matrix with nothing but screening runs does not count as tuned. */
TEST(screening_runs_decide_nothing) {
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  wlmi_snapshot snapshot = {0};
  add_case(&snapshot, &tuned, "p", 32, (const char *const[]){"first", "second", "third", NULL});
  wlmi_measured *candidates = (wlmi_measured *)snapshot.cases[0].candidates;
  candidates[0].precise = 0;
  assert_string_equal(decide(&snapshot, &tuned, "p", 32).variant, "second");
  candidates[1].precise = candidates[2].precise = 0;
  assert_int_equal(decide(&snapshot, &tuned, "p", 32).step, WLMI_STEP_RULE);
  candidates[2].online = 1; /* online tuning compares all rows */
  assert_string_equal(decide(&snapshot, &tuned, "p", 32).variant, "third");
  wlmi_snapshot_clear(&snapshot);
}

/* All kernels failed on this matrix: one that failed for another reason than a wrong result is chosen. */
TEST(a_kernel_is_chosen_even_if_all_failed) {
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  const wlmi_spec spec = emit_spec(32);
  wlmi_snapshot snapshot = {0};
  wlmi_decision decision;
  wlmi_candidate all[2] = {0};
  const wlmi_candidate_list list = {snapshot_families(), all, 2};
  wlmi_variant_set variants = accepted();
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
  wlmi_snapshot_clear(&snapshot);
}

/* ---- thin cases ---------------------------------------------------------------------------------- */

enum { ALL = 30 };

static wlmi_decision decide_among(const wlmi_snapshot *snapshot, const wlm_stats *stats, int64_t n, int count) {
  static const wlmi_candidate all[ALL];
  wlmi_decision decision;
  const wlmi_spec spec = emit_spec(n);
  const wlmi_candidate_list list = {snapshot_families(), all, count};
  wlmi_variant_set variants = accepted();
  variants.list = &list;
  assert_int_equal(select_for(snapshot, stats, "p", &spec, &emit_host, &variants, &decision), WLM_OK);
  return decision;
}

static wlmi_decision decide_among_all(const wlmi_snapshot *snapshot, const wlm_stats *stats, int64_t n) {
  return decide_among(snapshot, stats, n, ALL);
}

/* The matrix's own case is ignored if it has neither the rules' choice nor eight candidates. */
TEST(a_thin_case_does_not_beat_a_rule) {
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", NULL};
  const wlmi_snapshot nothing = {0};
  wlmi_snapshot thin = {0}, with_rule = {0}, with_failed_rule = {0}, enough = {0};
  char rule[WLMI_VARIANT_NAME];
  strcpy(rule, decide(&nothing, &tuned, "p", 32).variant);
  add_case(&thin, &tuned, "p", 32, (const char *const[]){"a", "b", NULL});
  wlmi_decision d = decide_among_all(&thin, &tuned, 32);
  assert_int_equal(d.step, WLMI_STEP_RULE);
  assert_string_equal(d.variant, rule);
  assert_true(isnan(d.distance));
  assert_true(d.thin_known == 2 && d.thin_of == ALL);
  assert_string_equal(d.thin_variant, "a");

  add_case(&with_rule, &tuned, "p", 32, (const char *const[]){"a", rule, NULL});
  d = decide_among_all(&with_rule, &tuned, 32);
  assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
  assert_string_equal(d.variant, "a");
  assert_true(d.thin_known == 0 && d.distance == 0);

  add_case(&with_failed_rule, &tuned, "p", 32, (const char *const[]){"a", NULL});
  add_failure(&with_failed_rule, rule);
  assert_string_not_equal(decide_among_all(&with_failed_rule, &tuned, 32).variant, rule);

  add_case(&enough, &tuned, "p", 32, names);
  d = decide_among_all(&enough, &tuned, 32);
  assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
  assert_string_equal(d.variant, "a");
  wlmi_snapshot_clear(&thin);
  wlmi_snapshot_clear(&with_rule);
  wlmi_snapshot_clear(&with_failed_rule);
  wlmi_snapshot_clear(&enough);
}

/* A case that knows a third of the candidates is not thin. */
TEST(a_third_of_the_candidates_is_enough) {
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  wlmi_snapshot snapshot = {0};
  add_case(&snapshot, &tuned, "p", 32, (const char *const[]){"a", "b", "c", "d", "e", NULL});
  assert_string_equal(decide_among(&snapshot, &tuned, 32, 15).variant, "a");
  assert_int_equal(decide_among(&snapshot, &tuned, 32, 16).step, WLMI_STEP_RULE);
  wlmi_snapshot_clear(&snapshot);
}

/* After a thin case, a similar matrix or another device class with enough measurements decides; a thin case of a
 * similar matrix never does. */
TEST(other_cases_decide_after_a_thin_one) {
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7), alike = snapshot_stats(1020, 9300, 1.1, 8),
                  nearer = snapshot_stats(1000, 9000, 1.05, 9);
  const char *const names[] = {"s", "t", "u", "v", "w", "x", "y", "z", NULL};
  wlmi_snapshot snapshot = {0};
  add_case(&snapshot, &tuned, "p", 32, (const char *const[]){"a", NULL});
  add_case(&snapshot, &nearer, "p", 32, (const char *const[]){"a", NULL});
  assert_int_equal(decide_among_all(&snapshot, &tuned, 32).step, WLMI_STEP_RULE);
  add_case(&snapshot, &alike, "p", 32, names);
  wlmi_decision d = decide_among_all(&snapshot, &tuned, 32);
  assert_int_equal(d.step, WLMI_STEP_SIMILAR);
  assert_string_equal(d.variant, "s");
  assert_true(d.distance > 0 && d.thin_known == 1);
  add_case(&snapshot, &tuned, "p", 32, names);
  snapshot.cases[3].borrowed = "another class";
  d = decide_among_all(&snapshot, &tuned, 32);
  assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
  assert_string_equal(d.borrowed, "another class");
  for (int i = 0; i < 8; i++) add_case(&snapshot, &alike, "p", 64, (const char *const[]){"a", NULL});
  assert_int_equal(decide_among_all(&snapshot, &tuned, 64).step, WLMI_STEP_RULE);
  wlmi_snapshot_clear(&snapshot);
}

/* ---- similar cases ------------------------------------------------------------------------------- */

/* Explain shows the tuned matrices of this class of problems, the most similar first, and at most WLMI_SIMILAR. */
TEST(similar_matrices_are_sorted) {
  static const char other[] = "op=mul.sum,dense=f16,rowptr=i32,colind=i32,values=f32,sample=none";
  static const int octaves[WLMI_SIMILAR + 2] = {3, 1, 6, 2, 5, 4};
  const wlm_stats here = snapshot_stats(1000, 9000, 1, 1);
  wlmi_spec spec = emit_spec(32);
  wlmi_snapshot snapshot = {0};
  char sum[WLMI_SPEC_KEY];
  wlmi_spec_key(&spec, sum);
  for (int i = 0; i < WLMI_SIMILAR + 2; i++) {
    const wlm_stats stats = snapshot_stats(1000, (int64_t)9000 << octaves[i], 1, (uint64_t)(10 + i));
    add_case(&snapshot, &stats, sum, 32, (const char *const[]){"a", NULL});
  }
  add_case(&snapshot, &here, other, 32, (const char *const[]){"a", NULL});
  const wlmi_decision d = decide_as(&snapshot, &here, &spec);
  assert_int_equal(d.similar_count, WLMI_SIMILAR);
  for (int i = 0; i < WLMI_SIMILAR; i++) assert_int_equal(d.similar[i].nnz, (int64_t)9000 << (1 + i));
  wlmi_snapshot_clear(&snapshot);
}

/* ---- preparation --------------------------------------------------------------------------------- */

typedef struct measured {
  const char *variant;
  double cost, prepare;
} measured;

static void add_measured(wlmi_snapshot *snapshot, const wlm_stats *stats, const measured *list) {
  add_case(snapshot, stats, "p", 32, (const char *const[]){NULL});
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
  wlmi_snapshot snapshot = {0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7);
  add_measured(&snapshot, &tuned, amortised);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_decision d = decide_for(&snapshot, &tuned, "p", 32, cases[i].calls);
    assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
    assert_int_equal(d.calls, cases[i].calls);
    assert_string_equal(d.variant, cases[i].ranked[0]);
    assert_int_equal(d.refused, cases[i].refused);
    check_ranking(&d, cases[i].ranked);
    assert_string_equal(d.other.variant, cases[i].other);
    assert_true(d.other.break_even == expected_break_even(cases[i].other));
  }
  wlmi_snapshot_clear(&snapshot);
}

/* With one call no prepared variant is chosen: not if it is faster with its whole preparation, not if it is the only
 * measured one, and not if its measurement is older than its prepare pass. */
TEST(nothing_is_prepared_for_one_call) {
  wlmi_snapshot cheap = {0}, only = {0}, older = {0};
  const wlm_stats tuned = snapshot_stats(1000, 9000, 1, 7), alike = snapshot_stats(1020, 9300, 1.1, 8);
  add_measured(&cheap, &tuned, (const measured[]){{"plain", 9, 0}, {"quick", 1, 2}, {NULL, 0, 0}});
  assert_string_equal(decide_for(&cheap, &tuned, "p", 32, 1).variant, "plain");
  assert_string_equal(decide_for(&cheap, &tuned, "p", 32, 2).variant, "quick");
  add_measured(&only, &tuned, (const measured[]){{"quick", 1, 2}, {NULL, 0, 0}});
  assert_int_equal(decide_for(&only, &tuned, "p", 32, 1).step, WLMI_STEP_RULE);
  add_measured(&only, &alike, (const measured[]){{"plain", 1, 0}, {NULL, 0, 0}});
  wlmi_decision d = decide_for(&only, &tuned, "p", 32, 1);
  assert_int_equal(d.step, WLMI_STEP_SIMILAR);
  assert_string_equal(d.variant, "plain");
  d = decide_for(&only, &tuned, "p", 32, 2);
  assert_string_equal(d.variant, "quick");
  assert_string_equal(d.other.variant, "");
  assert_true(d.ranked[0].break_even == 0); /* there is no unprepared variant to compare with */
  add_measured(&older, &tuned, (const measured[]){{"turned", 1, 0}, {"plain", 2, 0}, {NULL, 0, 0}});
  d = decide_for(&older, &tuned, "p", 32, 1);
  assert_string_equal(d.variant, "plain");
  assert_int_equal(d.refused, 1);
  assert_string_equal(decide_for(&older, &tuned, "p", 32, 2).variant, "turned");
  wlmi_snapshot_clear(&cheap);
  wlmi_snapshot_clear(&only);
  wlmi_snapshot_clear(&older);
}
