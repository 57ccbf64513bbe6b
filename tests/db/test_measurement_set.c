/* The measurement set, which selection reads: equal to the full records, the union of two databases, without rows with
 * impossible values. */

#include "db/measurement_set.h"
#include "support/db_fixture.h"
#include "support/test.h"

enum { ROWS = 40 };
static const char sample_class[] = "cuda/sm_90/NVIDIA H200/132";

static wlm_status add(const char *path, const char *device_class, wlmi_measurement_set *set) {
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
  const wlm_status status = wlmi_measurement_set_add(set, store, device_class);
  return status;
}

static void assert_same(const wlmi_measurement_record *a, const wlmi_measurement_record *b) {
  assert_string_equal(a->matrix_name, b->matrix_name);
  assert_memory_equal(&a->stats, &b->stats, sizeof a->stats);
  assert_string_equal(a->variant, b->variant);
  assert_string_equal(a->version, b->version);
  assert_string_equal(a->problem, b->problem);
  assert_string_equal(a->compiler, b->compiler);
  assert_string_equal(a->driver, b->driver);
  assert_string_equal(a->clock, b->clock);
  assert_string_equal(a->reason ? a->reason : "", b->reason);
  assert_true(a->n == b->n && a->time_ps == b->time_ps && a->spread_ps == b->spread_ps);
  assert_true(a->prepare_ps == b->prepare_ps && a->samples == b->samples && a->failed == b->failed);
  assert_true(a->made_at == b->made_at);
}

TEST(it_equals_the_full_records) {
  const char *path = folder_file(&folder, "whole.db");
  HELD(wlmi_measurement_set) set = {0};
  wlmi_measurement_record *records, cold = sample_measurement(3);
  put_samples(path, ROWS);
  GET(wlm_store *, store, wlmi_store_open(path, WLMI_STORE_WRITE, &store));
  GET(int64_t, count, wlmi_store_load(store, sample_class, &records, &count));
  cold.clock = WLMI_CLOCK_COLD; /* selection does not use cold times */
  assert_status(WLM_OK, wlmi_store_put(store, &cold, 1));
  wlmi_store_close(store);
  assert_status(WLM_OK, add(path, sample_class, &set));
  assert_int_equal(set.count, count);
  assert_int_equal(set.count, ROWS);
  for (int64_t i = 0; i < count; i++) assert_same(&set.records[i], &records[i]);
  wlmi_measurements_free(records, count);
  wlmi_measurement_set_release(&set);
  assert_status(WLM_OK, add(path, "cuda/sm_90/another/132", &set));
  assert_int_equal(set.count, 0);
}

TEST(two_databases_are_a_union) {
  const char *user = folder_file(&folder, "user.db");
  HELD(wlmi_measurement_set) set = {0};
  char seen[ROWS] = {0};
  put_samples(user, ROWS / 2);
  assert_status(WLM_OK, add(user, sample_class, &set));
  const char *other = folder_file(&folder, "other.db");
  GET(wlm_store *, store, wlmi_store_open(other, WLMI_STORE_WRITE, &store));
  for (int64_t i = ROWS / 4; i < ROWS; i++) {
    const wlmi_measurement_record record = sample_measurement(i);
    assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
  }
  wlmi_store_close(store);
  assert_status(WLM_OK, add(other, sample_class, &set));
  assert_int_equal(set.ends[0], ROWS / 2);
  assert_int_equal(set.count, ROWS);
  assert_status(WLM_OK, add(user, sample_class, &set)); /* all of a third database are known */
  assert_status(WLM_OK, add(other, sample_class, &set));
  assert_int_equal(set.count, ROWS);
  for (int64_t i = 0; i < set.count; i++) seen[set.records[i].made_at - 1700000000]++;
  for (int i = 0; i < ROWS; i++) assert_int_equal(seen[i], 1);
}

/* Selection does not compute ids again, so a change that only the id would show stays unnoticed here; `db check`
 * finds it. */
TEST(damaged_rows_are_left_out) {
  static const struct {
    const char *change;
    int64_t rest;
  } changes[] = {
      {"UPDATE measurement SET time_ps = time_ps + 1 WHERE NOT failed", ROWS},
      {"DELETE FROM matrix WHERE rows = 1001", ROWS - ROWS / 5},
      {"DELETE FROM variant", 0},
      {"PRAGMA ignore_check_constraints = ON; UPDATE measurement SET time_ps = -1 WHERE made_at < 1700000005",
       ROWS - 5},
      {"PRAGMA ignore_check_constraints = ON; UPDATE measurement SET id = 'x' WHERE made_at = 1700000005", ROWS - 1},
      {"PRAGMA ignore_check_constraints = ON; UPDATE variant SET name = ''", 0},
      {"UPDATE matrix SET fingerprint = replace(fingerprint, '0', 'x')", 0},
      {"PRAGMA ignore_check_constraints = ON; UPDATE matrix SET top_share = 1.5 WHERE rows = 1001", ROWS - ROWS / 5},
      {"UPDATE measurement SET clock = 'warm' WHERE made_at = 1700000005", ROWS - 1},
  };
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    char name[32];
    HELD(wlmi_text) faults = {0};
    HELD(wlmi_measurement_set) set = {0};
    snprintf(name, sizeof name, "damaged-%zu.db", i);
    const char *path = folder_file(&folder, name);
    put_samples(path, ROWS);
    run_sql(path, changes[i].change);
    OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
    assert_status(WLM_OK, wlmi_measurement_set_add(&set, store, sample_class));
    if (set.count != changes[i].rest) fail_msg("%s: %lld are left", changes[i].change, (long long)set.count);
    assert_status(WLM_ERR_DATABASE, wlmi_store_check(store, &faults));
  }
}

TEST(an_unreadable_database_changes_nothing) {
  const char *path = folder_file(&folder, "first.db");
  HELD(wlmi_measurement_set) set = {0};
  put_samples(path, ROWS);
  assert_status(WLM_OK, add(path, sample_class, &set));
  path = folder_file(&folder, "second.db");
  put_samples(path, ROWS + 5);
  GET(wlm_store *, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
  run_sql(path, "DROP TABLE matrix");
  assert_status(WLM_ERR_DATABASE, wlmi_measurement_set_add(&set, store, sample_class));
  wlmi_store_close(store);
  assert_int_equal(set.count, ROWS);
  assert_int_equal(set.store_count, 1);
}

GROUP(folder_begin, folder_end)
