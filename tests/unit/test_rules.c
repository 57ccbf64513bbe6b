/* The built-in rules with the real families: some rule serves every problem, each rule decides for some, and they name
 * what they should. */
#include "core/problem/spec_key.h"
#include "select/features.h"
#include "select/forecast.h"
#include "select/rules.h"
#include "support/emit_fixture.h"
#include "support/snapshot_fixture.h"
#include "support/test.h"

enum { PLAIN, SAMPLED, GRADIENT, MESSAGE, HALVES, SAMPLED_TRANSPOSE, SAMPLED_SDDMM, KINDS };

static wlmi_spec spec_of(int64_t n, int kind) {
  wlm_problem problem = PROBLEM(.n = n);
  wlm_csr csr = WLM_CSR_INIT;
  if (kind == GRADIENT || kind == SAMPLED_SDDMM) problem.operation = WLM_SDDMM;
  problem.transpose = kind == SAMPLED_TRANSPOSE;
  if (kind == MESSAGE) {
    problem.operation = WLM_MESSAGE;
    problem.reduce = WLM_CUSTOM;
    problem.custom = "max=relu(b+e);edge_sum=x*b"; /* needs a group of lanes for each head */
  }
  if (kind == HALVES) problem.dense_type = csr.value_type = WLM_F16;
  if (kind == SAMPLED || kind > HALVES) {
    problem.sampling.sample = WLM_SAMPLE_FASTRAND;
    problem.sampling.width = 2304;
  }
  csr.values = &csr;
  GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
  return spec;
}

static wlm_status select_by_rules(const wlmi_spec *spec, const wlmi_limits *limits, const wlm_stats *stats,
                                  wlmi_use use, wlmi_decision *decision) {
  const wlmi_snapshot nothing = {0};
  OWN(wlmi_candidates, list, wlmi_generator_describe(emit_generator, spec, limits, &list));
  const wlmi_variant_set variants = wlmi_variants_of_list(list);
  const wlmi_request request = {stats, use, "p", spec, limits, &variants};
  const wlm_status status = wlmi_select(&nothing, &request, decision);
  return status;
}

static wlmi_decision decide(const wlmi_spec *spec, const wlmi_limits *limits, const wlm_stats *stats) {
  GET(wlmi_decision, decision, select_by_rules(spec, limits, stats, WLMI_USE_MEASURED, &decision));
  return decision;
}

TEST(rules_serve_every_problem) {
  for (int64_t n = 1; n <= 600; n += n < 140 ? 1 : 47)
    for (int number = 0; number < 4 * KINDS; number++) {
      wlmi_spec spec = spec_of(n, number / 4);
      for (int64_t heads = 2; heads <= 8; heads++) /* as many heads as divide n */
        if (n % heads == 0 && number & 1) spec.problem.heads = heads;
      wlm_stats stats = snapshot_stats(1000, number & 2 ? 400 : 4000000, number & 1 ? 30 : 0.1, 1);
      wlmi_decision decision;
      for (int device = 0; device < 2; device++) {
        if (select_by_rules(&spec, device ? &emit_cuda : &emit_host, &stats, WLMI_USE_MEASURED, &decision) != WLM_OK)
          fail_msg("kind %d, n = %lld, %lld heads: %s", number / 4, (long long)n, (long long)spec.problem.heads,
                   wlm_error_detail());
        assert_int_equal(decision.step, WLMI_STEP_RULE);
        assert_int_equal(decision.entries[decision.entry_count - 1].step, WLMI_STEP_BUILTIN);
        for (int i = 0; i < decision.entry_count; i++) /* else a call would take one of them for as quick as the best */
          assert_true(decision.entries[i].seconds == 0);
        assert_non_null(decision.rule);
      }
    }
}

