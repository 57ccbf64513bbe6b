#include "db/pin.h"

#include <string.h>

#include "common/bucket.h"
#include "common/memory.h"
#include "db/store_state.h"

static const char put_sql[] =
    "INSERT INTO pin (class, bucket, problem, n, variant) VALUES (?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT DO UPDATE SET variant = excluded.variant";
static const char remove_sql[] = "DELETE FROM pin WHERE class = ?1 AND bucket = ?2 AND problem = ?3 AND n = ?4";
static const char select_sql[] =
    "SELECT class, bucket, problem, n, variant FROM pin WHERE ?1 IS NULL OR class = ?1"
    " ORDER BY class, bucket, problem, n";

wlm_status wlmi_pin_check(const wlmi_pin_record *pin) {
  const struct {
    const char *key, *text;
  } texts[] = {{"pin", pin->place}, {"class", pin->device_class}, {"problem", pin->problem}, {"variant", pin->variant}};
  wlmi_bucket bucket;
  wlmi_hash fingerprint;
  char printed[WLM_BUCKET_TEXT];
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (!texts[i].text || !*texts[i].text || !wlmi_is_utf8(texts[i].text))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s must be a string that is not empty", texts[i].key);
  const int is_bucket = wlmi_bucket_parse(pin->place, &bucket);
  if (is_bucket)
    wlmi_bucket_print(&bucket, printed);
  else if (wlmi_hash_from_hex(pin->place, &fingerprint))
    wlmi_hash_to_hex(fingerprint, printed);
  else
    *printed = 0;
  if (strcmp(printed, pin->place))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "pin must be a bucket, \"v1 rows=14 mean=6 cv=0\", or a fingerprint of 32 lower-case hexadecimal "
                     "digits");
  if (is_bucket && wlmi_bucket_fault(&bucket))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "pin %s: %s", pin->place, wlmi_bucket_fault(&bucket));
  return pin->n >= 0 ? WLM_OK : wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "n must be an integer of at least 0");
}

void wlmi_pin_json(const wlmi_pin_record *pin, wlmi_text *out) {
  wlmi_text_puts(out, "{\"pin\":");
  wlmi_text_json_string(out, pin->place);
  wlmi_text_puts(out, ",\"class\":");
  wlmi_text_json_string(out, pin->device_class);
  wlmi_text_puts(out, ",\"problem\":");
  wlmi_text_json_string(out, pin->problem);
  wlmi_text_printf(out, ",\"n\":%lld,\"variant\":", (long long)pin->n);
  wlmi_text_json_string(out, pin->variant);
  wlmi_text_puts(out, "}");
}

int wlmi_pin_compare(const wlmi_pin_record *a, const wlmi_pin_record *b) {
  int order = strcmp(a->device_class, b->device_class);
  if (!order) order = strcmp(a->place, b->place);
  if (!order) order = strcmp(a->problem, b->problem);
  return order ? order : (a->n > b->n) - (a->n < b->n);
}

static void release(wlmi_pin_record *pin) {
  wlmi_free(pin->device_class);
  wlmi_free(pin->place);
  wlmi_free(pin->problem);
  wlmi_free(pin->variant);
}

wlm_status wlmi_pin_copy(const wlmi_pin_record *pin, wlmi_pin_record *copy) {
  *copy = (wlmi_pin_record){wlmi_strdup(pin->device_class), wlmi_strdup(pin->place), wlmi_strdup(pin->problem), pin->n,
                            wlmi_strdup(pin->variant)};
  if (copy->device_class && copy->place && copy->problem && copy->variant) return WLM_OK;
  release(copy);
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "copy of a pin");
}

void wlmi_pins_free(wlmi_pin_record *pins, int64_t count) {
  for (int64_t i = 0; i < count; i++) release(&pins[i]);
  wlmi_free(pins);
}

/* ---- in a store ---- */

/* Runs one of the statements above with the pin's values. */
static wlm_status run(wlm_store *store, const char *sql, const wlmi_pin_record *pin) {
  sqlite3_stmt *statement = NULL;
  wlm_status status;
  WLM_TRY(wlmi_pin_check(pin));
  WLM_TRY(wlmi_store_writable(store));
  WLM_TRY(wlmi_sqlite_prepare(store->db, sql, &statement));
  wlmi_sqlite_bind_text(statement, 1, pin->device_class);
  wlmi_sqlite_bind_text(statement, 2, pin->place);
  wlmi_sqlite_bind_text(statement, 3, pin->problem);
  sqlite3_bind_int64(statement, 4, pin->n);
  if (sqlite3_bind_parameter_count(statement) > 4) wlmi_sqlite_bind_text(statement, 5, pin->variant);
  status = wlmi_sqlite_execute(statement);
done:
  sqlite3_finalize(statement);
  return status;
}

wlm_status wlmi_store_pin(wlm_store *store, const wlmi_pin_record *pin) { return run(store, put_sql, pin); }

wlm_status wlmi_store_unpin(wlm_store *store, const wlmi_pin_record *pin) {
  wlm_status status = run(store, remove_sql, pin);
  if (status != WLM_OK || sqlite3_changes(store->db)) return status;
  return wlmi_fail(WLM_ERR_NOT_FOUND, "%s: nothing is pinned for %s, %s, n = %lld on %s; 'warploom db list' shows pins",
                   wlmi_store_path(store), pin->place, pin->problem, (long long)pin->n, pin->device_class);
}

static wlm_status read_pin(const wlm_store *store, sqlite3_stmt *row, void *copy) {
  const wlmi_pin_record pin = {(char *)wlmi_sqlite_text(row, 0), (char *)wlmi_sqlite_text(row, 1),
                               (char *)wlmi_sqlite_text(row, 2), sqlite3_column_int64(row, 3),
                               (char *)wlmi_sqlite_text(row, 4)};
  if (wlmi_pin_check(&pin) == WLM_OK) return wlmi_pin_copy(&pin, copy);
  wlmi_text fault = {0};
  wlmi_text_puts(&fault, wlm_error_detail());
  wlm_status status = wlmi_fail(WLM_ERR_DATABASE, "%s: the pin of %s for %s is damaged (%s); run 'warploom db check'",
                                wlmi_store_path(store), pin.variant, pin.place, fault.data ? fault.data : "");
  wlmi_text_release(&fault);
  return status;
}

static wlm_status load(wlm_store *store, const char *device_class, int whole_only, wlmi_pin_record **pins,
                       int64_t *count) {
  static const wlmi_row_reader reader = {select_sql, "pins", sizeof **pins, read_pin};
  wlm_status status = wlmi_store_read_rows(store, &reader, device_class, whole_only, (void **)pins, count);
  if (status == WLM_OK) return WLM_OK;
  wlmi_pins_free(*pins, *count);
  *pins = NULL;
  *count = 0;
  return status;
}

wlm_status wlmi_store_load_pins(wlm_store *store, const char *device_class, wlmi_pin_record **pins, int64_t *count) {
  return load(store, device_class, 0, pins, count);
}

wlm_status wlmi_store_salvage_pins(wlm_store *store, wlmi_pin_record **pins, int64_t *count) {
  return load(store, NULL, 1, pins, count);
}
