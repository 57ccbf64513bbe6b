#include "db/recorded.h"

#include <string.h>

#include "common/memory.h"
#include "db/store_state.h"

enum { FIRST_VERSION = 3 }; /* of the schema, that has them */

/* ?1 is the id, ?2 the class; then the fields in the order of wlm_fields. */
static const char put_sql[] =
    "INSERT INTO recorded (id, class, fingerprint, rows, cols, nnz, longest, empty_rows, rows_le_4, rows_le_16, cv,"
    " top_share, problem, n) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
    " ON CONFLICT (id) DO NOTHING";
static const char remove_sql[] = "DELETE FROM recorded WHERE id = ?1";
static const char select_sql[] =
    "SELECT id, class, fingerprint, rows, cols, nnz, longest, empty_rows, rows_le_4, rows_le_16, cv, top_share, "
    "problem,"
    " n FROM recorded WHERE ?1 IS NULL OR class = ?1 ORDER BY id";

int wlm_recorded_has(const wlm_field *field) {
  static const char *const others[] = {"problem", "n"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (!strcmp(field->key, others[i])) return 1;
  return field->table == WLM_TABLE_MATRIX && field->type != WLM_FIELD_TEXT; /* it has no name */
}

/* As the fields see it. */
static wlm_measurement_record record_of(const wlm_recorded *recorded) {
  return (wlm_measurement_record){.stats = recorded->stats, .problem = recorded->problem, .n = recorded->n};
}

wlm_status wlm_recorded_check(const wlm_recorded *recorded) {
  const wlm_measurement_record record = record_of(recorded);
  const char *class = recorded->device_class;
  if (!class || !*class || !wlm_is_utf8(class))
    return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "recorded must be a device class, a string that is not empty");
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (wlm_recorded_has(&wlm_fields[i]) && !wlm_field_is_possible(&wlm_fields[i], &record))
      return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "%s must be %s", wlm_fields[i].key, wlm_fields[i].must_be);
  const char *fault = wlm_stats_fault(&recorded->stats);
  return fault ? wlm_fail(WLM_ERR_INVALID_ARGUMENT, "%s", fault) : WLM_OK;
}

void wlm_recorded_json(const wlm_recorded *recorded, wlm_text *out) {
  const wlm_measurement_record record = record_of(recorded);
  wlm_text_puts(out, "{\"recorded\":");
  wlm_text_json_string(out, recorded->device_class);
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (wlm_recorded_has(&wlm_fields[i])) wlm_field_json(&wlm_fields[i], &record, out);
  wlm_text_puts(out, "}");
}

wlm_status wlm_recorded_id(const wlm_recorded *recorded, char id[WLM_HASH_HEX]) {
  wlm_text line = {0};
  wlm_recorded_json(recorded, &line);
  const wlm_status status =
      line.failed ? wlm_fail(WLM_ERR_OUT_OF_MEMORY, "canonical line of a recorded problem") : WLM_OK;
  if (status == WLM_OK) wlm_hash_to_hex(wlm_hash_bytes(line.data, line.size), id);
  wlm_text_release(&line);
  return status;
}

wlm_status wlm_recorded_copy(const wlm_recorded *recorded, wlm_recorded *copy) {
  *copy = *recorded;
  copy->device_class = wlm_strdup(recorded->device_class);
  copy->problem = wlm_strdup(recorded->problem);
  if (copy->device_class && copy->problem) return WLM_OK;
  wlm_recorded_release(copy);
  return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "copy of a recorded problem");
}

void wlm_recorded_release(wlm_recorded *recorded) {
  wlm_free(recorded->device_class);
  wlm_free(recorded->problem);
  *recorded = (wlm_recorded){0};
}

void wlm_recorded_free(wlm_recorded *list, int64_t count) {
  for (int64_t i = 0; i < count; i++) wlm_recorded_release(&list[i]);
  wlm_free(list);
}

/* ---- in a store ---- */

