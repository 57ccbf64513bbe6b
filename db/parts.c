#include "db/parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

enum { ID_SIZE = WLMI_HASH_HEX - 1 };

int wlmi_ids_compare(const void *left, const void *right) { return memcmp(left, right, ID_SIZE); }

wlm_status wlmi_fields_keep(wlmi_strings *texts, sqlite3_stmt *row, int column, unsigned of,
                            const wlmi_measurement_record *last, wlmi_measurement_record *out, int *whole) {
  wlm_status status = WLM_OK;
  *whole &= wlmi_fields_read(row, column, of, out);
  for (int i = 0; i < WLMI_FIELD_COUNT && *whole && status == WLM_OK; i++) {
    const wlmi_field *field = &wlmi_fields[i];
    int64_t index;
    if (!(field->of & of)) continue;
    *whole = wlmi_field_is_possible(field, out);
    if (!*whole || field->type != WLMI_FIELD_TEXT) continue;
    const char *text = wlmi_field_text(field, out), *before = last ? wlmi_field_text(field, last) : "";
    if (strcmp(text, before)) {
      status = wlmi_strings_keep(texts, text, &index);
      before = status == WLM_OK ? texts->texts[index] : "";
    }
    wlmi_field_set_text(field, out, (char *)before);
  }
  return status;
}

wlm_status wlmi_parts_read(const wlm_store *store, wlmi_field_table table, wlmi_strings *texts, wlmi_parts *parts) {
  static const char *const from[] = {" FROM device ORDER BY id", " FROM matrix ORDER BY id",
                                     " FROM variant ORDER BY id"};
  const wlmi_query query = {"SELECT id", WLM_OF(table), from[table]};
  sqlite3_stmt *row = NULL;
  wlm_status status = wlmi_query_prepare(store->db, &query, &row);
  while (wlmi_sqlite_next(row, &status)) {
    const char *id = wlmi_sqlite_text(row, 0);
    int whole = strlen(id) == ID_SIZE;
    WLM_TRY(wlmi_measurements_reserve(&parts->records, parts->count, &parts->capacity));
    WLM_TRY(wlmi_grow((void **)&parts->ids, parts->count, &parts->id_capacity, sizeof *parts->ids, "ids"));
    wlmi_measurement_record *record = &parts->records[parts->count];
    WLM_TRY(wlmi_fields_keep(texts, row, 1, query.of, NULL, record, &whole));
    if (whole && !wlmi_stats_fault(&record->stats)) memcpy(parts->ids[parts->count++], id, WLMI_HASH_HEX);
  }
done:
  sqlite3_finalize(row);
  return status;
}

int64_t wlmi_parts_find(const wlmi_parts *parts, const char *id) {
  const char(*found)[WLMI_HASH_HEX] = NULL;
  if (parts->count && strlen(id) == ID_SIZE)
    found = bsearch(id, parts->ids, (size_t)parts->count, sizeof *parts->ids, wlmi_ids_compare);
  return found ? found - (const char(*)[WLMI_HASH_HEX])parts->ids : -1;
}

void wlmi_parts_release(wlmi_parts *parts) {
  wlmi_free(parts->ids);
  wlmi_free(parts->records);
  *parts = (wlmi_parts){0};
}
