/* Reads and writes the tables besides the measurements: pins, recorded problems and models. */
#include <string.h>

#include "core/base/memory.h"
#include "db/store_state.h"

/* ---- pins ---- */

static const char pin_put_sql[] =
    "INSERT INTO pin (class, bucket, problem, n, variant) VALUES (?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT DO UPDATE SET variant = excluded.variant";
static const char pin_remove_sql[] = "DELETE FROM pin WHERE class = ?1 AND bucket = ?2 AND problem = ?3 AND n = ?4";
static const wlmi_query all_pins = {"SELECT class, bucket, problem, n, variant", 0,
                                    " FROM pin WHERE ?1 IS NULL OR class = ?1 ORDER BY class, bucket, problem, n"};

wlm_status wlmi_store_begin(wlm_store *store) {
  WLM_CHECK(wlmi_store_writable(store));
  return wlmi_sqlite_begin(store->db);
}

wlm_status wlmi_store_end(wlm_store *store, wlm_status status) { return wlmi_sqlite_end(store->db, status); }

/* Runs one of the statements above with the pin's values. */
static wlm_status run_pin(wlm_store *store, const char *sql, const wlmi_pin_record *pin) {
  sqlite3_stmt *statement = NULL;
  wlm_status status;
  WLM_TRY(wlmi_pin_check(pin));
  WLM_TRY(wlmi_store_writable(store));
  WLM_TRY(wlmi_sqlite_prepare(store->db, sql, &statement));
  wlmi_sqlite_bind_text(statement, 1, pin->device_class);
  wlmi_sqlite_bind_text(statement, 2, pin->target);
  wlmi_sqlite_bind_text(statement, 3, pin->problem);
  sqlite3_bind_int64(statement, 4, pin->n);
  if (sqlite3_bind_parameter_count(statement) > 4) wlmi_sqlite_bind_text(statement, 5, pin->variant);
  status = wlmi_sqlite_execute(statement);
done:
  sqlite3_finalize(statement);
  return status;
}

wlm_status wlmi_store_pin(wlm_store *store, const wlmi_pin_record *pin) { return run_pin(store, pin_put_sql, pin); }

wlm_status wlmi_store_unpin(wlm_store *store, const wlmi_pin_record *pin) {
  wlm_status status = run_pin(store, pin_remove_sql, pin);
  if (status != WLM_OK || sqlite3_changes(store->db)) return status;
  return wlmi_fail(WLM_ERR_NOT_FOUND, "%s: nothing is pinned for %s, %s, n = %lld on %s; 'warploom db list' shows pins",
                   wlmi_store_path(store), pin->target, pin->problem, (long long)pin->n, pin->device_class);
}

static wlm_status read_pin(const wlm_store *store, sqlite3_stmt *row, void *copy) {
  const wlmi_pin_record pin = {(char *)wlmi_sqlite_text(row, 0), (char *)wlmi_sqlite_text(row, 1),
                               (char *)wlmi_sqlite_text(row, 2), sqlite3_column_int64(row, 3),
                               (char *)wlmi_sqlite_text(row, 4)};
  if (wlmi_pin_check(&pin) == WLM_OK) return wlmi_pin_copy(&pin, copy);
  return wlmi_fail(WLM_ERR_DATABASE, "%s: the pin of %s for %s is damaged (%s); run 'warploom db check'",
                   wlmi_store_path(store), pin.variant, pin.target, wlm_error_detail());
}

static void release_pin(void *pin) { wlmi_pin_release(pin); }

wlm_status wlmi_store_load_pins(wlm_store *store, const char *device_class, wlmi_pin_record **pins, int64_t *count) {
  static const wlmi_row_reader reader = {&all_pins, "pins", sizeof **pins, read_pin, release_pin};
  return wlmi_store_read_rows(store, &reader, device_class, (void **)pins, count);
}

/* ---- recorded problems ---- */

enum { RECORDED_SINCE = 3 }; /* version of the schema */

static const wlmi_query all_recorded = {"SELECT id, class", WLMI_OF_RECORDED,
                                        " FROM recorded WHERE ?1 IS NULL OR class = ?1 ORDER BY id"};

wlm_status wlmi_store_record_one(wlm_store *store, const wlmi_recorded *recorded) {
  const wlmi_measurement_record record = wlmi_recorded_fields(recorded);
  sqlite3_stmt *put = NULL;
  char id[WLMI_HASH_HEX];
  wlm_status status;
  WLM_TRY(wlmi_recorded_check(recorded));
  WLM_TRY(wlmi_recorded_id(recorded, id));
  WLM_TRY(wlmi_insert_prepare(store->db, "recorded", "id, class", WLMI_OF_RECORDED, &put));
  status = wlmi_insert_run(put, (const char *[]){id, recorded->device_class, NULL}, WLMI_OF_RECORDED, &record);
done:
  sqlite3_finalize(put);
  return status;
}