/* Whether the first candidate that a rule names for some kind of problem and N needs preparation. */
static int rule_prepares(const wlmi_rule *rule) {
  char variant[WLMI_VARIANT_NAME];
  wlmi_variant value;
  for (int64_t n = rule->max_n < 256 ? rule->max_n : 256, kind = 0; n > 0; kind++, n -= kind / KINDS, kind %= KINDS) {
    const wlmi_spec spec = spec_of(n, (int)kind);
    const wlmi_limits *limits = rule->target == WLMI_TARGET_CUDA ? &emit_cuda : &emit_host;
    OWN(wlmi_candidates, list, wlmi_generator_describe(emit_generator, &spec, limits, &list));
    for (int number = 0; wlmi_rule_spell(rule, &spec.problem, n, number, variant); number++) {
      assert_status(WLM_OK, wlmi_variant_parse(wlmi_generator_families(emit_generator), variant, &value));
      const wlmi_candidate *candidate = wlmi_candidate_find(list, &value);
      if (candidate) return candidate->prepares;
    }
  }
  fail_msg("%s serves no n", rule->variant);
  return 1;
}

TEST(rules_that_prepare_state_how_many_calls) {
  for (int i = 0; i < wlmi_rule_count; i++)
    if (rule_prepares(&wlmi_rules[i]) != (wlmi_rules[i].min_calls > 1))
      fail_msg("rule %d, %s, states %lld calls", i, wlmi_rules[i].variant, (long long)wlmi_rules[i].min_calls);
}

/* Each rule decides for some problem: the rules above it do not always apply first. */
TEST(every_rule_can_decide) {
  static const int64_t widths[] = {1, 3, 4, 8, 16, 32, 33, 64, 100, 128, 256, 512};
  enum { WIDTHS = sizeof widths / sizeof *widths };
  for (int i = 0; i < wlmi_rule_count; i++) {
    const wlmi_rule *rule = &wlmi_rules[i];
    const int64_t nnz = rule->max_size < 40000000 ? rule->max_size : 40000000;
    int found = 0;
    for (int number = 0; number < 4 * WIDTHS * KINDS && !found; number++) {
      const int64_t n = widths[number / 4 % WIDTHS];
      wlmi_spec spec = spec_of(n, number / 4 / WIDTHS);
      const double mean = rule->min_mean > 0 ? 1.2 * rule->min_mean : number & 2 ? 40 : 2;
      wlm_stats stats = snapshot_stats((int64_t)((double)nnz / mean), nnz, rule->min_cv, 1);
      char variant[WLMI_VARIANT_NAME];
      if (number & 1) stats.longest = rule->max_longest < nnz / 60 ? rule->max_longest : nnz / 60;
      spec.problem.policy.expected_calls = rule->min_calls > 1 ? rule->min_calls : 1;
      const wlmi_decision decision = decide(&spec, rule->target == WLMI_TARGET_CUDA ? &emit_cuda : &emit_host, &stats);
      for (int spelling = 0; !found && wlmi_rule_spell(rule, &spec.problem, n, spelling, variant); spelling++)
        found = !strcmp(decision.variant, variant) && !strcmp(decision.rule, rule->why);
    }
    if (!found) fail_msg("rule %d, %s, never decides", i, rule->variant);
  }
}

/* Matrices for which the rules name row_sorted, and what keeps them from it. In a small matrix a row may have more than
 * a fiftieth of the non-zeros; in 16-bit types shorter rows are sorted. */
