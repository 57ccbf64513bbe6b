/* The only place that deletes measurements, and only when asked to. */
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "db/classes.h"
#include "db/store_state.h"

static const char orphans_sql[] =
    "DELETE FROM device WHERE id NOT IN (SELECT device FROM measurement);"
    "DELETE FROM matrix WHERE id NOT IN (SELECT matrix FROM measurement);"
    "DELETE FROM variant WHERE id NOT IN (SELECT variant FROM measurement);";

static wlm_status remove_one(sqlite3_stmt *statement, const wlm_measurement_record *record) {
  char id[WLM_HASH_HEX];
  wlm_status status = wlm_measurement_id(record, id);
  if (status != WLM_OK) return status;
  wlm_sqlite_bind_text(statement, 1, id);
  return wlm_sqlite_execute(statement);
}

/* ---- the quickest ones ------------------------------------------------------------------------- */

static const wlm_choice *case_of(const wlm_class *class, const wlm_measurement_record *r) {
  for (int64_t i = 0; i < class->choices.matrix_count; i++) {
    const wlm_choice *c = &class->choices.matrices[i];
    if (c->n == r->n && !strcmp(c->problem, r->problem) &&
        !memcmp(c->stats->fingerprint, r->stats.fingerprint, sizeof r->stats.fingerprint))
      return c;
  }
  return NULL;
}

/* Candidates that work come by rising cost, those without preparing first, those with it behind them. */
static int is_beaten(const wlm_choice *c, const char *variant, int64_t keep) {
  int64_t plain = 0, prepared = 0;
  for (int64_t i = 0; i < c->count; i++) {
    const int64_t before = c->candidates[i].prepare > 0 ? prepared++ : plain++;
    if (!strcmp(c->candidates[i].variant, variant)) return before >= keep;
  }
  return 1; /* it failed */
}

static void mark_beaten(const wlm_class *class, int64_t keep, char *beaten) {
  for (int64_t i = 0; i < class->count; i++) {
    const wlm_choice *c = case_of(class, &class->records[i]);
    const int cold = wlm_measurement_is_cold(&class->records[i]); /* which choices pass over */
    if (cold || (c && is_beaten(c, class->records[i].variant, keep))) beaten[i] = 1;
  }
}

/* ---- deleting ------------------------------------------------------------------------------------ */

static wlm_status prune_class(const wlm_class *class, int64_t keep, sqlite3_stmt *statement, int64_t *removed) {
  char *gone = NULL;
  wlm_status status;
  WLM_TRY(wlm_alloc_array(class->count, 1, "measurements", (void **)&gone));
  WLM_TRY(wlm_choices_superseded(class->records, class->count, gone));
  if (keep) mark_beaten(class, keep, gone);
  for (int64_t i = 0; i < class->count; i++) {
    if (!gone[i]) continue;
    WLM_TRY(remove_one(statement, &class->records[i]));
    ++*removed;
  }
done:
  wlm_free(gone);
  return status;
}

/* Reads and deletes in one transaction, so that what others add meanwhile is not judged by what was there before. */
wlm_status wlm_store_prune(wlm_store *store, int64_t keep, int64_t *removed) {
  wlm_measurement_record *records = NULL;
  wlm_class *classes = NULL;
  sqlite3_stmt *statement = NULL;
  int64_t count = 0, class_count = 0, gone = 0;
  wlm_status status;
  *removed = 0;
  WLM_TRY(wlm_store_writable(store));
  WLM_TRY(wlm_sqlite_prepare(store->db, "DELETE FROM measurement WHERE id = ?1", &statement));
  WLM_TRY(wlm_sqlite_begin(store->db));
  status = wlm_store_load(store, NULL, &records, &count);
  if (status == WLM_OK) status = wlm_classes_make(records, count, &classes, &class_count);
  for (int64_t i = 0; i < class_count && status == WLM_OK; i++)
    status = prune_class(&classes[i], keep, statement, &gone);
  if (status == WLM_OK) status = wlm_sqlite_run(store->db, orphans_sql);
  WLM_TRY(wlm_sqlite_end(store->db, status));
  *removed = gone;
  if (wlm_sqlite_run(store->db, "VACUUM") != WLM_OK)
    wlm_log(WLM_LOG_WARNING, "pruned, but the room is given back only to what is stored next: %s", wlm_error_detail());
done:
  sqlite3_finalize(statement);
  wlm_classes_free(classes, class_count);
  wlm_measurements_free(records, count);
  return status;
}
