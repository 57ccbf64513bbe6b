/* Deletes measurements, on request only; no other code deletes any. */
#include "core/base/log.h"
#include "core/base/memory.h"
#include "db/store_state.h"
#include "select/classes.h"

static const char orphans_sql[] =
    "DELETE FROM device WHERE id NOT IN (SELECT device FROM measurement);"
    "DELETE FROM matrix WHERE id NOT IN (SELECT matrix FROM measurement);"
    "DELETE FROM variant WHERE id NOT IN (SELECT variant FROM measurement);";

static wlm_status remove_one(sqlite3_stmt *statement, const wlmi_measurement_record *record) {
  char id[WLM_HASH_HEX];
  WLM_CHECK(wlmi_measurement_id(record, id));
  wlmi_sqlite_bind_text(statement, 1, id);
  return wlmi_sqlite_execute(statement);
}

static wlm_status prune_class(const wlmi_class *class, int64_t keep, sqlite3_stmt *statement, int64_t *removed) {
  char *gone = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(class->count, 1, "measurements", (void **)&gone));
  WLM_TRY(wlmi_class_superfluous(class, keep, gone));
  for (int64_t i = 0; i < class->count; i++) {
    if (!gone[i]) continue;
    WLM_TRY(remove_one(statement, &class->records[i]));
    ++*removed;
  }
done:
  wlmi_free(gone);
  return status;
}

/* Reads and deletes in one transaction, so that measurements which other processes add meanwhile are not affected. */
wlm_status wlmi_store_prune(wlm_store *store, int64_t keep, int64_t *removed) {
  wlmi_measurement_record *records = NULL;
  wlmi_class *classes = NULL;
  sqlite3_stmt *statement = NULL;
  int64_t count = 0, class_count = 0, gone = 0;
  wlm_status status;
  *removed = 0;
  WLM_TRY(wlmi_store_writable(store));
  WLM_TRY(wlmi_sqlite_prepare(store->db, "DELETE FROM measurement WHERE id = ?1", &statement));
  WLM_TRY(wlmi_sqlite_begin(store->db));
  status = wlmi_store_load(store, NULL, &records, &count);
  if (status == WLM_OK) status = wlmi_classes_make(records, count, &classes, &class_count);
  for (int64_t i = 0; i < class_count && status == WLM_OK; i++)
    status = prune_class(&classes[i], keep, statement, &gone);
  if (status == WLM_OK) status = wlmi_sqlite_run(store->db, orphans_sql);
  WLM_TRY(wlmi_sqlite_end(store->db, status));
  *removed = gone;
  if (wlmi_sqlite_run(store->db, "VACUUM") != WLM_OK)
    wlmi_log(WLM_LOG_WARNING, "pruned, but the room is given back only to what is stored next: %s", wlm_error_detail());
done:
  sqlite3_finalize(statement);
  wlmi_classes_free(classes, class_count);
  wlmi_measurements_free(records, count);
  return status;
}
