#include "db/store.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "db/store_state.h"

/* ?1 is the row's id; then come the table's fields in the order of wlmi_fields, then its other columns. */
static const char *const insert_sql[WLM_TABLE_COUNT] = {
    "INSERT INTO device (id, kind, arch, name, processors, memory_bytes, class)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING",
    "INSERT INTO matrix (id, name, fingerprint, rows, cols, nnz, longest, empty_rows, rows_le_4, rows_le_16, cv,"
    " top_share) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (id) DO NOTHING",
    "INSERT INTO variant (id, name, source_hash) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO NOTHING",
    "INSERT INTO measurement (id, problem, n, compiler, driver, clock, time_ps, spread_ps, prepare_ps, samples,"
    " calls_per_sample, max_rel_err, failed, reason, made_at, device, matrix, variant)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)"
    " ON CONFLICT (id) DO NOTHING"};

/* All fields in the order of wlmi_fields, then the ids and the class. Left joins, so that a row with a missing
 * reference is reported as damaged instead of being skipped. */
#define SELECT_ROWS                                                                                          \
  "SELECT d.kind, d.arch, d.name, d.processors, d.memory_bytes,"                                             \
  " x.name, x.fingerprint, x.rows, x.cols, x.nnz, x.longest, x.empty_rows, x.rows_le_4, x.rows_le_16, x.cv," \
  " x.top_share, v.name, v.source_hash,"                                                                     \
  " m.problem, m.n, m.compiler, m.driver, m.clock, m.time_ps, m.spread_ps, m.prepare_ps, m.samples,"         \
  " m.calls_per_sample, m.max_rel_err, m.failed, m.reason, m.made_at,"                                       \
  " m.id, d.id, x.id, v.id, d.class"                                                                         \
  " FROM measurement m LEFT JOIN device d ON d.id = m.device LEFT JOIN matrix x ON x.id = m.matrix"          \
  " LEFT JOIN variant v ON v.id = m.variant"
static const char select_sql[] = SELECT_ROWS " WHERE ?1 IS NULL OR d.class = ?1 ORDER BY m.id";
static const char select_one_sql[] = SELECT_ROWS " WHERE m.id = ?1";

static wlm_status open_in(wlmi_database_mode mode, const char *path, wlm_store **out) {
  wlm_status status;
  wlm_store *store = wlmi_alloc_zero(1, sizeof *store);
  *out = NULL;
  if (!store) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a store");
  WLM_TRY(wlmi_database_open(path, mode, &wlmi_schema_tuned, &store->db));
  status = wlmi_sqlite_prepare(store->db, select_sql, &store->select);
  if (status == WLM_ERR_DATABASE && mode == WLM_DATABASE_SALVAGE) status = wlmi_database_hopeless(path); /* no tables */
  if (status != WLM_OK) goto done;
  for (int t = 0; mode == WLM_DATABASE_WRITE && t < WLM_TABLE_COUNT; t++)
    WLM_TRY(wlmi_sqlite_prepare(store->db, insert_sql[t], &store->insert[t]));
  *out = store;
  return WLM_OK;
done:
  wlmi_store_close(store);
  return status;
}

wlm_status wlmi_store_open(const char *path, wlmi_store_mode mode, wlm_store **store) {
  static const wlmi_database_mode modes[] = {[WLM_STORE_READ] = WLM_DATABASE_READ,
                                             [WLM_STORE_READ_PATIENT] = WLM_DATABASE_READ_PATIENT,
                                             [WLM_STORE_READ_SHIPPED] = WLM_DATABASE_READ_SHIPPED,
                                             [WLM_STORE_WRITE] = WLM_DATABASE_WRITE};
  return open_in(modes[mode], path, store);
}

wlm_status wlmi_store_open_damaged(const char *path, wlm_store **store) {
  return open_in(WLM_DATABASE_SALVAGE, path, store);
}