wlm_status wlmi_store_forget(wlm_store *store, const wlmi_recorded *recorded) {
  sqlite3_stmt *remove = NULL;
  char id[WLMI_HASH_HEX];
  wlm_status status;
  WLM_TRY(wlmi_store_writable(store));
  WLM_TRY(wlmi_recorded_id(recorded, id));
  WLM_TRY(wlmi_sqlite_prepare(store->db, "DELETE FROM recorded WHERE id = ?1", &remove));
  wlmi_sqlite_bind_text(remove, 1, id);
  status = wlmi_sqlite_execute(remove);
done:
  sqlite3_finalize(remove);
  return status;
}

static wlm_status read_recorded(const wlm_store *store, sqlite3_stmt *row, void *copy) {
  wlmi_measurement_record record;
  char id[WLMI_HASH_HEX];
  const int fits = wlmi_fields_read(row, 2, WLMI_OF_RECORDED, &record);
  const wlmi_recorded read = {(char *)wlmi_sqlite_text(row, 1), record.stats, record.problem, record.n};
  WLM_CHECK(wlmi_recorded_id(&read, id));
  if (fits && !strcmp(id, wlmi_sqlite_text(row, 0)) && wlmi_recorded_check(&read) == WLM_OK)
    return wlmi_recorded_copy(&read, copy);
  return wlmi_fail(WLM_ERR_DATABASE,
                   "%s: the recorded problem %s is damaged (its content has another id); run 'warploom db check'",
                   wlmi_store_path(store), wlmi_sqlite_text(row, 0));
}

static void release_recorded(void *recorded) { wlmi_recorded_release(recorded); }

wlm_status wlmi_store_load_recorded(wlm_store *store, const char *device_class, wlmi_recorded **list, int64_t *count) {
  static const wlmi_row_reader reader = {&all_recorded, "recorded problems", sizeof **list, read_recorded,
                                         release_recorded};
  int64_t version;
  *list = NULL;
  *count = 0;
  const wlm_status status = wlmi_sqlite_integer(store->db, "PRAGMA user_version", &version);
  if (status != WLM_OK || version < RECORDED_SINCE) return status;
  return wlmi_store_read_rows(store, &reader, device_class, (void **)list, count);
}

/* ---- models ---- */

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

wlm_status wlmi_store_copy_models(wlm_store *from, wlm_store *to, int64_t *copied) {
  sqlite3_stmt *row = NULL;
  wlm_status status =
      wlmi_sqlite_prepare(from->db, "SELECT class, name, made_at, data FROM model ORDER BY class, name", &row);
  while (wlmi_sqlite_next(row, &status)) {
    const wlmi_model_record model = {(char *)wlmi_sqlite_text(row, 1), sqlite3_column_int64(row, 2),
                                     (void *)sqlite3_column_blob(row, 3), (size_t)sqlite3_column_bytes(row, 3)};
    if (model.data) status = wlmi_store_put_model(to, wlmi_sqlite_text(row, 0), &model);
    *copied += model.data && status == WLM_OK;
  }
  sqlite3_finalize(row);
  return status;
}

static void release_model(void *element) {
  wlmi_model_record *model = element;
  wlmi_free(model->name);
  wlmi_free(model->data);
}

static wlm_status read_model(const wlm_store *store, sqlite3_stmt *row, void *element) {
  const size_t size = (size_t)sqlite3_column_bytes(row, 2);
  wlmi_model_record *model = element;
  (void)store;
  *model =
      (wlmi_model_record){wlmi_strdup(wlmi_sqlite_text(row, 0)), sqlite3_column_int64(row, 1), wlmi_alloc(size), size};
  if (!model->name || !model->data) {
    release_model(model);
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a model of %zu bytes", size);
  }
  if (size) memcpy(model->data, sqlite3_column_blob(row, 2), size);
  return WLM_OK;
}

wlm_status wlmi_store_load_models(wlm_store *store, const char *device_class, wlmi_model_record **records,
                                  int64_t *count) {
  static const wlmi_query all_models = {"SELECT name, made_at, data", 0, " FROM model WHERE class = ?1 ORDER BY name"};
  static const wlmi_row_reader reader = {&all_models, "models", sizeof **records, read_model, release_model};
  return wlmi_store_read_rows(store, &reader, device_class, (void **)records, count);
}

void wlmi_model_records_free(wlmi_model_record *records, int64_t count) {
  for (int64_t i = 0; i < count; i++) release_model(&records[i]);
  wlmi_free(records);
}
