#include <string.h>

#include "db/store_state.h"

static void report(wlmi_text *out, int64_t *faults, const char *what, const char *which, const char *fault) {
  wlmi_text_printf(out, "%s %s: %s\n", what, which, fault);
  ++*faults;
}

/* integrity_check returns "ok" and foreign_key_check no row; every other row is a fault. */
static wlm_status check_pragma(wlm_store *store, const char *sql, const char *fault, wlmi_text *out, int64_t *faults) {
  sqlite3_stmt *statement = NULL;
  wlm_status status;
  int row;
  WLM_TRY(wlmi_sqlite_prepare(store->db, sql, &statement));
  for (;;) {
    WLM_TRY(wlmi_sqlite_step(statement, &row));
    if (!row) break;
    if (strcmp(wlmi_sqlite_text(statement, 0), "ok"))
      report(out, faults, "file", wlmi_sqlite_text(statement, 0), fault);
  }
done:
  sqlite3_finalize(statement);
  return status;
}

static wlm_status check_row(sqlite3_stmt *row, wlmi_text *out, int64_t *faults) {
  wlmi_measurement_record record;
  wlmi_record_ids ids;
  wlmi_text class = {0};
  int fits = wlmi_fields_read(row, WLM_COLUMN_FIELDS, WLM_OF_ALL, &record);
  WLM_CHECK(wlmi_measurement_ids(&record, &ids));
  wlmi_device_class(&record.device, &class);
  const char *id = wlmi_sqlite_text(row, WLM_COLUMN_ID);
  if (!fits) report(out, faults, "measurement", id, "a value does not fit its field");
  if (wlmi_measurement_check(&record) != WLM_OK) report(out, faults, "measurement", id, wlm_error_detail());
  const struct {
    const char *what, *expected;
    int column;
  } texts[] = {{"measurement", ids.measurement, WLM_COLUMN_ID},
               {"device", ids.device, WLM_COLUMN_DEVICE},
               {"matrix", ids.matrix, WLM_COLUMN_MATRIX},
               {"variant", ids.variant, WLM_COLUMN_VARIANT},
               {"device class", class.data ? class.data : "", WLM_COLUMN_CLASS}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(texts[i].expected, wlmi_sqlite_text(row, texts[i].column)))
      report(out, faults, texts[i].what, wlmi_sqlite_text(row, texts[i].column), "does not match its content");
  wlmi_text_release(&class);
  return WLM_OK;
}

static wlm_status check_rows(wlm_store *store, wlmi_text *out, int64_t *faults) {
  wlm_status status;
  int more;
  for (;;) {
    WLM_TRY(wlmi_sqlite_step(store->select, &more));
    if (!more) break;
    WLM_TRY(check_row(store->select, out, faults));
  }
done:
  sqlite3_reset(store->select);
  return status;
}

static wlm_status check_schema(wlm_store *store, wlmi_text *out, int64_t *faults) {
  wlmi_text found = {0};
  int64_t version;
  wlm_status status = wlmi_sqlite_integer(store->db, "PRAGMA user_version", &version);
  if (status == WLM_OK) status = wlmi_database_compare(store->db, &wlmi_schema_tuned, version, &found);
  if (status == WLM_OK && found.size) report(out, faults, "file", "schema", found.data);
  wlmi_text_release(&found);
  return status;
}

wlm_status wlmi_store_check(wlm_store *store, wlmi_text *out) {
  int64_t faults = 0, pin_count = 0, recorded_count = 0;
  wlmi_pin_record *pins = NULL;
  wlmi_recorded *recorded = NULL;
  wlm_status status = check_schema(store, out, &faults);
  if (status == WLM_OK) status = check_pragma(store, "PRAGMA integrity_check", "integrity check", out, &faults);
  if (status == WLM_OK)
    status = check_pragma(store, "PRAGMA foreign_key_check", "has a row that refers to nothing", out, &faults);
  if (status == WLM_OK) status = check_rows(store, out, &faults);
  if (status == WLM_OK) status = wlmi_store_load_pins(store, NULL, &pins, &pin_count);
  if (status == WLM_OK) status = wlmi_store_load_recorded(store, NULL, &recorded, &recorded_count);
  wlmi_pins_free(pins, pin_count);
  wlmi_recorded_free(recorded, recorded_count);
  if (status == WLM_ERR_DATABASE) report(out, &faults, "file", "", wlm_error_detail());
  if (status != WLM_OK && status != WLM_ERR_DATABASE) return status;
  if (out->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "report of a check");
  if (!faults) return WLM_OK;
  return wlmi_fail(WLM_ERR_DATABASE, "%s: %lld faults found; 'warploom db check --repair' keeps what is whole",
                   wlmi_store_path(store), (long long)faults);
}
