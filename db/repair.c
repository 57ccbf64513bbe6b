/* Salvages a damaged store. The ids of the measurements are read from the smallest up to the damage, then from the
 * greatest down, so one bad page loses only its own content. Then each measurement is fetched separately, so a bad page
 * of devices, matrices or variants loses only the measurements that refer to it. Measurements that pass the checks of
 * wlmi_store_check are kept. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/path.h"
#include "core/base/private_file.h"
#include "db/store_state.h"

typedef struct salvage {
  wlm_store *from, *to;
  sqlite3_stmt *one;
  char last[WLM_HASH_HEX]; /* the greatest id read on the way up */
  wlmi_store_repair_result *result;
} salvage;

static int is_whole(sqlite3_stmt *row, wlmi_measurement_record *record) {
  char id[WLM_HASH_HEX];
  return wlmi_fields_read(row, WLM_COLUMN_FIELDS, WLM_OF_ALL, record) && wlmi_measurement_check(record) == WLM_OK &&
         wlmi_measurement_id(record, id) == WLM_OK && !strcmp(id, wlmi_sqlite_text(row, WLM_COLUMN_ID));
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
  wlm_status status;
  int more;
  WLM_TRY(wlmi_sqlite_prepare(s->from->db, sql, &ids));
  for (;;) {
    WLM_TRY(wlmi_sqlite_step(ids, &more));
    const char *id = more ? wlmi_sqlite_text(ids, 0) : "";
    if (!more || (!up && strcmp(id, s->last) <= 0)) break;
    if (up) snprintf(s->last, sizeof s->last, "%s", id);
    WLM_TRY(salvage_one(s, id));
  }
done:
  sqlite3_finalize(ids);
  return status == WLM_ERR_DATABASE ? WLM_OK : status;
}

static wlm_status salvage_models(salvage *s) {
  const wlm_status status = wlmi_store_copy_models(s->from, s->to, &s->result->models);
  return status == WLM_ERR_DATABASE ? WLM_OK : status;
}

static wlm_status salvage_into(wlm_store *from, wlm_store *to, wlmi_store_repair_result *result) {
  salvage s = {.from = from, .to = to, .result = result};
  wlmi_pin_record *pins = NULL;
  wlmi_recorded *recorded = NULL;
  int64_t pin_count = 0, recorded_count = 0;
  wlm_status status;
  WLM_TRY(wlmi_store_prepare_one(from, &s.one));
  WLM_TRY(wlmi_sqlite_begin(to->db));
  status = walk(&s, "SELECT id FROM measurement ORDER BY id", 1);
  if (status == WLM_OK) status = walk(&s, "SELECT id FROM measurement ORDER BY id DESC", 0);
  if (status == WLM_OK) status = wlmi_store_load_pins(from, NULL, &pins, &pin_count);
  for (int64_t i = 0; i < pin_count && status == WLM_OK; i++) status = wlmi_store_pin(to, &pins[i]);
  if (status == WLM_OK) status = wlmi_store_load_recorded(from, NULL, &recorded, &recorded_count);
  for (int64_t i = 0; i < recorded_count && status == WLM_OK; i++) status = wlmi_store_record_one(to, &recorded[i]);
  if (status == WLM_OK) status = salvage_models(&s);
  status = wlmi_sqlite_end(to->db, status);
done:
  sqlite3_finalize(s.one);
  wlmi_pins_free(pins, pin_count);
  wlmi_recorded_free(recorded, recorded_count);
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
  WLM_TRY(wlmi_store_open(fresh_path.data, WLM_STORE_WRITE, &fresh));
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
