/* Tuning in one process (the command) and choosing by the stored measurements in another (this test). */
#include "core/synth/input.h"
#include "select/case.h"
#include "support/command.h"
#include "support/db_fixture.h"
#include "support/test.h"
#include "tuner/upload.h"

#define TUNED   "uniform:rows=600,d=9"
#define ALIKE   "uniform:rows=620,d=9,seed=3"
#define UNALIKE "uniform:rows=20,d=1"
enum { N = 24 };

static char database[320];

/* Creates a plan with the database; gives its variant and the text of explain. */
static void plan_for(const char *input, const char *database_path, char variant[WLMI_VARIANT_NAME], char **why) {
  HELD(wlmi_csr_host) csr = {0};
  wlm_problem problem = PROBLEM(.n = N);
  wlm_context_options options = CONTEXT_OPTIONS(.device = "host", .database = database_path, .system_database = "");
  OWN(wlm_context, context, wlm_context_create(&options, &context));
  assert_status(WLM_OK, wlmi_input_read(input, &csr));
  HOLD(wlmi_upload, upload, wlmi_upload_create(context, &csr, WLM_I32, &upload));
  OWN(wlm_plan, plan, wlm_plan_create(context, upload.matrix, &problem, &plan));
  snprintf(variant, WLMI_VARIANT_NAME, "%s", wlm_plan_variant(plan));
  assert_status(WLM_OK, wlm_plan_explain(plan, 1, why));
  assert_true(json_is_valid(*why));
}

/* The fastest and the slowest finalist of the stored measurements. */
static void winner(char variant[WLMI_VARIANT_NAME], char loser[WLMI_VARIANT_NAME]) {
  wlmi_measurement_record *records;
  OWN(wlm_store, store, wlmi_store_open(database, WLMI_STORE_READ, &store));
  GET(int64_t, count, wlmi_store_load(store, NULL, &records, &count));
  HOLD(wlmi_cases, choices, wlmi_cases_make(records, count, &choices));
  assert_int_equal(choices.count, 1);
  const wlmi_case *c = choices.list;
  assert_true(c->count > 2);
  snprintf(variant, WLMI_VARIANT_NAME, "%s", c->candidates[0].variant);
  snprintf(loser, WLMI_VARIANT_NAME, "%s", c->candidates[c->count - 1].variant);
  wlmi_measurements_free(records, count);
}

TEST(tuned_winner_is_dispatched) {
  char best[WLMI_VARIANT_NAME], worst[WLMI_VARIANT_NAME], variant[WLMI_VARIANT_NAME], *why;
  RUN(0, "tune", TUNED, "-n", "24", "--device", "host", "--db", database);
  winner(best, worst);

  plan_for(TUNED, database, variant, &why);
  assert_string_equal(variant, best);
  assert_json_at(why, "$.step", "fingerprint");
  wlm_string_free(why);

  plan_for(ALIKE, database, variant, &why);
  assert_string_equal(variant, best);
  assert_json_at(why, "$.step", "similar");
  wlm_string_free(why);

  plan_for(UNALIKE, database, variant, &why);
  assert_json_at(why, "$.step", "rule");
  wlm_string_free(why);

  plan_for(TUNED, "", variant, &why);
  assert_json_at(why, "$.step", "rule");
  wlm_string_free(why);

  command c = RUN(0, "explain", TUNED, "-n", "24", "--device", "host", "--db", database);
  assert_contains(c.out, best, "fingerprint");
  c = RUN(0, "run", TUNED, "-n", "24", "--device", "host", "--db", database, "--check");
  assert_contains(c.out, best, "verified: max_rel_err=");
}

static wlm_status find_variant(void *user, const char *id, const wlmi_measurement_record *record) {
  wlmi_measurement_record *wanted = user;
  (void)id;
  if (wanted->time_ps || strcmp(wanted->variant, record->variant) || wlmi_measurement_is_cold(record)) return WLM_OK;
  return wlmi_measurement_copy(record, wanted);
}

/* If the stored times say that the slowest kernel is the fastest, it is chosen: measurements decide, not rules. */
TEST(measurements_decide) {
  char best[WLMI_VARIANT_NAME], worst[WLMI_VARIANT_NAME], variant[WLMI_VARIANT_NAME], *why;
  winner(best, worst);
  wlmi_measurement_record record = {.variant = worst};
  GET(wlm_store *, store, wlmi_store_open(database, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, each_measurement(store, NULL, find_variant, &record));
  assert_true(record.time_ps > 1);
  record.time_ps = 1;
  record.spread_ps = 0;
  record.samples = WLMI_PRECISE_SAMPLES; /* precise times, because a screening run cannot win */
  for (int i = 0; i < 3; i++) {
    record.made_at += 1000;
    assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
  }
  wlmi_store_close(store);
  wlmi_measurement_release(&record);

  plan_for(TUNED, database, variant, &why);
  assert_string_equal(variant, worst);
  assert_json_at(why, "$.step", "fingerprint");
  wlm_string_free(why);
}

static int begin(void **state) {
  home_begin(state);
  snprintf(database, sizeof database, "%s/tuned.db", folder.path);
  return 0;
}

GROUP(begin, folder_end)
