/* How explain shows a prediction: the same facts as text and as JSON. */
#include "runtime/dispatch/plan.h"
#include "support/test.h"

static wlmi_device device = {.info = {.name = "a device", .arch = "x1"}};

static void set(char *to, const char *text) { strcpy(to, text); }

static wlm_plan predicted_plan(void) {
  wlm_plan plan = {.device = &device, .shape.loaded.program = {.split = "carry", .deterministic = 1}};
  wlmi_decision *d = &plan.reason.decision;
  plan.bound.args.n = 32;
  set(plan.reason.problem_key, "the problem");
  set(d->variant, "merge_path/items=512");
  d->step = WLMI_STEP_MODEL;
  d->calls = 1;
  d->distance = 0.75;
  d->cases = 130;
  d->predicted = 12.5e-6;
  d->spread = log(1.25);
  d->trained_at = 86400;
  d->trained_on = 4321;
  d->untrained = 7;
  d->refused = 2;
  set(d->refusals[0].variant, "old/x=1");
  set(d->refusals[0].reason, "no family 'old'");
  d->similar_count = 2;
  d->similar[0] = (wlmi_similar){"wiki-\"Vote", "row_block/rows=8", 8297, 103689, 32, 0.75, 9e-6, 0};
  d->similar[1] = (wlmi_similar){"", "row_vec/lanes=8", 10, 20, 64, 2.5, 3e-6, 1};
  d->ranked_count = 2;
  set(d->ranked[0].variant, d->variant);
  d->ranked[0].relative = 1;
  d->ranked[0].predicted = d->predicted;
  set(d->ranked[1].variant, "row_vec/lanes=8");
  d->ranked[1].relative = 1.5;
  d->ranked[1].predicted = 18.75e-6;
  d->ranked[1].seconds = 20e-6;
  return plan;
}

TEST(text_shows_the_basis) {
  wlm_plan plan = predicted_plan();
  WLM_FREED GET(char *, text, wlm_plan_explain(&plan, 0, &text));
  assert_contains(text, "step      model: predicted from 130 tuned cases, the nearest at distance 0.75",
                  "model     trained on 4321 measurements, 1970-01-02; knows nothing of 7 candidates",
                  "expected  12.50 us, mostly within a factor of 1.25", "refused   2 better ranked",
                  "          old/x=1: no family 'old'",
                  "nearest    0.75  wiki-\"Vote, 8297 rows, 103689 non-zeros, n = 32: row_block/rows=8 9.00 us",
                  " 2.50  unnamed, 10 rows", "1.500x  20.00 us  predicted 18.75 us");
}

TEST(json_shows_the_same) {
  wlm_plan plan = predicted_plan();
  WLM_FREED GET(char *, text, wlm_plan_explain(&plan, 1, &text));
  assert_contains(text, "\"step\":\"model\"", "\"expected_us\":12.5,\"predicted_us\":12.5,\"spread\":0.223144",
                  "\"model\":{\"trained_at\":86400,\"measurements\":4321,\"untrained\":7}",
                  "\"refusals\":[{\"variant\":\"old/x=1\",\"reason\":\"no family 'old'\"}]",
                  "\"nearest\":[{\"matrix\":\"wiki-\\\"Vote\",\"rows\":8297,\"nnz\":103689,\"n\":32,\"distance\":0.75,"
                  "\"variant\":\"row_block/rows=8\",\"us\":9.0,\"stale\":false},{\"matrix\":null,",
                  "\"ranking\":[{\"variant\":\"merge_path/"
                  "items=512\",\"relative\":1.0,\"us\":null,\"spread\":null,\"stale\":false,\"predicted_us\":12.5");
}

TEST(without_a_model_nothing_is_predicted) {
  wlm_plan plan = predicted_plan();
  plan.reason.decision = (wlmi_decision){.step = WLMI_STEP_RULE, .rule = "why", .calls = 1};
  WLM_FREED GET(char *, text, wlm_plan_explain(&plan, 0, &text));
  assert_null(strstr(text, "model"));
  assert_null(strstr(text, "expected  "));
  assert_null(strstr(text, "nearest"));
  wlmi_free(text);
  assert_int_equal(wlm_plan_explain(&plan, 1, &text), WLM_OK);
  assert_contains(text, "\"refusals\":[]", "\"predicted_us\":null", "\"model\":null", "\"nearest\":[]");
}

