/* Merges stores. The measurements of all files are read in the order of their ids and appended to the new file in this
 * order. Each is verified: its id must be the hash of its line (core/records/record.h). The members of devices,
 * matrices and variants in that line are printed once for each of them. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/path.h"
#include "core/base/private_file.h"
#include "core/records/record.h"
#include "db/parts.h"

enum { PARTS = WLMI_TABLE_MEASUREMENT }; /* the tables before it */

static const wlmi_query in_order = {"SELECT id, device, matrix, variant", WLM_OF(WLMI_TABLE_MEASUREMENT),
                                    " FROM measurement ORDER BY id"};
enum { ID, FIRST_PART, FIRST_FIELD = FIRST_PART + PARTS };

/* The rows of the table device, matrix or variant of a file. */
typedef struct table {
  wlmi_parts rows;
  wlmi_text *members; /* of each row, as in a line; size 0 where its id is wrong */
  char *is_stored;
} table;

typedef struct source {
  wlm_store *store;
  sqlite3_stmt *row;
  const char *id; /* of the present measurement; NULL behind the last */
  wlmi_strings texts;
  table tables[PARTS];
} source;

static wlm_status read_table(source *s, wlmi_field_table t) {
  table *into = &s->tables[t];
  WLM_CHECK(wlmi_parts_read(s->store, t, &s->texts, &into->rows));
  into->members = wlmi_alloc_zero((size_t)into->rows.count + 1, sizeof *into->members);
  into->is_stored = wlmi_alloc_zero((size_t)into->rows.count + 1, 1);
  if (!into->members || !into->is_stored) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "databases to merge");
  for (int64_t i = 0; i < into->rows.count; i++) {
    wlmi_text *members = &into->members[i];
    char id[WLMI_HASH_HEX];
    wlmi_measurement_members(&into->rows.records[i], t, members);
    if (members->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "databases to merge");
    wlmi_members_id(members, id);
    if (strcmp(id, into->rows.ids[i])) members->size = 0;
  }
  return WLM_OK;
}

static wlm_status step(source *s) {
  int more;
  const wlm_status status = wlmi_sqlite_step(s->row, &more);
  s->id = status == WLM_OK && more ? wlmi_sqlite_text(s->row, ID) : NULL;
  return status;
}

/* Reads in one transaction, so that the tables are consistent; it ends when the file is closed. */
static wlm_status open_source(const char *path, source *s) {
  WLM_CHECK(wlmi_store_open(path, WLMI_STORE_READ, &s->store));
  WLM_CHECK(wlmi_sqlite_run(s->store->db, "BEGIN"));
  for (int t = 0; t < PARTS; t++) WLM_CHECK(read_table(s, (wlmi_field_table)t));
  WLM_CHECK(wlmi_query_prepare(s->store->db, &in_order, &s->row));
  return step(s);
}

static void close_source(source *s) {
  sqlite3_finalize(s->row);
  wlmi_store_close(s->store);
  for (int t = 0; t < PARTS; t++) {
    for (int64_t i = 0; s->tables[t].members && i < s->tables[t].rows.count; i++)
      wlmi_text_release(&s->tables[t].members[i]);
    wlmi_free(s->tables[t].members);
    wlmi_free(s->tables[t].is_stored);
    wlmi_parts_release(&s->tables[t].rows);
  }
  wlmi_strings_release(&s->texts);
}

/* Finds the parts of the present measurement and fills the record, whose texts live until the next step. `line` is room
 * for its line. WLM_ERR_DATABASE if it is damaged. */
static wlm_status read_present(const source *s, wlmi_text *line, int64_t parts[PARTS],
                               wlmi_measurement_record *record) {
  const wlmi_measurement_record *of[PARTS];
  char id[WLMI_HASH_HEX];
  line->size = 0;
  for (int t = 0; t < PARTS; t++) {
    const table *in = &s->tables[t];
    parts[t] = wlmi_parts_find(&in->rows, wlmi_sqlite_text(s->row, FIRST_PART + t));
    if (parts[t] < 0 || !in->members[parts[t]].size) return wlmi_store_damaged(s->store, s->id);
    of[t] = &in->rows.records[parts[t]];
    wlmi_text_append(line, in->members[parts[t]].data, in->members[parts[t]].size);
  }
  const int fits = wlmi_fields_read(s->row, FIRST_FIELD, in_order.of, record);
  wlmi_measurement_members(record, WLMI_TABLE_MEASUREMENT, line);
  if (line->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "canonical line of a measurement");
  wlmi_members_id(line, id);
  if (!fits || strcmp(id, s->id)) return wlmi_store_damaged(s->store, s->id);
  record->device = of[WLMI_TABLE_DEVICE]->device;
  record->matrix_name = of[WLMI_TABLE_MATRIX]->matrix_name;
  record->stats = of[WLMI_TABLE_MATRIX]->stats;
  record->variant = of[WLMI_TABLE_VARIANT]->variant;
  record->version = of[WLMI_TABLE_VARIANT]->version;
  return wlmi_measurement_check(record);
}

