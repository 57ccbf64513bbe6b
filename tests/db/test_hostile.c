/* Maliciously prepared databases: foreign objects in the schema are found before anything is written or read, `db
 * check` names them, and a repair leaves them out. */

#include "db/measurement_set.h"
#include "db/store_state.h"
#include "support/db_fixture.h"
#include "support/test.h"

static char path[320];

static int begin(void **state) {
  folder_begin(state);
  snprintf(path, sizeof path, "%s/tuned.db", folder.path);
  return 0;
}

TEST(foreign_objects_are_named) {
  static const struct {
    const char *sql, *says;
    int64_t kept; /* the number of measurements that a repair keeps */
  } cases[] = {
      {"CREATE TRIGGER evil AFTER INSERT ON measurement BEGIN DELETE FROM measurement; END",
       "the trigger 'evil' is not warploom's", 5},
      {"CREATE VIEW evil AS SELECT * FROM device", "the view 'evil' is not warploom's", 5},
      {"CREATE TABLE evil (a)", "the table 'evil' is not warploom's", 5},
      {"CREATE INDEX evil ON measurement (problem)", "the index 'evil' is not warploom's", 5},
      {"DROP TABLE pin", "the table 'pin' is missing", 5},
      {"ALTER TABLE pin ADD COLUMN evil TEXT", "the table 'pin' is not as warploom makes it", 5},
      {"ALTER TABLE pin RENAME TO old; CREATE VIEW pin AS SELECT * FROM old", "the view 'pin' is not warploom's", 5},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HELD(wlmi_text) report = {0}, kept_as = {0};
    OWNED(wlm_store) *store = NULL;
    remove(path);
    put_samples(path, 5);
    run_sql(path, cases[i].sql);
    assert_fails(WLM_ERR_DATABASE, wlmi_store_open(path, WLMI_STORE_READ, &store), cases[i].says);
    assert_contains(wlm_error_detail(), "db check --repair");
    assert_status(WLM_ERR_DATABASE, wlmi_store_open(path, WLMI_STORE_READ_SHIPPED, &store));
    assert_fails(WLM_ERR_DATABASE, wlmi_store_open(path, WLMI_STORE_WRITE, &store), cases[i].says);
    GET(wlmi_store_repair_result, result, wlmi_store_repair(path, &report, &kept_as, &result));
    assert_contains(report.data, cases[i].says);
    assert_int_equal(result.kept, cases[i].kept);
    assert_status(WLM_OK, wlmi_store_open(path, WLMI_STORE_WRITE, &store));
  }
}

/* The schema is compared before a migration runs, because its statements would run the trigger. */
TEST(older_versions_are_compared_too) {
  put_samples(path, 5);
  run_sql(path, "DROP TABLE recorded; PRAGMA user_version = 2");
  GET(wlm_store *, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
  wlmi_store_close(store);
  run_sql(path, "CREATE TRIGGER evil AFTER INSERT ON measurement BEGIN DELETE FROM measurement; END");
  assert_status(WLM_ERR_DATABASE, wlmi_store_open(path, WLMI_STORE_READ, &store));
  assert_fails(WLM_ERR_DATABASE, wlmi_store_open(path, WLMI_STORE_WRITE, &store), "the trigger 'evil'");
}

TEST(a_kernel_cache_is_emptied) {
  WLM_FREED void *blob = NULL;
  size_t size;
  const char *file = in_folder("kernels.db");
  OWN(wlmi_kernel_cache, cache, wlmi_kernel_cache_open(file, 1 << 20, &cache));
  assert_status(WLM_OK, wlmi_kernel_cache_put(cache, "a", "blob", 4));
  wlmi_kernel_cache_close(cache);
  run_sql(file, "CREATE TRIGGER evil AFTER INSERT ON kernel BEGIN DELETE FROM kernel; END");
  assert_status(WLM_OK, wlmi_kernel_cache_open(file, 1 << 20, &cache));
  assert_status(WLM_ERR_NOT_FOUND, wlmi_kernel_cache_get(cache, "a", &blob, &size));
  assert_status(WLM_OK, wlmi_kernel_cache_put(cache, "a", "blob", 4));
  assert_status(WLM_OK, wlmi_kernel_cache_get(cache, "a", &blob, &size));
}

/* Selection does not verify ids, so it must reject texts that are too long itself. */
TEST(long_texts_are_rejected) {
  HELD(wlmi_measurement_set) set = {0};
  const wlmi_measurement_record record = sample_measurement(3);
  HELD(wlmi_text) class = {0};
  put_samples(path, 5);
  wlmi_device_class(&record.device, &class);
  run_sql(path, "UPDATE measurement SET problem = hex(zeroblob(20000))");
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
  assert_status(WLM_OK, wlmi_measurement_set_add(&set, store, class.data));
  assert_int_equal(set.count, 0);
  HELD(wlmi_text) report = {0};
  assert_status(WLM_ERR_DATABASE, wlmi_store_check(store, &report));
  assert_contains(report.data, "problem");
}

EACH(begin, folder_end)