void wlmi_store_close(wlm_store *store) {
  if (!store) return;
  for (int t = 0; t < WLM_TABLE_COUNT; t++) sqlite3_finalize(store->insert[t]);
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

wlm_status wlmi_store_bind_field(sqlite3_stmt *statement, int index, const wlmi_field *field,
                                 const wlmi_measurement_record *record) {
  char digits[WLM_HASH_HEX];
  int code;
  switch (field->type) {
    case WLM_FIELD_TEXT: wlmi_sqlite_bind_text(statement, index, wlmi_field_text(field, record)); break;
    case WLM_FIELD_INT:
    case WLM_FIELD_INT64:
    case WLM_FIELD_INT64_OR_NONE:
    case WLM_FIELD_BOOL: sqlite3_bind_int64(statement, index, wlmi_field_integer(field, record)); break;
    case WLM_FIELD_REAL:
    case WLM_FIELD_REAL_OR_NULL:
      if (isfinite(wlmi_field_real(field, record)))
        sqlite3_bind_double(statement, index, wlmi_field_real(field, record));
      else
        sqlite3_bind_null(statement, index);
      break;
    case WLM_FIELD_HASH:
      wlmi_hash_to_hex(wlmi_field_hash(field, record), digits);
      code = sqlite3_bind_text(statement, index, digits, -1, SQLITE_TRANSIENT); /* makes a copy */
      if (code != SQLITE_OK) return wlmi_sqlite_error(sqlite3_db_handle(statement), code);
      break;
  }
  return WLM_OK;
}

static wlm_status insert_row(sqlite3_stmt *statement, wlmi_field_table table, const char *id,
                             const wlmi_measurement_record *record, const char *const *others) {
  int index = 1;
  wlm_status status = WLM_OK;
  wlmi_sqlite_bind_text(statement, index++, id);
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (wlmi_fields[i].table == table) WLM_TRY(wlmi_store_bind_field(statement, index++, &wlmi_fields[i], record));
  for (; *others; others++) wlmi_sqlite_bind_text(statement, index++, *others);
  status = wlmi_sqlite_execute(statement);
done:
  return status;
}

wlm_status wlmi_store_put_one(wlm_store *store, const wlmi_measurement_record *record, int64_t *added) {
  wlmi_record_ids ids;
  wlmi_text class = {0};
  wlm_status status;
  WLM_TRY(wlmi_measurement_check(record));
  WLM_TRY(wlmi_measurement_ids(record, &ids));
  wlmi_device_class(&record->device, &class);
  if (class.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "class of a device"));
  const char *const row_ids[WLM_TABLE_COUNT] = {ids.device, ids.matrix, ids.variant, ids.measurement};
  const char *const others[WLM_TABLE_COUNT][4] = {
      {class.data, NULL}, {NULL}, {NULL}, {ids.device, ids.matrix, ids.variant, NULL}};
  for (int t = 0; t < WLM_TABLE_COUNT; t++)
    WLM_TRY(insert_row(store->insert[t], (wlmi_field_table)t, row_ids[t], record, others[t]));
  *added += sqlite3_changes(store->db); /* of the last insert, the measurement's */
done:
  wlmi_text_release(&class);
  return status;
}

/* ---- reading ---- */

wlm_status wlmi_store_prepare_one(const wlm_store *store, sqlite3_stmt **statement) {
  return wlmi_sqlite_prepare(store->db, select_one_sql, statement);
}

int wlmi_store_read_field(sqlite3_stmt *row, int column, const wlmi_field *field, wlmi_measurement_record *record) {
  switch (field->type) {
    case WLM_FIELD_TEXT: wlmi_field_set_text(field, record, (char *)wlmi_sqlite_text(row, column)); break;
    case WLM_FIELD_INT:
    case WLM_FIELD_INT64:
    case WLM_FIELD_INT64_OR_NONE:
    case WLM_FIELD_BOOL: return wlmi_field_set_integer(field, record, sqlite3_column_int64(row, column));
    case WLM_FIELD_REAL:
    case WLM_FIELD_REAL_OR_NULL: {
      int null = sqlite3_column_type(row, column) == SQLITE_NULL;
      wlmi_field_set_real(field, record, null ? (double)NAN : sqlite3_column_double(row, column));
      break;
    }
    case WLM_FIELD_HASH: return wlmi_field_set_hash(field, record, wlmi_sqlite_text(row, column));
  }
  return 1;
}

