#include "db/recorded.h"

#include <string.h>

#include "common/memory.h"
#include "db/store_state.h"

enum { FIRST_VERSION = 3 }; /* of the schema, that has them */

/* ?1 is the id, ?2 the class; then the fields in the order of wlmi_fields. */
static const char put_sql[] =
    "INSERT INTO recorded (id, class, fingerprint, rows, cols, nnz, longest, empty_rows, rows_le_4, rows_le_16, cv,"
    " top_share, problem, n) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
    " ON CONFLICT (id) DO NOTHING";
static const char remove_sql[] = "DELETE FROM recorded WHERE id = ?1";
static const char select_sql[] =
    "SELECT id, class, fingerprint, rows, cols, nnz, longest, empty_rows, rows_le_4, rows_le_16, cv, top_share, "
    "problem,"
    " n FROM recorded WHERE ?1 IS NULL OR class = ?1 ORDER BY id";

int wlmi_recorded_has(const wlmi_field *field) {
  static const char *const others[] = {"problem", "n"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (!strcmp(field->key, others[i])) return 1;
  return field->table == WLM_TABLE_MATRIX && field->type != WLM_FIELD_TEXT; /* it has no name */
}

/* As the fields see it. */
static wlmi_measurement_record record_of(const wlmi_recorded *recorded) {
  return (wlmi_measurement_record){.stats = recorded->stats, .problem = recorded->problem, .n = recorded->n};
}

wlm_status wlmi_recorded_check(const wlmi_recorded *recorded) {
  const wlmi_measurement_record record = record_of(recorded);
  const char *class = recorded->device_class;
  if (!class || !*class || !wlmi_is_utf8(class))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "recorded must be a device class, a string that is not empty");
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (wlmi_recorded_has(&wlmi_fields[i]) && !wlmi_field_is_possible(&wlmi_fields[i], &record))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s must be %s", wlmi_fields[i].key, wlmi_fields[i].must_be);
  const char *fault = wlmi_stats_fault(&recorded->stats);
  return fault ? wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s", fault) : WLM_OK;
}

void wlmi_recorded_json(const wlmi_recorded *recorded, wlmi_text *out) {
  const wlmi_measurement_record record = record_of(recorded);
  wlmi_text_puts(out, "{\"recorded\":");
  wlmi_text_json_string(out, recorded->device_class);
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (wlmi_recorded_has(&wlmi_fields[i])) wlmi_field_json(&wlmi_fields[i], &record, out);
  wlmi_text_puts(out, "}");
}

wlm_status wlmi_recorded_id(const wlmi_recorded *recorded, char id[WLM_HASH_HEX]) {
  wlmi_text line = {0};
  wlmi_recorded_json(recorded, &line);
  const wlm_status status =
      line.failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "canonical line of a recorded problem") : WLM_OK;
  if (status == WLM_OK) wlmi_hash_to_hex(wlmi_hash_bytes(line.data, line.size), id);
  wlmi_text_release(&line);
  return status;
}

wlm_status wlmi_recorded_copy(const wlmi_recorded *recorded, wlmi_recorded *copy) {
  *copy = *recorded;
  copy->device_class = wlmi_strdup(recorded->device_class);
  copy->problem = wlmi_strdup(recorded->problem);
  if (copy->device_class && copy->problem) return WLM_OK;
  wlmi_recorded_release(copy);
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "copy of a recorded problem");
}

void wlmi_recorded_release(wlmi_recorded *recorded) {
  wlmi_free(recorded->device_class);
  wlmi_free(recorded->problem);
  *recorded = (wlmi_recorded){0};
}

void wlmi_recorded_free(wlmi_recorded *list, int64_t count) {
  for (int64_t i = 0; i < count; i++) wlmi_recorded_release(&list[i]);
  wlmi_free(list);
}

/* ---- in a store ---- */

