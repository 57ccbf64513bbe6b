/* Checks, repairs and prunes a store. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/path.h"
#include "core/base/private_file.h"
#include "db/store_state.h"
#include "select/prune.h"

static void report(wlmi_text *out, int64_t *faults, const char *what, const char *which, const char *fault) {
  wlmi_text_printf(out, "%s %s: %s\n", what, which, fault);
  ++*faults;
}

/* integrity_check returns "ok" and foreign_key_check no row; every other row is a fault. */
static wlm_status check_pragma(wlm_store *store, const char *sql, const char *fault, wlmi_text *out, int64_t *faults) {
  sqlite3_stmt *statement = NULL;
  wlm_status status = wlmi_sqlite_prepare(store->db, sql, &statement);
  while (wlmi_sqlite_next(statement, &status))
    if (strcmp(wlmi_sqlite_text(statement, 0), "ok"))
      report(out, faults, "file", wlmi_sqlite_text(statement, 0), fault);
  sqlite3_finalize(statement);
  return status;
}

static wlm_status check_row(sqlite3_stmt *row, wlmi_text *out, int64_t *faults) {
  wlmi_measurement_record record;
  wlmi_record_ids ids;
  wlmi_text class = {0};
  int fits = wlmi_fields_read(row, WLMI_COLUMN_FIELDS, WLMI_OF_ALL, &record);
  WLM_CHECK(wlmi_measurement_ids(&record, &ids));
  wlmi_device_class(&record.device, &class);
  const char *id = wlmi_sqlite_text(row, WLMI_COLUMN_ID);
  if (!fits) report(out, faults, "measurement", id, "a value does not fit its field");
  if (wlmi_measurement_check(&record) != WLM_OK) report(out, faults, "measurement", id, wlm_error_detail());
  const struct {
    const char *what, *expected;
    int column;
  } texts[] = {{"measurement", ids.measurement, WLMI_COLUMN_ID},
               {"device", ids.device, WLMI_COLUMN_DEVICE},
               {"matrix", ids.matrix, WLMI_COLUMN_MATRIX},
               {"variant", ids.variant, WLMI_COLUMN_VARIANT},
               {"device class", class.data ? class.data : "", WLMI_COLUMN_CLASS}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(texts[i].expected, wlmi_sqlite_text(row, texts[i].column)))
      report(out, faults, texts[i].what, wlmi_sqlite_text(row, texts[i].column), "does not match its content");
  wlmi_text_release(&class);
  return WLM_OK;
}

static wlm_status check_rows(wlm_store *store, wlmi_text *out, int64_t *faults) {
  wlm_status status = WLM_OK;
  while (wlmi_sqlite_next(store->select, &status)) status = check_row(store->select, out, faults);
  sqlite3_reset(store->select);
  return status;
}

static wlm_status check_schema(wlm_store *store, wlmi_text *out, int64_t *faults) {
  wlmi_text found = {0};
  int64_t version;
  wlm_status status = wlmi_sqlite_integer(store->db, "PRAGMA user_version", &version);
  if (status == WLM_OK) status = wlmi_database_compare(store->db, &wlmi_schema_tuned, version, &found);
  if (status == WLM_OK && found.size) report(out, faults, "file", "schema", found.data);
  wlmi_text_release(&found);
  return status;
}

wlm_status wlmi_store_check(wlm_store *store, wlmi_text *out) {
  int64_t faults = 0, pin_count = 0, recorded_count = 0;
  wlmi_pin_record *pins = NULL;
  wlmi_recorded *recorded = NULL;
  wlm_status status = check_schema(store, out, &faults);
  if (status == WLM_OK) status = check_pragma(store, "PRAGMA integrity_check", "integrity check", out, &faults);
  if (status == WLM_OK)
    status = check_pragma(store, "PRAGMA foreign_key_check", "has a row that refers to nothing", out, &faults);
  if (status == WLM_OK) status = check_rows(store, out, &faults);
  if (status == WLM_OK) status = wlmi_store_load_pins(store, NULL, &pins, &pin_count);
  if (status == WLM_OK) status = wlmi_store_load_recorded(store, NULL, &recorded, &recorded_count);
  wlmi_pins_free(pins, pin_count);
  wlmi_recorded_free(recorded, recorded_count);
  if (status == WLM_ERR_DATABASE) report(out, &faults, "file", "", wlm_error_detail());
  if (status != WLM_OK && status != WLM_ERR_DATABASE) return status;
  if (out->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "report of a check");
  if (!faults) return WLM_OK;
  return wlmi_fail(WLM_ERR_DATABASE, "%s: %lld faults found; 'warploom db check --repair' keeps what is whole",
                   wlmi_store_path(store), (long long)faults);
}