wlm_status wlm_store_record_one(wlm_store *store, const wlm_recorded *recorded) {
  const wlm_measurement_record record = record_of(recorded);
  sqlite3_stmt *put = NULL;
  char id[WLM_HASH_HEX];
  int index = 3;
  wlm_status status;
  WLM_TRY(wlm_recorded_check(recorded));
  WLM_TRY(wlm_recorded_id(recorded, id));
  WLM_TRY(wlm_sqlite_prepare(store->db, put_sql, &put));
  wlm_sqlite_bind_text(put, 1, id);
  wlm_sqlite_bind_text(put, 2, recorded->device_class);
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (wlm_recorded_has(&wlm_fields[i])) wlm_store_bind_field(put, index++, &wlm_fields[i], &record);
  status = wlm_sqlite_execute(put);
done:
  sqlite3_finalize(put);
  return status;
}

wlm_status wlm_store_record(wlm_store *store, const wlm_recorded *list, int64_t count) {
  wlm_status status = wlm_store_writable(store);
  if (status == WLM_OK) status = wlm_sqlite_begin(store->db);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < count && status == WLM_OK; i++) status = wlm_store_record_one(store, &list[i]);
  return wlm_sqlite_end(store->db, status);
}

wlm_status wlm_store_forget(wlm_store *store, const wlm_recorded *recorded) {
  sqlite3_stmt *remove = NULL;
  char id[WLM_HASH_HEX];
  wlm_status status;
  WLM_TRY(wlm_store_writable(store));
  WLM_TRY(wlm_recorded_id(recorded, id));
  WLM_TRY(wlm_sqlite_prepare(store->db, remove_sql, &remove));
  wlm_sqlite_bind_text(remove, 1, id);
  status = wlm_sqlite_execute(remove);
done:
  sqlite3_finalize(remove);
  return status;
}

static wlm_status read_one(const wlm_store *store, sqlite3_stmt *row, void *copy) {
  wlm_measurement_record record = {.n = 0};
  char id[WLM_HASH_HEX];
  int column = 2, fits = 1;
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (wlm_recorded_has(&wlm_fields[i])) fits &= wlm_store_read_field(row, column++, &wlm_fields[i], &record);
  wlm_fields_derive(&record);
  const wlm_recorded read = {(char *)wlm_sqlite_text(row, 1), record.stats, record.problem, record.n};
  wlm_status status = wlm_recorded_id(&read, id);
  if (status != WLM_OK) return status;
  if (fits && !strcmp(id, wlm_sqlite_text(row, 0)) && wlm_recorded_check(&read) == WLM_OK)
    return wlm_recorded_copy(&read, copy);
  return wlm_fail(WLM_ERR_DATABASE,
                  "%s: the recorded problem %s is damaged (its content has another id); run 'warploom db check'",
                  wlm_store_path(store), wlm_sqlite_text(row, 0));
}

static wlm_status load(wlm_store *store, const char *device_class, int whole_only, wlm_recorded **list,
                       int64_t *count) {
  static const wlm_row_reader reader = {select_sql, "recorded problems", sizeof **list, read_one};
  int64_t version;
  wlm_status status;
  *list = NULL;
  *count = 0;
  WLM_TRY(wlm_sqlite_integer(store->db, "PRAGMA user_version", &version));
  if (version < FIRST_VERSION) return WLM_OK;
  status = wlm_store_read_rows(store, &reader, device_class, whole_only, (void **)list, count);
done:
  if (status == WLM_OK) return WLM_OK;
  wlm_recorded_free(*list, *count);
  *list = NULL;
  *count = 0;
  return status;
}

wlm_status wlm_store_load_recorded(wlm_store *store, const char *device_class, wlm_recorded **list, int64_t *count) {
  return load(store, device_class, 0, list, count);
}

wlm_status wlm_store_salvage_recorded(wlm_store *store, wlm_recorded **list, int64_t *count) {
  return load(store, NULL, 1, list, count);
}
