#include "db/measurement_set.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/memory.h"
#include "db/store_state.h"

enum { ID_SIZE = WLM_HASH_HEX - 1 };

/* The id, then the fields of the table in the order of wlmi_fields. */
static const char matrices_sql[] =
    "SELECT id, name, fingerprint, rows, cols, nnz, longest, empty_rows, rows_le_4, rows_le_16, cv, top_share"
    " FROM matrix ORDER BY id";
static const char variants_sql[] = "SELECT id, name, source_hash FROM variant ORDER BY id";

enum {
  ID,
  PROBLEM,
  N,
  COMPILER,
  DRIVER,
  CLOCK,
  TIME,
  SPREAD,
  PREPARE,
  SAMPLES,
  FAILED,
  REASON,
  MADE_AT,
  MATRIX,
  VARIANT
};
static const char measurements_sql[] =
    "SELECT id, problem, n, compiler, driver, clock, time_ps, spread_ps, prepare_ps, samples, failed, reason, made_at,"
    " matrix, variant FROM measurement WHERE device IN (SELECT id FROM device WHERE class = ?1)"
    " ORDER BY id";

/* The rows of the table matrix or variant, as measurements with only these fields set. */
typedef struct parts {
  char (*ids)[WLM_HASH_HEX]; /* in their order */
  wlmi_measurement_record *records;
  int64_t count, capacity, id_capacity;
} parts;

typedef struct reading {
  wlmi_measurement_set *set;
  wlm_store *store;
  parts matrices, variants;
  int64_t damaged; /* rows of measurements with impossible values */
} reading;

static int compare_ids(const void *left, const void *right) { return memcmp(left, right, ID_SIZE); }

static int has_long_text(sqlite3_stmt *row) {
  static const int columns[] = {PROBLEM, COMPILER, DRIVER, CLOCK, REASON};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
    if (sqlite3_column_bytes(row, columns[i]) > WLM_LONGEST_TEXT) return 1;
  return 0;
}

/* Keeps a text. *kept is the previous row's text, which is often equal; NULL = none. */
static wlm_status keep_text(reading *r, const char *text, char **kept) {
  int64_t index;
  if (*kept && !strcmp(*kept, text)) return WLM_OK;
  const wlm_status status = wlmi_strings_keep(&r->set->texts, text, &index);
  if (status == WLM_OK) *kept = r->set->texts.texts[index];
  return status;
}

/* ---- matrices and variants ---- */

/* **whole = 0 if a value is impossible. */
static wlm_status read_part(reading *r, sqlite3_stmt *row, wlmi_field_table table, wlmi_measurement_record *out,
                            int *whole) {
  int column = 1;
  wlm_status status = WLM_OK;
  *out = (wlmi_measurement_record){0};
  *whole = 1;
  for (int i = 0; i < WLM_FIELD_COUNT && status == WLM_OK; i++) {
    const wlmi_field *field = &wlmi_fields[i];
    if (field->table != table) continue;
    *whole &= wlmi_store_read_field(row, column++, field, out);
    *whole &= wlmi_field_is_possible(field, out);
    if (field->type != WLM_FIELD_TEXT) continue;
    char *kept = NULL;
    status = keep_text(r, wlmi_field_text(field, out), &kept);
    wlmi_field_set_text(field, out, kept);
  }
  wlmi_fields_derive(out);
  *whole &= !wlmi_stats_fault(&out->stats);
  return status;
}

/* Keeps valid rows only; a measurement that refers to another row is dropped later. */
static wlm_status read_parts(reading *r, const char *sql, wlmi_field_table table, parts *out) {
  sqlite3_stmt *row = NULL;
  wlm_status status;
  int more, whole;
  WLM_TRY(wlmi_sqlite_prepare(r->store->db, sql, &row));
  for (;;) {
    WLM_TRY(wlmi_sqlite_step(row, &more));
    if (!more) break;
    const char *id = wlmi_sqlite_text(row, 0);
    WLM_TRY(wlmi_measurements_reserve(&out->records, out->count, &out->capacity));
    WLM_TRY(wlmi_grow((void **)&out->ids, out->count, &out->id_capacity, sizeof *out->ids, "ids"));
    WLM_TRY(read_part(r, row, table, &out->records[out->count], &whole));
    if (whole && strlen(id) == ID_SIZE) memcpy(out->ids[out->count++], id, WLM_HASH_HEX);
  }
done:
  sqlite3_finalize(row);
  return status;
}

static void release_parts(parts *parts) {
  wlmi_free(parts->ids);
  wlmi_free(parts->records);
}

/* NULL if there is none. */
static const wlmi_measurement_record *find_part(const parts *parts, const char *id) {
  const char(*found)[WLM_HASH_HEX] = NULL;
  if (parts->count && strlen(id) == ID_SIZE)
    found = bsearch(id, parts->ids, (size_t)parts->count, sizeof *parts->ids, compare_ids);
  return found ? &parts->records[found - (const char(*)[WLM_HASH_HEX])parts->ids] : NULL;
}