/* Writes a part that no measurement of this file has referred to yet. */
static wlm_status store_part(wlm_store *store, table *from, int t, int64_t row) {
  const wlmi_measurement_record *record = &from->rows.records[row];
  wlmi_text class = {0};
  if (from->is_stored[row]) return WLM_OK;
  from->is_stored[row] = 1;
  if (t == WLMI_TABLE_DEVICE) wlmi_device_class(&record->device, &class);
  if (class.failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "class of a device");
  const char *const keys[] = {from->rows.ids[row], class.data, NULL};
  const wlm_status status = wlmi_insert_run(store->insert[t], keys, WLM_OF(t), record);
  wlmi_text_release(&class);
  return status;
}

static wlm_status store_present(wlm_store *store, source *s, wlmi_text *line, int64_t *added) {
  wlmi_measurement_record record;
  int64_t parts[PARTS];
  const char *keys[PARTS + 2] = {s->id};
  WLM_CHECK(wlmi_sqlite_read(s->row, read_present(s, line, parts, &record)));
  for (int t = 0; t < PARTS; t++) {
    WLM_CHECK(store_part(store, &s->tables[t], t, parts[t]));
    keys[1 + t] = s->tables[t].rows.ids[parts[t]];
  }
  WLM_CHECK(wlmi_insert_run(store->insert[WLMI_TABLE_MEASUREMENT], keys, in_order.of, &record));
  *added += sqlite3_changes(store->db);
  return WLM_OK;
}

/* Adds all measurements in the order of their ids. */
static wlm_status add_measurements(wlm_store *store, source *sources, int64_t count, int64_t *added) {
  wlmi_text line = {0};
  wlm_status status = WLM_OK;
  for (;;) {
    source *least = NULL;
    for (int64_t i = 0; i < count; i++)
      if (sources[i].id && (!least || strcmp(sources[i].id, least->id) < 0)) least = &sources[i];
    if (!least) break;
    WLM_TRY(store_present(store, least, &line, added));
    WLM_TRY(step(least));
  }
done:
  wlmi_text_release(&line);
  return status;
}

static wlm_status add_all(wlm_store *store, source *sources, int64_t count, wlmi_text *conflicts, int64_t *added) {
  int64_t fresh = 0, models = 0;
  WLM_CHECK(wlmi_store_begin(store));
  wlm_status status = add_measurements(store, sources, count, &fresh);
  for (int64_t i = count; i-- > 0 && status == WLM_OK;) /* the first file's models are written last and stay */
    status = wlmi_store_copy_models(sources[i].store, store, &models);
  for (int64_t i = 0; i < count && status == WLM_OK; i++)
    status = wlmi_store_copy_rest(sources[i].store, store, conflicts);
  status = wlmi_store_end(store, status);
  *added = status == WLM_OK ? fresh : 0;
  return status;
}

/* Writes under a temporary name first, so a file with the requested name is always complete. */
static wlm_status write_new(source *sources, int64_t count, const char *path, wlmi_text *conflicts,
                            int64_t *measurements) {
  wlmi_text fresh = {0}, real = {0};
  wlm_store *store = NULL;
  int fd = -1;
  wlm_status status;
  WLM_TRY(wlmi_private_path(path, 0, &real, NULL));
  WLM_TRY(wlmi_private_fresh(real.data, 1, &fresh, &fd));
  close(fd);
  WLM_TRY(wlmi_store_open(fresh.data, WLMI_STORE_WRITE, &store));
  WLM_TRY(add_all(store, sources, count, conflicts, measurements));
  wlmi_store_close(store);
  store = NULL;
  status = wlmi_path_place_new(fresh.data, real.data);
done:
  wlmi_store_close(store);
  if (status != WLM_OK && fd >= 0) unlink(fresh.data);
  if (status != WLM_OK) wlmi_fail_in(status, "%s: nothing was merged", path);
  wlmi_text_release(&real);
  wlmi_text_release(&fresh);
  return status;
}

wlm_status wlmi_store_merge_files(const char *const *paths, int64_t count, const char *path, wlmi_text *conflicts,
                                  int64_t *measurements) {
  source *sources;
  struct stat info;
  wlm_status status = WLM_OK;
  *measurements = 0;
  if (!lstat(path, &info))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: exists already; name a new file to merge into", path);
  sources = wlmi_alloc_zero((size_t)count, sizeof *sources);
  if (!sources) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "databases to merge");
  for (int64_t i = 0; i < count && status == WLM_OK; i++) status = open_source(paths[i], &sources[i]);
  if (status == WLM_OK) status = write_new(sources, count, path, conflicts, measurements);
  for (int64_t i = 0; i < count; i++) close_source(&sources[i]);
  wlmi_free(sources);
  return status;
}