/* ---- repair ---- */

/* Salvages a damaged store. The ids of the measurements are read from the smallest up to the damage, then from the
 * greatest down, so one bad page loses only its own content. Then each measurement is fetched separately, so a bad page
 * of devices, matrices or variants loses only the measurements that refer to it. Measurements that pass the checks of
 * wlmi_store_check are kept. */

typedef struct salvage {
  wlm_store *from, *to;
  sqlite3_stmt *one;
  char last[WLMI_HASH_HEX]; /* the greatest id read on the way up */
  wlmi_store_repair_result *result;
} salvage;

static int is_whole(sqlite3_stmt *row, wlmi_measurement_record *record) {
  char id[WLMI_HASH_HEX];
  return wlmi_fields_read(row, WLMI_COLUMN_FIELDS, WLMI_OF_ALL, record) && wlmi_measurement_check(record) == WLM_OK &&
         wlmi_measurement_id(record, id) == WLM_OK && !strcmp(id, wlmi_sqlite_text(row, WLMI_COLUMN_ID));
}

static wlm_status salvage_one(salvage *s, const char *id) {
  wlmi_measurement_record record;
  int found;
  int64_t before = s->result->kept;
  wlmi_sqlite_bind_text(s->one, 1, id);
  wlm_status status = wlmi_sqlite_step(s->one, &found);
  if (status == WLM_OK && found && is_whole(s->one, &record))
    status = wlmi_store_put_one(s->to, &record, &s->result->kept);
  s->result->lost += s->result->kept == before;
  sqlite3_reset(s->one);
  sqlite3_clear_bindings(s->one);
  return status == WLM_ERR_DATABASE ? WLM_OK : status;
}

/* Reads upwards to the damage, or downwards to the id that the way up reached. */
static wlm_status walk(salvage *s, const char *sql, int up) {
  sqlite3_stmt *ids = NULL;
  wlm_status status = wlmi_sqlite_prepare(s->from->db, sql, &ids);
  while (wlmi_sqlite_next(ids, &status)) {
    const char *id = wlmi_sqlite_text(ids, 0);
    if (!up && strcmp(id, s->last) <= 0) break;
    if (up) snprintf(s->last, sizeof s->last, "%s", id);
    status = salvage_one(s, id);
  }
  sqlite3_finalize(ids);
  return status == WLM_ERR_DATABASE ? WLM_OK : status;
}

static wlm_status salvage_models(salvage *s) {
  const wlm_status status = wlmi_store_copy_models(s->from, s->to, &s->result->models);
  return status == WLM_ERR_DATABASE ? WLM_OK : status;
}

static wlm_status salvage_into(wlm_store *from, wlm_store *to, wlmi_store_repair_result *result) {
  salvage s = {.from = from, .to = to, .result = result};
  wlm_status status;
  WLM_TRY(wlmi_store_prepare_one(from, &s.one));
  WLM_TRY(wlmi_sqlite_begin(to->db));
  status = walk(&s, "SELECT id FROM measurement ORDER BY id", 1);
  if (status == WLM_OK) status = walk(&s, "SELECT id FROM measurement ORDER BY id DESC", 0);
  if (status == WLM_OK) status = wlmi_store_copy_rest(from, to, NULL);
  if (status == WLM_OK) status = salvage_models(&s);
  status = wlmi_sqlite_end(to->db, status);
done:
  sqlite3_finalize(s.one);
  return status;
}

/* Keeps other processes from writing while the file is read and replaced. A damaged file may not even allow the lock.
 */
static wlm_status lock(wlm_store *store) {
  wlm_status status = wlmi_sqlite_run(store->db, "PRAGMA query_only = OFF");
  if (status == WLM_OK) status = wlmi_sqlite_begin(store->db);
  return status == WLM_ERR_DATABASE ? WLM_OK : status;
}

