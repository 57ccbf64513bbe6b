#include "db/store.h"

#include <string.h>

#include "core/base/memory.h"
#include "db/store_state.h"

/* The columns of each table that are no fields. */
static const char *const table_keys[WLMI_TABLE_COUNT] = {"id, class", "id", "id", "id, device, matrix, variant"};

/* Left joins, so that a row with a missing reference is reported as damaged instead of being skipped. */
#define KEYS "SELECT measurement.id, device.id, matrix.id, variant.id, device.class"
#define FROM                                                             \
  " FROM measurement LEFT JOIN device ON device.id = measurement.device" \
  " LEFT JOIN matrix ON matrix.id = measurement.matrix"                  \
  " LEFT JOIN variant ON variant.id = measurement.variant"
static const wlmi_query all_rows = {KEYS, WLMI_OF_ALL,
                                    FROM " WHERE ?1 IS NULL OR device.class = ?1 ORDER BY measurement.id"};
static const wlmi_query one_row = {KEYS, WLMI_OF_ALL, FROM " WHERE measurement.id = ?1"};

/* A store on an open database, which it closes, also after an error. */
static wlm_status make(sqlite3 *db, int is_writable, wlm_store **out) {
  wlm_status status;
  wlm_store *store = wlmi_alloc_zero(1, sizeof *store);
  if (!store) {
    sqlite3_close(db);
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a store");
  }
  store->db = db;
  WLM_TRY(wlmi_query_prepare(db, &all_rows, &store->select));
  for (int t = 0; is_writable && t < WLMI_TABLE_COUNT; t++)
    WLM_TRY(wlmi_insert_prepare(db, wlmi_table_names[t], table_keys[t], WLM_OF(t), &store->insert[t]));
  *out = store;
  return WLM_OK;
done:
  wlmi_store_close(store);
  return status;
}

wlm_status wlmi_store_open(const char *path, wlmi_store_mode mode, wlm_store **store) {
  sqlite3 *db;
  *store = NULL;
  const wlm_status status = wlmi_database_open(path, mode, &wlmi_schema_tuned, &db);
  return status == WLM_OK ? make(db, mode == WLMI_STORE_WRITE, store) : status;
}

wlm_status wlmi_store_open_memory(wlm_store **store) {
  sqlite3 *db;
  *store = NULL;
  const wlm_status status = wlmi_database_open_memory(&wlmi_schema_tuned, &db);
  return status == WLM_OK ? make(db, 1, store) : status;
}

wlm_status wlmi_store_open_damaged(const char *path, wlm_store **store) {
  const wlm_status status = wlmi_store_open(path, WLMI_STORE_SALVAGE, store);
  return status == WLM_ERR_DATABASE ? wlmi_database_hopeless(path) : status; /* it has no tables */
}

void wlmi_store_close(wlm_store *store) {
  if (!store) return;
  for (int t = 0; t < WLMI_TABLE_COUNT; t++) sqlite3_finalize(store->insert[t]);
  sqlite3_finalize(store->select);
  sqlite3_close(store->db);
  wlmi_free(store);
}

const char *wlmi_store_path(const wlm_store *store) { return sqlite3_db_filename(store->db, "main"); }

/* ---- writing ---- */

wlm_status wlmi_store_writable(const wlm_store *store) {
  if (store->insert[0]) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: was opened for reading only", wlmi_store_path(store));
}

wlm_status wlmi_store_put_one(wlm_store *store, const wlmi_measurement_record *record, int64_t *added) {
  wlmi_record_ids ids;
  wlmi_text class = {0};
  wlm_status status;
  WLM_TRY(wlmi_measurement_check(record));
  WLM_TRY(wlmi_measurement_ids(record, &ids));
  wlmi_device_class(&record->device, &class);
  if (class.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "class of a device"));
  const char *const keys[WLMI_TABLE_COUNT][5] = {
      {ids.device, class.data}, {ids.matrix}, {ids.variant}, {ids.measurement, ids.device, ids.matrix, ids.variant}};
  for (int t = 0; t < WLMI_TABLE_COUNT; t++) WLM_TRY(wlmi_insert_run(store->insert[t], keys[t], WLM_OF(t), record));
  *added += sqlite3_changes(store->db); /* of the last insert, the measurement's */
done:
  wlmi_text_release(&class);
  return status;
}

/* ---- reading ---- */

wlm_status wlmi_store_prepare_one(const wlm_store *store, sqlite3_stmt **statement) {
  return wlmi_query_prepare(store->db, &one_row, statement);
}

