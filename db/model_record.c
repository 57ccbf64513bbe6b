#include "db/model_record.h"

#include <string.h>

#include "common/memory.h"
#include "db/store_state.h"

wlm_status wlmi_store_put_model(wlm_store *store, const char *device_class, const wlmi_model_record *record) {
  sqlite3_stmt *put = NULL;
  wlm_status status;
  WLM_TRY(wlmi_store_writable(store));
  WLM_TRY(wlmi_sqlite_prepare(store->db,
                              "INSERT INTO model (class, name, made_at, data) VALUES (?1, ?2, ?3, ?4)"
                              " ON CONFLICT DO UPDATE SET made_at = excluded.made_at, data = excluded.data",
                              &put));
  wlmi_sqlite_bind_text(put, 1, device_class);
  wlmi_sqlite_bind_text(put, 2, record->name);
  sqlite3_bind_int64(put, 3, record->made_at);
  sqlite3_bind_blob64(put, 4, record->data, record->size, SQLITE_STATIC);
  status = wlmi_sqlite_execute(put);
done:
  sqlite3_finalize(put);
  return status;
}

static wlm_status copy_row(sqlite3_stmt *row, wlmi_model_record *record) {
  const size_t size = (size_t)sqlite3_column_bytes(row, 2);
  *record =
      (wlmi_model_record){wlmi_strdup(wlmi_sqlite_text(row, 0)), sqlite3_column_int64(row, 1), wlmi_alloc(size), size};
  if (!record->name || !record->data) {
    wlmi_free(record->name);
    wlmi_free(record->data);
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a model of %zu bytes", size);
  }
  if (size) memcpy(record->data, sqlite3_column_blob(row, 2), size);
  return WLM_OK;
}

wlm_status wlmi_store_load_models(wlm_store *store, const char *device_class, wlmi_model_record **out, int64_t *count) {
  sqlite3_stmt *row = NULL;
  wlmi_model_record *records = NULL;
  int64_t found = 0, capacity = 0;
  wlm_status status;
  int more;
  WLM_TRY(wlmi_sqlite_prepare(store->db, "SELECT name, made_at, data FROM model WHERE class = ?1 ORDER BY name", &row));
  wlmi_sqlite_bind_text(row, 1, device_class);
  for (;;) {
    WLM_TRY(wlmi_sqlite_step(row, &more));
    if (!more) break;
    WLM_TRY(wlmi_grow((void **)&records, found, &capacity, sizeof *records, "models"));
    WLM_TRY(copy_row(row, &records[found]));
    found++;
  }
done:
  sqlite3_finalize(row);
  if (status != WLM_OK) {
    wlmi_model_records_free(records, found);
    records = NULL;
    found = 0;
  }
  *out = records;
  *count = found;
  return status;
}

void wlmi_model_records_free(wlmi_model_record *records, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    wlmi_free(records[i].name);
    wlmi_free(records[i].data);
  }
  wlmi_free(records);
}
