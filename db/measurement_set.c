#include "db/measurement_set.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/memory.h"
#include "db/store_state.h"

enum { ID_SIZE = WLM_HASH_HEX - 1 };

static const wlmi_select all_matrices = {"SELECT id", WLM_OF(WLM_TABLE_MATRIX), " FROM matrix ORDER BY id"};
static const wlmi_select all_variants = {"SELECT id", WLM_OF(WLM_TABLE_VARIANT), " FROM variant ORDER BY id"};
enum { ID, MATRIX, VARIANT, FIELDS };
static const wlmi_select measurements_of_class = {
    "SELECT id, matrix, variant", WLM_OF_CHOICE,
    " FROM measurement WHERE device IN (SELECT id FROM device WHERE class = ?1) ORDER BY id"};

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

/* Reads these fields and keeps their texts. *whole becomes 0 if a value is impossible. Texts often equal those of the
 * last record, and are then shared without a look-up. */
static wlm_status read_fields(reading *r, sqlite3_stmt *row, int column, unsigned of,
                              const wlmi_measurement_record *last, wlmi_measurement_record *out, int *whole) {
  wlm_status status = WLM_OK;
  *whole &= wlmi_fields_read(row, column, of, out);
  for (int i = 0; i < WLM_FIELD_COUNT && *whole && status == WLM_OK; i++) {
    const wlmi_field *field = &wlmi_fields[i];
    int64_t index;
    if (!(field->of & of)) continue;
    *whole = wlmi_field_is_possible(field, out);
    if (!*whole || field->type != WLM_FIELD_TEXT) continue;
    const char *text = wlmi_field_text(field, out), *before = last ? wlmi_field_text(field, last) : "";
    if (strcmp(text, before)) {
      status = wlmi_strings_keep(&r->set->texts, text, &index);
      before = status == WLM_OK ? r->set->texts.texts[index] : "";
    }
    wlmi_field_set_text(field, out, (char *)before);
  }
  return status;
}

/* ---- matrices and variants ---- */

/* Keeps valid rows only; a measurement that refers to another row is dropped later. */
static wlm_status read_parts(reading *r, const wlmi_select *select, parts *out) {
  sqlite3_stmt *row = NULL;
  wlm_status status;
  int more;
  WLM_TRY(wlmi_select_prepare(r->store->db, select, &row));
  for (;;) {
    WLM_TRY(wlmi_sqlite_step(row, &more));
    if (!more) break;
    const char *id = wlmi_sqlite_text(row, ID);
    int whole = strlen(id) == ID_SIZE;
    WLM_TRY(wlmi_measurements_reserve(&out->records, out->count, &out->capacity));
    WLM_TRY(wlmi_grow((void **)&out->ids, out->count, &out->id_capacity, sizeof *out->ids, "ids"));
    wlmi_measurement_record *record = &out->records[out->count];
    WLM_TRY(read_fields(r, row, ID + 1, select->of, NULL, record, &whole));
    if (whole && !wlmi_stats_fault(&record->stats)) memcpy(out->ids[out->count++], id, WLM_HASH_HEX);
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
  return timed && wlmi_clock_is_known(record->clock);
}

static wlm_status read_measurement(reading *r, sqlite3_stmt *row) {
  wlmi_measurement_set *set = r->set;
  const char *id = wlmi_sqlite_text(row, ID);
  const wlmi_measurement_record *matrix = find_part(&r->matrices, wlmi_sqlite_text(row, MATRIX));
  const wlmi_measurement_record *variant = find_part(&r->variants, wlmi_sqlite_text(row, VARIANT));
  wlm_status status;
  int whole = strlen(id) == ID_SIZE && matrix && variant;
  r->damaged += !whole;
  if (!whole) return WLM_OK;
  if (set->before && bsearch(id, set->ids, (size_t)set->before, sizeof *set->ids, compare_ids)) return WLM_OK;
  WLM_TRY(wlmi_measurements_reserve(&set->records, set->count, &set->capacity));
  WLM_TRY(wlmi_grow((void **)&set->ids, set->count, &set->id_capacity, sizeof *set->ids, "ids of measurements"));
  wlmi_measurement_record *record = &set->records[set->count];
  WLM_TRY(read_fields(r, row, FIELDS, WLM_OF_CHOICE, set->count ? record - 1 : NULL, record, &whole));
  if (wlmi_measurement_is_cold(record)) return WLM_OK;
  record->matrix_name = matrix->matrix_name;
  record->stats = matrix->stats;
  record->variant = variant->variant;
  record->source_hash = variant->source_hash;
  whole &= is_possible(record);
  r->damaged += !whole;
  if (whole) memcpy(set->ids[set->count++], id, WLM_HASH_HEX);
done:
  return status;
}

static wlm_status read_measurements(reading *r, const char *device_class) {
  sqlite3_stmt *row = NULL;
  wlm_status status;
  int more;
  WLM_TRY(wlmi_select_prepare(r->store->db, &measurements_of_class, &row));
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
  if (status == WLM_OK) status = read_parts(&r, &all_matrices, &r.matrices);
  if (status == WLM_OK) status = read_parts(&r, &all_variants, &r.variants);
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