wlm_status wlmi_store_read_rows(const wlm_store *store, const wlmi_row_reader *reader, const char *device_class,
                                void **list, int64_t *count) {
  sqlite3_stmt *row = NULL;
  wlm_status status;
  int64_t capacity = 0;
  char *elements = NULL;
  *count = 0;
  WLM_TRY(wlmi_query_prepare(store->db, reader->query, &row));
  wlmi_sqlite_bind_text(row, 1, device_class);
  while (wlmi_sqlite_next(row, &status)) {
    WLM_TRY(wlmi_grow((void **)&elements, *count, &capacity, reader->size, reader->what));
    status = wlmi_sqlite_read(row, reader->read(store, row, elements + (size_t)*count * reader->size));
    if (store->whole_only && status == WLM_ERR_DATABASE)
      status = WLM_OK;
    else
      *count += status == WLM_OK;
  }
done:
  sqlite3_finalize(row);
  if (store->whole_only && status == WLM_ERR_DATABASE) status = WLM_OK;
  while (status != WLM_OK && *count) reader->release(elements + (size_t)-- * count * reader->size);
  if (status != WLM_OK) {
    wlmi_free(elements);
    elements = NULL;
  }
  *list = elements;
  return status;
}

wlm_status wlmi_store_damaged(const wlm_store *store, const char *measurement) {
  return wlmi_fail(WLM_ERR_DATABASE,
                   "%s: measurement %s is damaged (its content has another id); run 'warploom db check' on the file, "
                   "or move it away",
                   wlmi_store_path(store), measurement);
}

static wlm_status read_measurement(const wlm_store *store, sqlite3_stmt *row, void *copy) {
  wlmi_measurement_record record;
  char id[WLMI_HASH_HEX];
  const int fits = wlmi_fields_read(row, WLMI_COLUMN_FIELDS, WLMI_OF_ALL, &record);
  WLM_CHECK(wlmi_measurement_id(&record, id));
  if (fits && !strcmp(id, wlmi_sqlite_text(row, WLMI_COLUMN_ID))) return wlmi_measurement_copy(&record, copy);
  return wlmi_store_damaged(store, wlmi_sqlite_text(row, WLMI_COLUMN_ID));
}

static void release_measurement(void *record) { wlmi_measurement_release(record); }

wlm_status wlmi_store_load(wlm_store *store, const char *device_class, wlmi_measurement_record **records,
                           int64_t *count) {
  static const wlmi_row_reader reader = {&all_rows, "measurements", sizeof **records, read_measurement,
                                         release_measurement};
  return wlmi_store_read_rows(store, &reader, device_class, (void **)records, count);
}

wlm_status wlmi_store_count(wlm_store *store, wlmi_store_counts *counts) {
  const struct {
    const char *sql;
    int64_t *value;
  } queries[] = {{"SELECT count(*) FROM device", &counts->devices},
                 {"SELECT count(*) FROM matrix", &counts->matrices},
                 {"SELECT count(*) FROM variant", &counts->variants},
                 {"SELECT count(*) FROM measurement", &counts->measurements},
                 {"SELECT count(*) FROM measurement WHERE failed", &counts->failed}};
  wlm_status status = WLM_OK;
  for (size_t i = 0; i < sizeof queries / sizeof *queries && status == WLM_OK; i++)
    status = wlmi_sqlite_integer(store->db, queries[i].sql, queries[i].value);
  return status;
}

wlm_status wlmi_store_nearest_class(wlm_store *store, const wlmi_device_record *device, wlmi_text *device_class) {
  static const char sql[] =
      "SELECT DISTINCT class, name, processors, arch FROM device WHERE kind = ?1"
      " AND EXISTS (SELECT 1 FROM measurement m WHERE m.device = device.id) ORDER BY class";
  wlmi_device_record other = *device;
  sqlite3_stmt *row = NULL;
  double least = 0;
  wlm_status status;
  WLM_TRY(wlmi_sqlite_prepare(store->db, sql, &row));
  wlmi_sqlite_bind_text(row, 1, device->kind);
  while (wlmi_sqlite_next(row, &status)) {
    other.name = (char *)wlmi_sqlite_text(row, 1);
    other.processors = sqlite3_column_int(row, 2);
    other.arch = (char *)wlmi_sqlite_text(row, 3);
    const double its = wlmi_device_unlikeness(&other, device);
    if (its == 0 || (least > 0 && its >= least)) continue;
    least = its;
    wlmi_text_release(device_class);
    wlmi_text_puts(device_class, wlmi_sqlite_text(row, 0));
  }
  if (!least) wlmi_text_puts(device_class, "");
  if (device_class->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "class of a device");
done:
  sqlite3_finalize(row);
  return status;
}