TEST(rows_are_sorted_for_many_sums_without_a_huge_row) {
  static const struct {
    int64_t n, rows, nnz, longest;
    double cv;
    int64_t calls;
    wlm_reduce reduce;
    wlm_message message;
    wlm_type type;
    int sorted;
  } cases[] = {{32, 20000, 100000, 2000, 1.5, 100, WLM_SUM, WLM_MUL, WLM_F32, 1},
               {32, 20000, 100000, 2000, 1.5, 100, WLM_MEAN, WLM_COPY_B, WLM_F32, 1},
               {32, 20000, 100000, 2000, 1.5, 99, WLM_SUM, WLM_MUL, WLM_F32, 0},
               {32, 20000, 100000, 2001, 1.5, 100, WLM_SUM, WLM_MUL, WLM_F32, 0},
               {32, 20000, 100000, 42, 0.6, 100, WLM_SUM, WLM_MUL, WLM_F32, 1},
               {32, 20000, 100000, 41, 0.6, 100, WLM_SUM, WLM_MUL, WLM_F32, 0},
               {32, 20000, 100000, 2000, 1.5, 100, WLM_MAX, WLM_MUL, WLM_F32, 0},
               {32, 20000, 100000, 2000, 1.5, 100, WLM_SUM, WLM_COPY_A, WLM_F32, 0},
               {64, 2000, 10000, 900, 2, 100, WLM_SUM, WLM_MUL, WLM_F32, 1},
               {64, 2000, 10000, 1100, 2, 100, WLM_SUM, WLM_MUL, WLM_F32, 0},
               {64, 10000, 300000, 40, 0.3, 100, WLM_SUM, WLM_MUL, WLM_F32, 0},
               {64, 10000, 300000, 40, 0.3, 100, WLM_SUM, WLM_MUL, WLM_F16, 1},
               {64, 10000, 300000, 40, 0.3, 100, WLM_SUM, WLM_MUL, WLM_BF16, 1},
               {64, 100000, 300000, 6, 0.3, 100, WLM_SUM, WLM_MUL, WLM_F16, 0},
               {64, 10000, 300000, 7000, 0.3, 100, WLM_SUM, WLM_MUL, WLM_F16, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_spec spec = spec_of(cases[i].n, PLAIN);
    wlm_stats stats = snapshot_stats(cases[i].rows, cases[i].nnz, cases[i].cv, 1);
    stats.longest = cases[i].longest;
    spec.problem.policy.expected_calls = cases[i].calls;
    spec.problem.reduce = cases[i].reduce;
    spec.problem.message = cases[i].message;
    spec.problem.dense_type = spec.value_type = cases[i].type;
    const wlmi_decision decision = decide(&spec, &emit_cuda, &stats);
    if ((strncmp(decision.variant, "row_sorted/", 11) == 0) != cases[i].sorted)
      fail_msg("case %zu: %s", i, decision.variant);
  }
}

/* A kernel that must be prepared has others behind it, should it not load: f64 has no built-in kernel. */
TEST(a_prepared_choice_has_fallbacks) {
  wlmi_spec spec = spec_of(16, PLAIN);
  wlm_stats stats = snapshot_stats(5000, 40000, 1.5, 1);
  char name[WLMI_VARIANT_NAME];
  int others = 0;
  stats.longest = 800;
  spec.problem.dense_type = spec.value_type = WLM_F64;
  spec.problem.policy.expected_calls = 100;
  const wlmi_decision decision = decide(&spec, &emit_cuda, &stats);
  assert_memory_equal(decision.variant, "row_sorted/", 11);
  for (int i = 1; i < decision.entry_count; i++) {
    wlmi_entry_print(&decision, i, name);
    others += decision.entries[i].step != WLMI_STEP_BUILTIN && strncmp(name, "row_sorted/", 11) != 0;
  }
  assert_true(others > 0);
}

TEST(rules_are_spelled_for_every_vector) {
  static const char *const spelled[] = {"f/lanes=16,vector=8,batch=4", "f/lanes=16,vector=4,batch=4",
                                        "f/lanes=32,vector=2,batch=4", "f/lanes=32,vector=1,batch=4"};
  char variant[WLMI_VARIANT_NAME];
  wlm_problem problem = PROBLEM(.n = 100);
  wlmi_rule rule = {.max_n = INT64_MAX, .variant = "f/lanes=64/@,vector=@,batch=4"};
  for (int number = 0; number < 4; number++) {
    assert_true(wlmi_rule_spell(&rule, &problem, 100, number, variant));
    assert_string_equal(variant, spelled[number]);
  }
  assert_false(wlmi_rule_spell(&rule, &problem, 100, 4, variant));
  rule.variant = "f/lanes=16/@,vector=@";
  assert_true(wlmi_rule_spell(&rule, &problem, 100, 0, variant));
  assert_string_equal(variant, "f/lanes=4,vector=8");
  rule.variant = "row_vec/lanes=16/@,vector=@";
  assert_true(wlmi_rule_spell(&rule, &problem, 16, 0, variant));
  assert_string_equal(variant, "row_vec/lanes=2,vector=8");
  problem.operation = WLM_SDDMM;
  assert_true(wlmi_rule_spell(&rule, &problem, 16, 0, variant));
  assert_string_equal(variant, "row_vec/lanes=4,vector=8");
  problem.operation = WLM_SPMM;
  rule.variant = "f/lanes=16/@,vector=@";
  assert_true(wlmi_rule_spell(&rule, &problem, 7, 3, variant)); /* half of the lanes would have no column */
  assert_string_equal(variant, "f/lanes=8,vector=1");
  assert_true(wlmi_rule_spell(&rule, &problem, 8, 1, variant)); /* one lane or two serve so few columns */
  assert_string_equal(variant, "f/lanes=2,vector=4");
  assert_true(wlmi_rule_spell(&rule, &problem, 2, 2, variant));
  assert_string_equal(variant, "f/lanes=1,vector=2");
  rule.variant = "f/tile=#";
  assert_true(wlmi_rule_spell(&rule, &problem, 33, 0, variant));
  assert_string_equal(variant, "f/tile=64");
  assert_true(wlmi_rule_spell(&rule, &problem, 33, 1, variant)); /* where the first one failed */
  assert_string_equal(variant, "f/tile=128");
  assert_false(wlmi_rule_spell(&rule, &problem, 33, 2, variant));
  assert_true(wlmi_rule_spell(&rule, &problem, 1, 0, variant));
  assert_string_equal(variant, "f/tile=16");
  assert_true(wlmi_rule_spell(&rule, &problem, 1000, 0, variant));
  assert_string_equal(variant, "f/tile=128");
  rule.variant = "f/cf=2,rows=8";
  assert_true(wlmi_rule_spell(&rule, &problem, 100, 0, variant));
  assert_string_equal(variant, "f/cf=2,rows=8");
  assert_false(wlmi_rule_spell(&rule, &problem, 100, 1, variant));
}

/* Products in 16 bits follow the rule for half their columns, with vectors twice as long; 16 columns are not narrow. */
TEST(short_types_follow_half_their_columns) {
  static const struct {
    int64_t n;
    wlm_type type;
    const char *variant;
  } cases[] = {{32, WLM_F32, "merge_path/items=512,lanes=8,vector=4,batch=4,prepared=0"},
               {64, WLM_F32, "merge_path/items=512,lanes=16,vector=4,batch=4,prepared=0"},
               {64, WLM_F16, "merge_path/items=512,lanes=8,vector=8,batch=4,prepared=0"},
               {64, WLM_BF16, "merge_path/items=512,lanes=8,vector=8,batch=4,prepared=0"},
               {128, WLM_F16, "merge_path/items=512,lanes=16,vector=8,batch=4,prepared=0"},
               {16, WLM_F16, "merge_path/items=512,lanes=4,vector=8,batch=4,prepared=0"}};
  wlm_stats stats = snapshot_stats(30000, 200000, 3, 1);
  stats.longest = 9000;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_spec spec = spec_of(cases[i].n, PLAIN);
    spec.problem.dense_type = spec.value_type = cases[i].type;
    assert_string_equal(decide(&spec, &emit_cuda, &stats).variant, cases[i].variant);
  }
}