wlm_status wlmi_store_repair(const char *path, wlmi_text *report, wlmi_text *kept_as,
                             wlmi_store_repair_result *result) {
  wlm_store *damaged = NULL, *fresh = NULL;
  wlmi_text fresh_path = {0};
  wlm_status status;
  int made = 0, fd;
  *result = (wlmi_store_repair_result){0};
  wlmi_text_puts(kept_as, "");
  WLM_TRY(wlmi_store_open_damaged(path, &damaged));
  status = wlmi_store_check(damaged, report);
  if (status != WLM_ERR_DATABASE) goto done; /* undamaged, or an error that is not the file's */
  damaged->whole_only = 1;
  const char *file = wlmi_store_path(damaged); /* where `path` is a symbolic link, its target */
  WLM_TRY(lock(damaged));
  WLM_TRY(wlmi_private_fresh(file, 1, &fresh_path, &fd));
  close(fd);
  made = 1;
  WLM_TRY(wlmi_store_open(fresh_path.data, WLMI_STORE_WRITE, &fresh));
  WLM_TRY(salvage_into(damaged, fresh, result));
  wlmi_store_close(fresh);
  fresh = NULL;
  WLM_TRY(wlmi_path_replace_damaged(fresh_path.data, file, kept_as));
  made = 0;
done:
  wlmi_store_close(fresh);
  wlmi_store_close(damaged);
  if (made) unlink(fresh_path.data);
  wlmi_text_release(&fresh_path);
  return status;
}

/* ---- pruning ---- */

/* Deletes measurements, on request only; no other code deletes any. */
static const char orphans_sql[] =
    "DELETE FROM device WHERE id NOT IN (SELECT device FROM measurement);"
    "DELETE FROM matrix WHERE id NOT IN (SELECT matrix FROM measurement);"
    "DELETE FROM variant WHERE id NOT IN (SELECT variant FROM measurement);";

static wlm_status remove_one(sqlite3_stmt *statement, const wlmi_measurement_record *record) {
  char id[WLMI_HASH_HEX];
  WLM_CHECK(wlmi_measurement_id(record, id));
  wlmi_sqlite_bind_text(statement, 1, id);
  return wlmi_sqlite_execute(statement);
}

static wlm_status prune_class(const wlmi_class *class, int64_t keep, sqlite3_stmt *statement, int64_t *removed) {
  char *gone = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(class->count, 1, "measurements", (void **)&gone));
  WLM_TRY(wlmi_class_superfluous(class, keep, gone));
  for (int64_t i = 0; i < class->count; i++) {
    if (!gone[i]) continue;
    WLM_TRY(remove_one(statement, &class->records[i]));
    ++*removed;
  }
done:
  wlmi_free(gone);
  return status;
}

/* Reads and deletes in one transaction, so that measurements which other processes add meanwhile are not affected. */
wlm_status wlmi_store_prune(wlm_store *store, int64_t keep, int64_t *removed) {
  wlmi_measurement_record *records = NULL;
  wlmi_class *classes = NULL;
  sqlite3_stmt *statement = NULL;
  int64_t count = 0, class_count = 0, gone = 0;
  wlm_status status;
  *removed = 0;
  WLM_TRY(wlmi_store_writable(store));
  WLM_TRY(wlmi_sqlite_prepare(store->db, "DELETE FROM measurement WHERE id = ?1", &statement));
  WLM_TRY(wlmi_sqlite_begin(store->db));
  status = wlmi_store_load(store, NULL, &records, &count);
  if (status == WLM_OK) status = wlmi_classes_make(records, count, &classes, &class_count);
  for (int64_t i = 0; i < class_count && status == WLM_OK; i++)
    status = prune_class(&classes[i], keep, statement, &gone);
  if (status == WLM_OK) status = wlmi_sqlite_run(store->db, orphans_sql);
  WLM_TRY(wlmi_sqlite_end(store->db, status));
  *removed = gone;
  if (wlmi_sqlite_run(store->db, "VACUUM") != WLM_OK)
    wlmi_log(WLM_LOG_WARNING, "pruned, but the room is given back only to what is stored next: %s", wlm_error_detail());
done:
  sqlite3_finalize(statement);
  wlmi_classes_free(classes, class_count);
  wlmi_measurements_free(records, count);
  return status;
}