wlm_status wlmi_store_record_one(wlm_store *store, const wlmi_recorded *recorded) {
  const wlmi_measurement_record record = record_of(recorded);
  sqlite3_stmt *put = NULL;
  char id[WLM_HASH_HEX];
  int index = 3;
  wlm_status status;
  WLM_TRY(wlmi_recorded_check(recorded));
  WLM_TRY(wlmi_recorded_id(recorded, id));
  WLM_TRY(wlmi_sqlite_prepare(store->db, put_sql, &put));
  wlmi_sqlite_bind_text(put, 1, id);
  wlmi_sqlite_bind_text(put, 2, recorded->device_class);
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (wlmi_recorded_has(&wlmi_fields[i])) wlmi_store_bind_field(put, index++, &wlmi_fields[i], &record);
  status = wlmi_sqlite_execute(put);
done:
  sqlite3_finalize(put);
  return status;
}

wlm_status wlmi_store_record(wlm_store *store, const wlmi_recorded *list, int64_t count) {
  wlm_status status = wlmi_store_writable(store);
  if (status == WLM_OK) status = wlmi_sqlite_begin(store->db);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < count && status == WLM_OK; i++) status = wlmi_store_record_one(store, &list[i]);
  return wlmi_sqlite_end(store->db, status);
}

wlm_status wlmi_store_forget(wlm_store *store, const wlmi_recorded *recorded) {
  sqlite3_stmt *remove = NULL;
  char id[WLM_HASH_HEX];
  wlm_status status;
  WLM_TRY(wlmi_store_writable(store));
  WLM_TRY(wlmi_recorded_id(recorded, id));
  WLM_TRY(wlmi_sqlite_prepare(store->db, remove_sql, &remove));
  wlmi_sqlite_bind_text(remove, 1, id);
  status = wlmi_sqlite_execute(remove);
done:
  sqlite3_finalize(remove);
  return status;
}

static wlm_status read_one(const wlm_store *store, sqlite3_stmt *row, void *copy) {
  wlmi_measurement_record record = {.n = 0};
  char id[WLM_HASH_HEX];
  int column = 2, fits = 1;
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (wlmi_recorded_has(&wlmi_fields[i])) fits &= wlmi_store_read_field(row, column++, &wlmi_fields[i], &record);
  wlmi_fields_derive(&record);
  const wlmi_recorded read = {(char *)wlmi_sqlite_text(row, 1), record.stats, record.problem, record.n};
  wlm_status status = wlmi_recorded_id(&read, id);
  if (status != WLM_OK) return status;
  if (fits && !strcmp(id, wlmi_sqlite_text(row, 0)) && wlmi_recorded_check(&read) == WLM_OK)
    return wlmi_recorded_copy(&read, copy);
  return wlmi_fail(WLM_ERR_DATABASE,
                   "%s: the recorded problem %s is damaged (its content has another id); run 'warploom db check'",
                   wlmi_store_path(store), wlmi_sqlite_text(row, 0));
}

static wlm_status load(wlm_store *store, const char *device_class, int whole_only, wlmi_recorded **list,
                       int64_t *count) {
  static const wlmi_row_reader reader = {select_sql, "recorded problems", sizeof **list, read_one};
  int64_t version;
  wlm_status status;
  *list = NULL;
  *count = 0;
  WLM_TRY(wlmi_sqlite_integer(store->db, "PRAGMA user_version", &version));
  if (version < FIRST_VERSION) return WLM_OK;
  status = wlmi_store_read_rows(store, &reader, device_class, whole_only, (void **)list, count);
done:
  if (status == WLM_OK) return WLM_OK;
  wlmi_recorded_free(*list, *count);
  *list = NULL;
  *count = 0;
  return status;
}

wlm_status wlmi_store_load_recorded(wlm_store *store, const char *device_class, wlmi_recorded **list, int64_t *count) {
  return load(store, device_class, 0, list, count);
}

wlm_status wlmi_store_salvage_recorded(wlm_store *store, wlmi_recorded **list, int64_t *count) {
  return load(store, NULL, 1, list, count);
}