/* ---- measurements ---- */

static int is_possible(const wlmi_measurement_record *record) {
  const int timed = record->failed ? !record->time_ps : record->time_ps > 0;
  return timed && wlmi_clock_is_known(record->clock) && record->n >= 0 && record->spread_ps >= 0 &&
         record->prepare_ps >= 0 && record->samples >= 0;
}

static wlm_status read_measurement(reading *r, sqlite3_stmt *row) {
  wlmi_measurement_set *set = r->set;
  const char *id = wlmi_sqlite_text(row, ID);
  const wlmi_measurement_record *matrix = find_part(&r->matrices, wlmi_sqlite_text(row, MATRIX));
  const wlmi_measurement_record *variant = find_part(&r->variants, wlmi_sqlite_text(row, VARIANT));
  wlm_status status;
  const int understood = strlen(id) == ID_SIZE && matrix && variant && !has_long_text(row);
  r->damaged += !understood;
  if (!understood) return WLM_OK;
  if (set->before && bsearch(id, set->ids, (size_t)set->before, sizeof *set->ids, compare_ids)) return WLM_OK;
  WLM_TRY(wlmi_measurements_reserve(&set->records, set->count, &set->capacity));
  WLM_TRY(wlmi_grow((void **)&set->ids, set->count, &set->id_capacity, sizeof *set->ids, "ids of measurements"));
  wlmi_measurement_record *record = &set->records[set->count];
  wlmi_measurement_record none = {0}, *last = set->count ? record - 1 : &none;
  *record = (wlmi_measurement_record){.matrix_name = matrix->matrix_name,
                                      .stats = matrix->stats,
                                      .variant = variant->variant,
                                      .source_hash = variant->source_hash,
                                      .problem = last->problem,
                                      .n = sqlite3_column_int64(row, N),
                                      .compiler = last->compiler,
                                      .driver = last->driver,
                                      .clock = last->clock,
                                      .time_ps = sqlite3_column_int64(row, TIME),
                                      .spread_ps = sqlite3_column_int64(row, SPREAD),
                                      .prepare_ps = sqlite3_column_int64(row, PREPARE),
                                      .samples = sqlite3_column_int(row, SAMPLES),
                                      .failed = sqlite3_column_int(row, FAILED),
                                      .made_at = sqlite3_column_int64(row, MADE_AT)};
  WLM_TRY(keep_text(r, wlmi_sqlite_text(row, PROBLEM), &record->problem));
  WLM_TRY(keep_text(r, wlmi_sqlite_text(row, COMPILER), &record->compiler));
  WLM_TRY(keep_text(r, wlmi_sqlite_text(row, DRIVER), &record->driver));
  WLM_TRY(keep_text(r, wlmi_sqlite_text(row, CLOCK), &record->clock));
  if (record->failed) WLM_TRY(keep_text(r, wlmi_sqlite_text(row, REASON), &record->reason));
  if (wlmi_measurement_is_cold(record)) return WLM_OK;
  const int possible = is_possible(record);
  r->damaged += !possible;
  if (possible) memcpy(set->ids[set->count++], id, WLM_HASH_HEX);
done:
  return status;
}

static wlm_status read_measurements(reading *r, const char *device_class) {
  sqlite3_stmt *row = NULL;
  wlm_status status;
  int more;
  WLM_TRY(wlmi_sqlite_prepare(r->store->db, measurements_sql, &row));
  wlmi_sqlite_bind_text(row, 1, device_class);
  for (;;) {
    WLM_TRY(wlmi_sqlite_step(row, &more));
    if (!more) break;
    WLM_TRY(read_measurement(r, row));
  }
done:
  sqlite3_finalize(row);
  return status;
}

/* Reads in one transaction, so that the tables are consistent. */
wlm_status wlmi_measurement_set_add(wlmi_measurement_set *set, wlm_store *store, const char *device_class) {
  reading r = {.set = set, .store = store};
  const int64_t before = set->before;
  set->before = set->count;
  wlm_status status = wlmi_sqlite_run(store->db, "BEGIN");
  if (status == WLM_OK) status = read_parts(&r, matrices_sql, WLM_TABLE_MATRIX, &r.matrices);
  if (status == WLM_OK) status = read_parts(&r, variants_sql, WLM_TABLE_VARIANT, &r.variants);
  if (status == WLM_OK) status = read_measurements(&r, device_class);
  status = wlmi_sqlite_end(store->db, status);
  if (status != WLM_OK) {
    set->count = set->before;
    set->before = before;
  } else if (r.damaged)
    wlmi_log(WLM_LOG_WARNING, "%s: %lld damaged measurements are left out; run 'warploom db check' on the file",
             wlmi_store_path(store), (long long)r.damaged);
  release_parts(&r.matrices);
  release_parts(&r.variants);
  return status;
}

void wlmi_measurement_set_release(wlmi_measurement_set *set) {
  wlmi_free(set->records);
  wlmi_free(set->ids);
  wlmi_strings_release(&set->texts);
  *set = (wlmi_measurement_set){0};
}