/* For every type, N and number of heads: kernels that give whole rows to a group of lanes would wait for the longest
 * row. */
TEST(skewed_rows_are_split) {
  static const struct shape {
    int64_t n, heads;
  } shapes[] = {{1, 1},  {2, 1},  {3, 1},  {7, 1},  {16, 1},  {33, 1},
                {34, 1}, {36, 1}, {64, 4}, {40, 8}, {100, 4}, {128, 1}};
  for (int type = WLM_F32; type <= WLM_F64; type++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (int64_t nnz = 100000; nnz <= 100000000; nnz *= 10) {
        wlmi_spec spec = spec_of(shapes[i].n, PLAIN);
        wlm_stats stats = snapshot_stats(10000, nnz, 3, 1);
        stats.longest = 100 * nnz / stats.rows;
        spec.problem.dense_type = spec.value_type = (wlm_type)type;
        spec.problem.heads = shapes[i].heads;
        const wlmi_decision decision = decide(&spec, &emit_cuda, &stats);
        OWN(wlmi_candidates, list, wlmi_generator_describe(emit_generator, &spec, &emit_cuda, &list));
        const wlmi_candidate *chosen = wlmi_candidate_named(list, decision.variant);
        assert_non_null(chosen);
        if (chosen->whole_rows && !strstr(decision.variant, "row_fold/"))
          fail_msg("type %d, n = %lld, %lld heads: %s", type, (long long)shapes[i].n, (long long)shapes[i].heads,
                   decision.variant);
      }
}

/* Rows are also skewed if they are even but for one that is longer than a processor's even share. */
TEST(one_long_row_is_skewed) {
  const wlmi_spec spec = spec_of(32, PLAIN);
  wlm_stats stats = snapshot_stats(100000, 1000000, 0.5, 1);
  stats.longest = stats.nnz / emit_host.processors;
  assert_memory_equal(decide(&spec, &emit_host, &stats).variant, "host_row/", 9);
  stats.longest++;
  assert_memory_equal(decide(&spec, &emit_host, &stats).variant, "host_nnz/", 9);
}

/* Rows stay whole where none is long, but only if the longest row was measured. */
TEST(an_estimated_longest_row_is_not_trusted) {
  const wlmi_spec spec = spec_of(16, PLAIN);
  wlm_stats stats = snapshot_stats(46500, 139498, 1.2, 1);
  wlmi_decision decision;
  stats.longest = 60;
  assert_status(WLM_OK, select_by_rules(&spec, &emit_cuda, &stats, WLMI_USE_MEASURED, &decision));
  assert_memory_equal(decision.variant, "row_vec/", 8);
  assert_status(WLM_OK, select_by_rules(&spec, &emit_cuda, &stats, WLMI_USE_ESTIMATED, &decision));
  assert_memory_equal(decision.variant, "merge_path/", 11);
}

/* The terms of a graph's nodes are products with two rows: many short rows, for which a group takes few lanes. */
TEST(short_rows_of_a_gradient_take_few_lanes) {
  static const struct sddmm {
    int64_t longest;
    const char *variant;
  } cases[] = {{2, "sddmm_row/lanes=8,vector=4,batch=4"},
               {6, "sddmm_row/lanes=8,vector=4,batch=4"},
               {7, "sddmm_row/lanes=16,vector=4,batch=8"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlmi_spec spec = spec_of(64, GRADIENT);
    const wlm_stats stats = snapshot_stats(50000, 50000 * cases[i].longest, 0, 1);
    assert_string_equal(decide(&spec, &emit_cuda, &stats).variant, cases[i].variant);
  }
}

/* Rows of a gradient stay whole where they are even, and always where they are sampled, for which no kernel splits
 * them. */
TEST(skewed_rows_of_a_gradient_are_split) {
  static const struct sddmm {
    int kind;
    double cv;
    const char *variant;
  } cases[] = {{GRADIENT, .7, "sddmm_row/lanes=16,vector=4,batch=8"},
               {GRADIENT, .9, "sddmm_nnz/share=8,lanes=8,vector=4,batch=4"},
               {SAMPLED_SDDMM, .9, "sddmm_row/lanes=16,vector=4,batch=8"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlmi_spec spec = spec_of(64, cases[i].kind);
    const wlm_stats stats = snapshot_stats(50000, 450000, cases[i].cv, 1);
    assert_string_equal(decide(&spec, &emit_cuda, &stats).variant, cases[i].variant);
  }
}

/* Gradients on a host and transposes of sampled matrices have one family, which no rule names. */
TEST(an_operation_with_one_family_needs_no_rule) {
  static const struct only {
    int kind;
    const wlmi_limits *limits;
    int64_t n;
    const char *variant;
  } cases[] = {{GRADIENT, &emit_host, 64, "sddmm_host/nonzeros=1024,ahead=16"},
               {SAMPLED_TRANSPOSE, &emit_cuda, 64, "row_kept/lanes=16,vector=4,batch=4"},
               {SAMPLED_TRANSPOSE, &emit_cuda, 17, "row_kept/lanes=16,vector=1,batch=4"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlmi_spec spec = spec_of(cases[i].n, cases[i].kind);
    const wlm_stats stats = snapshot_stats(50000, 300000, 1, 1);
    assert_string_equal(decide(&spec, cases[i].limits, &stats).variant, cases[i].variant);
  }
}

/* Messages take the rules of products, and where the first is not valid for them another one. */
TEST(messages_take_the_rules_of_products) {
  static const wlm_type types[] = {WLM_F32, WLM_F16};
  for (int k = 0; k < 2; k++)
    for (int64_t nnz = 1000; nnz < 10000000; nnz *= 3) {
      const wlm_stats stats = snapshot_stats(nnz / 9, nnz, 1.5, 1);
      const char *texts[] = {NULL, "sum=x-b", "sum=x-b;edge_sum=x*b", "sum=b-e"};
      wlmi_decision decisions[4];
      for (int i = 0; i < 4; i++) {
        wlmi_spec spec = spec_of(64, PLAIN);
        wlm_problem problem = spec.problem;
        const wlm_csr csr = {.size = sizeof csr, .values = &csr, .value_type = types[k]};
        problem.dense_type = types[k];
        if (texts[i]) {
          problem.operation = WLM_MESSAGE;
          problem.reduce = WLM_CUSTOM;
          problem.custom = texts[i];
        }
        assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
        decisions[i] = decide(&spec, &emit_cuda, &stats);
      }
      assert_string_equal(decisions[0].variant, decisions[1].variant);
      assert_string_equal(decisions[0].variant, decisions[3].variant);
    }
}

/* Few sampled rows take two warps each, however many non-zeros they have. */
TEST(few_sampled_rows_take_two_warps) {
  static const struct {
    int64_t n, rows, nnz;
    const char *variant;
  } cases[] = {{32, 4096, 40000, "row_sample/threads=32,rows=8,vector=1,batch=8"},
               {64, 4096, 40000000, "row_sample/threads=64,rows=4,vector=1,batch=8"},
               {64, 4097, 5000, "row_sample/threads=32,rows=4,vector=1,batch=8"},
               {128, 4096, 40000, "row_sample/threads=32,rows=4,vector=4,batch=8"},
               {256, 4096, 40000000, "row_sample/threads=64,rows=2,vector=4,batch=8"},
               {256, 4097, 5000, "row_sample/threads=32,rows=4,vector=4,batch=8"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlmi_spec spec = spec_of(cases[i].n, SAMPLED);
    const wlm_stats stats = snapshot_stats(cases[i].rows, cases[i].nnz, 1, 1);
    assert_string_equal(decide(&spec, &emit_cuda, &stats).variant, cases[i].variant);
  }
}

/* Gradients of attention with scores over columns allow short batches and groups of lanes as wide as a head alone, in
 * 16-bit types none that a rule names; then the candidate that fits best is chosen, on even and on skewed matrices. */
TEST(attention_has_a_kernel_without_a_rule) {
  static const char *const types[] = {"f32", "f16", "bf16"};
  static const char *const rests[] = {"attention,score=dot", "attention,score=dot,transpose=1",
                                      "attention,score=gatv2,transpose=1", "attention_rows,score=gatv2"};
  static const int64_t widths[] = {8, 64, 256};
  for (int i = 0; i < 3 * 4 * 3 * 4; i++) {
    const wlm_stats stats = snapshot_stats(20000, 200000, i & 1 ? 30 : 0.1, 1);
    const int heads = i & 2 ? 4 : 1;
    const int64_t n = widths[i / 4 % 3];
    char key[WLMI_SPEC_KEY];
    wlmi_decision decision;
    const wlmi_snapshot nothing = {0};
    snprintf(key, sizeof key, "op=mul.sum,dense=%s,rowptr=i32,colind=i32,values=none,sample=none,operation=%s%s",
             types[i / 12 % 3], rests[i / 36], heads > 1 ? ",heads=4" : "");
    GET(wlmi_spec, spec, wlmi_spec_from_key(key, n, &spec));
    OWN(wlmi_candidates, list, wlmi_generator_describe(emit_generator, &spec, &emit_cuda, &list));
    const wlmi_variant_set variants = {.families = wlmi_generator_families(emit_generator), .list = list};
    if (select_for(&nothing, &stats, "p", &spec, &emit_cuda, &variants, &decision) != WLM_OK)
      fail_msg("n = %lld, %s: %s", (long long)n, key, wlm_error_detail());
    assert_non_null(wlmi_candidate_find(list, &decision.entries[0].variant));
  }
}

GROUP(emit_begin, emit_end)
