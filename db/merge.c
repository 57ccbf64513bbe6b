/* Adds contents to a store, and merges stores. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/path.h"
#include "core/base/private_file.h"
#include "core/base/private_folder.h"
#include "db/store_state.h"

wlm_status wlmi_content_load(wlm_store *store, wlmi_content *content) {
  *content = (wlmi_content){0};
  wlm_status status = wlmi_store_load(store, NULL, &content->records, &content->count);
  if (status == WLM_OK) status = wlmi_store_load_pins(store, NULL, &content->pins, &content->pin_count);
  if (status == WLM_OK) status = wlmi_store_load_recorded(store, NULL, &content->recorded, &content->recorded_count);
  if (status != WLM_OK) wlmi_content_release(content);
  return status;
}

/* ---- adding ---- */

static const wlmi_pin_record *find_pin(const wlmi_pin_record *pins, int64_t count, const wlmi_pin_record *like) {
  for (int64_t i = 0; i < count; i++)
    if (!wlmi_pin_compare(&pins[i], like)) return &pins[i];
  return NULL;
}

/* Adds pins, unless one for the same exists: among contradicting pins the first one stays. */
static wlm_status add_pins(wlm_store *store, const wlmi_content *content, wlmi_text *conflicts) {
  wlmi_pin_record *mine = NULL;
  int64_t count = 0;
  wlm_status status;
  if (!content->pin_count) return WLM_OK;
  WLM_TRY(wlmi_store_load_pins(store, NULL, &mine, &count));
  for (int64_t i = 0; i < content->pin_count; i++) {
    const wlmi_pin_record *pin = &content->pins[i], *other = find_pin(mine, count, pin);
    if (!other) other = find_pin(content->pins, i, pin);
    if (!other) WLM_TRY(wlmi_store_pin(store, pin));
    if (other && strcmp(other->variant, pin->variant) && conflicts)
      wlmi_text_printf(conflicts, "pin of %s, %s, n = %lld on %s: %s is kept, %s is not\n", pin->target, pin->problem,
                       (long long)pin->n, pin->device_class, other->variant, pin->variant);
  }
  if (conflicts && conflicts->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "list of conflicts");
done:
  wlmi_pins_free(mine, count);
  return status;
}

/* Adds one content within the caller's transaction. */
static wlm_status add_one(wlm_store *store, const wlmi_content *content, wlmi_text *conflicts, int64_t *fresh) {
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < content->count && status == WLM_OK; i++)
    status = wlmi_store_put_one(store, &content->records[i], fresh);
  if (status == WLM_OK) status = add_pins(store, content, conflicts);
  for (int64_t i = 0; i < content->recorded_count && status == WLM_OK; i++)
    status = wlmi_store_record_one(store, &content->recorded[i]);
  return status;
}

/* Adds all contents in one transaction. */
static wlm_status add_all(wlm_store *store, const wlmi_content *contents, int64_t count, wlmi_text *conflicts,
                          int64_t *added) {
  int64_t fresh = 0;
  if (added) *added = 0;
  wlm_status status = wlmi_store_writable(store);
  if (status == WLM_OK) status = wlmi_sqlite_begin(store->db);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < count && status == WLM_OK; i++) status = add_one(store, &contents[i], conflicts, &fresh);
  status = wlmi_sqlite_end(store->db, status);
  if (status == WLM_OK && added) *added = fresh;
  return status;
}

wlm_status wlmi_store_add(wlm_store *store, const wlmi_content *content, wlmi_text *conflicts, int64_t *added) {
  return add_all(store, content, 1, conflicts, added);
}

wlm_status wlmi_store_put(wlm_store *store, const wlmi_measurement_record *records, int64_t count) {
  const wlmi_content content = {.records = (wlmi_measurement_record *)records, .count = count};
  return wlmi_store_add(store, &content, NULL, NULL);
}

/* ---- merging files ---- */

static wlm_status load_file(const char *path, wlmi_content *content) {
  wlm_store *store;
  wlm_status status = wlmi_store_open(path, WLM_STORE_READ, &store);
  if (status == WLM_OK) status = wlmi_content_load(store, content);
  wlmi_store_close(store);
  return status;
}

/* Writes under a temporary name first, so a file with the requested name is always complete. */
static wlm_status write_new(const wlmi_content *contents, int64_t count, const char *path, wlmi_text *conflicts,
                            int64_t *measurements) {
  wlmi_text fresh = {0}, real = {0};
  wlm_store *store = NULL;
  int fd = -1;
  wlm_status status;
  WLM_TRY(wlmi_private_path(path, 0, &real, NULL));
  WLM_TRY(wlmi_private_fresh(real.data, 1, &fresh, &fd));
  close(fd);
  WLM_TRY(wlmi_store_open(fresh.data, WLM_STORE_WRITE, &store));
  WLM_TRY(add_all(store, contents, count, conflicts, measurements));
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

wlm_status wlmi_store_merge_files(const char *const *sources, int64_t source_count, const char *path,
                                  wlmi_text *conflicts, int64_t *measurements) {
  wlmi_content *contents = NULL;
  struct stat info;
  wlm_status status;
  *measurements = 0;
  if (!lstat(path, &info))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: exists already; name a new file to merge into", path);
  WLM_TRY(wlmi_alloc_array(source_count, sizeof *contents, "databases to merge", (void **)&contents));
  memset(contents, 0, (size_t)source_count * sizeof *contents);
  for (int64_t i = 0; i < source_count; i++) WLM_TRY(load_file(sources[i], &contents[i]));
  status = write_new(contents, source_count, path, conflicts, measurements);
done:
  for (int64_t i = 0; contents && i < source_count; i++) wlmi_content_release(&contents[i]);
  wlmi_free(contents);
  return status;
}