int wlmi_store_read_row(sqlite3_stmt *row, wlmi_measurement_record *record) {
  int fits = 1;
  *record = (wlmi_measurement_record){0};
  for (int i = 0; i < WLM_FIELD_COUNT; i++) fits &= wlmi_store_read_field(row, i, &wlmi_fields[i], record);
  wlmi_fields_derive(record);
  return fits;
}

wlm_status wlmi_store_read_rows(const wlm_store *store, const wlmi_row_reader *reader, const char *device_class,
                                void **list, int64_t *count) {
  sqlite3_stmt *row = NULL;
  wlm_status status;
  int more;
  int64_t capacity = 0;
  char *elements = NULL;
  *count = 0;
  WLM_TRY(wlmi_sqlite_prepare(store->db, reader->select, &row));
  wlmi_sqlite_bind_text(row, 1, device_class);
  for (;;) {
    WLM_TRY(wlmi_sqlite_step(row, &more));
    if (!more) break;
    WLM_TRY(wlmi_grow((void **)&elements, *count, &capacity, reader->size, reader->what));
    status = wlmi_sqlite_read(row, reader->read(store, row, elements + (size_t)*count * reader->size));
    if (store->whole_only && status == WLM_ERR_DATABASE) continue;
    WLM_TRY(status);
    ++*count;
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

static wlm_status read_measurement(const wlm_store *store, sqlite3_stmt *row, void *copy) {
  wlmi_measurement_record record;
  char id[WLM_HASH_HEX];
  const int fits = wlmi_store_read_row(row, &record);
  const wlm_status status = wlmi_measurement_id(&record, id);
  if (status != WLM_OK) return status;
  if (fits && !strcmp(id, wlmi_sqlite_text(row, WLM_COLUMN_ID))) return wlmi_measurement_copy(&record, copy);
  return wlmi_fail(WLM_ERR_DATABASE,
                   "%s: measurement %s is damaged (its content has another id); run 'warploom db check' on the file, "
                   "or move it away",
                   wlmi_store_path(store), wlmi_sqlite_text(row, WLM_COLUMN_ID));
}

static void release_measurement(void *record) { wlmi_measurement_release(record); }

wlm_status wlmi_store_load(wlm_store *store, const char *device_class, wlmi_measurement_record **records,
                           int64_t *count) {
  static const wlmi_row_reader reader = {select_sql, "measurements", sizeof **records, read_measurement,
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

/* Similarity of devices: the ratio of their numbers of processors, the larger divided by the smaller. */
static const char nearest_sql[] =
    "SELECT class FROM (SELECT DISTINCT class, name, CASE WHEN processors > ?4 THEN 1.0 * processors / ?4"
    " ELSE 1.0 * ?4 / processors END AS ratio FROM device"
    " WHERE kind = ?1 AND arch = ?2 AND NOT (name = ?3 AND processors = ?4)"
    " AND EXISTS (SELECT 1 FROM measurement m WHERE m.device = device.id))"
    " WHERE ratio <= 2 ORDER BY name <> ?3, ratio, class LIMIT 1";

wlm_status wlmi_store_nearest_class(wlm_store *store, const wlmi_device_record *device, wlmi_text *device_class) {
  sqlite3_stmt *row = NULL;
  wlm_status status;
  int found;
  WLM_TRY(wlmi_sqlite_prepare(store->db, nearest_sql, &row));
  wlmi_sqlite_bind_text(row, 1, device->kind);
  wlmi_sqlite_bind_text(row, 2, device->arch);
  wlmi_sqlite_bind_text(row, 3, device->name);
  sqlite3_bind_int(row, 4, device->processors);
  WLM_TRY(wlmi_sqlite_step(row, &found));
  wlmi_text_puts(device_class, found ? wlmi_sqlite_text(row, 0) : "");
  if (device_class->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "class of a device");
done:
  sqlite3_finalize(row);
  return status;
}
