#include "db/measurement_set.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "db/parts.h"

enum { ID_SIZE = WLMI_HASH_HEX - 1 };

enum { ID, MATRIX, VARIANT, FIELDS };
static const wlmi_query measurements_of_class = {
    "SELECT id, matrix, variant", WLMI_OF_CHOICE,
    " FROM measurement WHERE device IN (SELECT id FROM device WHERE class = ?1) ORDER BY id"};

typedef struct reading {
  wlmi_measurement_set *set;
  wlm_store *store;
  wlmi_parts matrices, variants;
  int64_t damaged; /* rows of measurements with impossible values */
} reading;

static int is_possible(const wlmi_measurement_record *record) {
  const int timed = record->failed ? !record->time_ps : record->time_ps > 0;
  return timed && wlmi_clock_is_known(record->clock);
}

/* Whether a store that was added before has the measurement. */
static int is_known(const wlmi_measurement_set *set, const char *id) {
  for (int64_t i = 0, begin = 0; i < set->store_count; begin = set->ends[i++])
    if (set->ends[i] > begin &&
        bsearch(id, set->ids[begin], (size_t)(set->ends[i] - begin), sizeof *set->ids, wlmi_ids_compare))
      return 1;
  return 0;
}

static wlm_status read_measurement(reading *r, sqlite3_stmt *row) {
  wlmi_measurement_set *set = r->set;
  const char *id = wlmi_sqlite_text(row, ID);
  const int64_t matrix = wlmi_parts_find(&r->matrices, wlmi_sqlite_text(row, MATRIX));
  const int64_t variant = wlmi_parts_find(&r->variants, wlmi_sqlite_text(row, VARIANT));
  int whole = strlen(id) == ID_SIZE && matrix >= 0 && variant >= 0;
  r->damaged += !whole;
  if (!whole || is_known(set, id)) return WLM_OK;
  WLM_CHECK(wlmi_measurements_reserve(&set->records, set->count, &set->capacity));
  WLM_CHECK(wlmi_grow((void **)&set->ids, set->count, &set->id_capacity, sizeof *set->ids, "ids of measurements"));
  wlmi_measurement_record *record = &set->records[set->count];
  WLM_CHECK(wlmi_fields_keep(&set->texts, row, FIELDS, WLMI_OF_CHOICE, set->count ? record - 1 : NULL, record, &whole));
  if (wlmi_measurement_is_cold(record)) return WLM_OK;
  record->matrix_name = r->matrices.records[matrix].matrix_name;
  record->stats = r->matrices.records[matrix].stats;
  record->variant = r->variants.records[variant].variant;
  record->version = r->variants.records[variant].version;
  whole &= is_possible(record);
  r->damaged += !whole;
  if (whole) memcpy(set->ids[set->count++], id, WLMI_HASH_HEX);
  return WLM_OK;
}

static wlm_status read_measurements(reading *r, const char *device_class) {
  sqlite3_stmt *row = NULL;
  wlm_status status = wlmi_query_prepare(r->store->db, &measurements_of_class, &row);
  if (status == WLM_OK) wlmi_sqlite_bind_text(row, 1, device_class);
  while (wlmi_sqlite_next(row, &status)) status = read_measurement(r, row);
  sqlite3_finalize(row);
  return status;
}

/* Reads in one transaction, so that the tables are consistent. */
wlm_status wlmi_measurement_set_add(wlmi_measurement_set *set, wlm_store *store, const char *device_class) {
  reading r = {.set = set, .store = store};
  const int64_t before = set->count;
  wlm_status status;
  WLM_TRY(wlmi_grow((void **)&set->ends, set->store_count, &set->end_capacity, sizeof *set->ends, "databases"));
  status = wlmi_sqlite_run(store->db, "BEGIN");
  if (status == WLM_OK) status = wlmi_parts_read(store, WLMI_TABLE_MATRIX, &set->texts, &r.matrices);
  if (status == WLM_OK) status = wlmi_parts_read(store, WLMI_TABLE_VARIANT, &set->texts, &r.variants);
  if (status == WLM_OK) status = read_measurements(&r, device_class);
  status = wlmi_sqlite_end(store->db, status);
  if (status == WLM_OK)
    set->ends[set->store_count++] = set->count;
  else
    set->count = before;
  if (status == WLM_OK && r.damaged)
    wlmi_log(WLM_LOG_WARNING, "%s: %lld damaged measurements are left out; run 'warploom db check' on the file",
             wlmi_store_path(store), (long long)r.damaged);
done:
  wlmi_parts_release(&r.matrices);
  wlmi_parts_release(&r.variants);
  return status;
}

void wlmi_measurement_set_release(wlmi_measurement_set *set) {
  wlmi_free(set->records);
  wlmi_free(set->ids);
  wlmi_free(set->ends);
  wlmi_strings_release(&set->texts);
  *set = (wlmi_measurement_set){0};
}