TEST(never_paying_differs_from_unprepared) {
  wlm_plan plan = predicted_plan();
  wlmi_ranked *r = plan.reason.decision.ranked;
  r[1].prepare = 3;
  r[1].break_even = INFINITY;
  plan.reason.decision.other = r[1];
  plan.reason.decision.other.break_even = 17;
  WLM_FREED GET(char *, text, wlm_plan_explain(&plan, 1, &text));
  assert_contains(text,
                  "\"prepares\":false,\"prepare_us\":null,\"prepare_calls\":null,\"break_even\":null,"
                  "\"pays\":null",
                  "\"prepare_calls\":3.0,\"break_even\":null,\"pays\":\"never\"",
                  "\"break_even\":17.0,\"pays\":\"reused\"");
  wlmi_free(text);
  assert_int_equal(wlm_plan_explain(&plan, 0, &text), WLM_OK);
  assert_contains(text, "prepare 3.0 calls, never pays", "reused    row_vec/lanes=8",
                  "prepare 3.0 calls, pays from 17 calls on");
}

/* Everything else that explain shows: whether a pin needs preparation, why variants were refused, the spread of
 * measured times, the stats. */
TEST(everything_else_is_shown) {
  wlm_plan plan = predicted_plan();
  wlmi_decision *d = &plan.reason.decision;
  plan.reason.stats = (wlm_stats)WLM_STATS_INIT;
  plan.reason.stats.rows = plan.reason.stats.cols = 1000;
  plan.reason.stats.nnz = 9000;
  plan.reason.stats.mean = 9;
  plan.reason.stats.cv = 1;
  plan.reason.stats.empty_rows = 12;
  plan.reason.stats.top_share = 0.25;
  WLM_FREED GET(char *, text, wlm_plan_explain(&plan, 0, &text));
  assert_null(strstr(text, "fingerprint")); /* it was not computed */
  wlmi_free(text);
  assert_int_equal(wlm_plan_explain(&plan, 1, &text), WLM_OK);
  assert_contains(text, "\"fingerprint\":null");
  wlmi_free(text);
  plan.reason.stats.fingerprint[1] = 0xabc;
  d->step = WLMI_STEP_FINGERPRINT;
  d->online = 1;
  set(d->like, ", with one head");
  set(d->stale, "cc 1.0");
  set(device.info.compiler, "cc 2.0");
  set(device.info.driver, "7");
  d->refused = 5;
  d->refused_failed = 3;
  d->unprepared = 4;
  d->ranked[0].seconds = 10e-6;
  d->ranked[0].spread = 0.05;
  d->ranked[1].stale = 1;
  set(d->pin, "ready");
  set(d->pin_reason, "must be prepared");
  assert_int_equal(wlm_plan_explain(&plan, 0, &text), WLM_OK);
  assert_contains(
      text, "12 empty rows, 25.0% of the non-zeros", "bucket    v1 rows=9 mean=6 cv=1\n",
      "fingerprint 00000000000000000000000000000abc\n",
      "step      fingerprint: this very matrix was tuned for this n, by times of real calls alone, with one head\n",
      "pin       ready is pinned for its bucket but not chosen: must be prepared\n",
      "stale     measured with cc 1.0; here it is cc 2.0, driver 7: tune again",
      "refused   5 better ranked: 2 not valid for this problem, 3 failed on this very matrix; 4 must be prepared",
      "10.00 us +-2.5%", "predicted 18.75 us  stale\n", "row_vec/lanes=8 3.00 us  stale\n");
  assert_null(strstr(text, "expected  "));
  wlmi_free(text);
  assert_int_equal(wlm_plan_explain(&plan, 1, &text), WLM_OK);
  assert_contains(text,
                  "\"empty_rows\":12,\"top_share\":0.25,\"bucket\":\"v1 rows=9 mean=6 cv=1\","
                  "\"fingerprint\":\"00000000000000000000000000000abc\"",
                  "\"unpinned\":null,\"pin_refused\":\"must be prepared\"", "\"online\":true",
                  "\"stale\":\"cc 1.0\",\"compiler\":\"cc 2.0\",\"driver\":\"7\"",
                  "\"refused_failed\":3,\"unprepared\":4", "\"spread\":0.05");
}

/* A compiler may describe itself in any encoding. */
TEST(json_is_utf8) {
  wlm_plan plan = predicted_plan();
  set(device.info.compiler, "cc \xff\"\n");
  WLM_FREED GET(char *, text, wlm_plan_explain(&plan, 1, &text));
  assert_contains(text, "\"compiler\":\"cc \\\\xff\\\"\\n\"");
  set(device.info.compiler, "");
}
