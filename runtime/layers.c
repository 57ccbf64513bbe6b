#include "runtime/layers.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/memory.h"
#include "db/database.h"
#include "db/interchange.h"

/* ---- kinds of files ---- */

/* Waits as a writer does, because a layer that cannot be read is an error. */
static wlm_status open_database(const char *path, wlm_store **store) {
  return wlmi_store_open(path, WLMI_STORE_READ_PATIENT, store);
}

/* By the first bytes of a file; in a folder only those with the ending count. */
static const struct kind {
  const char *begin, *ending;
  wlm_status (*open)(const char *path, wlm_store **store); /* NULL = a kernel archive */
} kinds[] = {
    {"SQLite format 3", ".db", open_database}, {"{", ".jsonl", wlmi_store_open_lines}, {"wlmkerns", ".archive", NULL}};
enum { KINDS = sizeof kinds / sizeof *kinds, LONGEST_BEGIN = 16 };

static wlm_status find_kind(const char *path, const struct kind **kind) {
  char begin[LONGEST_BEGIN];
  WLM_CHECK(wlmi_database_peek(path, begin, sizeof begin));
  for (int i = 0; i < KINDS; i++)
    if (!memcmp(begin, kinds[i].begin, strlen(kinds[i].begin))) return *kind = &kinds[i], WLM_OK;
  return wlmi_fail(
      WLM_ERR_PARSE,
      "%s: is neither an export of warploom, nor a tuning database, nor a kernel archive; name another file", path);
}

/* ---- files and folders ---- */

/* What is found, the last that was named first. */
typedef struct finding {
  wlmi_layers *layers;
  wlmi_archives *archives;
} finding;

static wlm_status add_file(const finding *f, const char *path) {
  wlmi_layers *l = f->layers;
  const struct kind *kind = NULL;
  WLM_CHECK(find_kind(path, &kind));
  if (!kind->open) return wlmi_archives_add(f->archives, path, 0);
  WLM_CHECK(wlmi_grow((void **)&l->list, l->count, &l->capacity, sizeof *l->list, "layers"));
  l->list[l->count] = (wlmi_layer){wlmi_strdup(path), kind->open};
  if (!l->list[l->count].path) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", path);
  l->count++;
  return WLM_OK;
}

static int has_known_ending(const struct dirent *entry) {
  const size_t size = strlen(entry->d_name);
  for (int i = 0; i < KINDS; i++) {
    const size_t length = strlen(kinds[i].ending);
    if (size > length && !strcmp(entry->d_name + size - length, kinds[i].ending)) return 1;
  }
  return 0;
}

static int by_falling_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*b)->d_name, (*a)->d_name);
}

static wlm_status add_folder(const finding *f, const char *path) {
  struct dirent **entries = NULL;
  wlm_status status = WLM_OK;
  const int count = scandir(path, &entries, has_known_ending, by_falling_name);
  if (count < 0) return wlmi_fail(WLM_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
  if (!count)
    status =
        wlmi_fail(WLM_ERR_NOT_FOUND, "%s: has no file that ends in .db, .jsonl or .archive; name another folder", path);
  for (int i = 0; i < count; i++) {
    wlmi_text file = {0};
    wlmi_text_printf(&file, "%s/%s", path, entries[i]->d_name);
    if (status == WLM_OK)
      status = file.failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", path) : add_file(f, file.data);
    wlmi_text_release(&file);
    free(entries[i]);
  }
  free(entries);
  return status;
}

static wlm_status add_path(const finding *f, const char *path) {
  struct stat info;
  if (!path || !*path) return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "the path of a layer is empty");
  if (stat(path, &info))
    return wlmi_fail(errno == ENOENT ? WLM_ERR_NOT_FOUND : WLM_ERR_IO, "%s: %s", path, strerror(errno));
  return S_ISDIR(info.st_mode) ? add_folder(f, path) : add_file(f, path);
}

wlm_status wlmi_layers_find(const char *const *paths, int64_t count, wlmi_layers *layers, wlmi_archives *archives) {
  const finding f = {layers, archives};
  wlm_status status = WLM_OK;
  if (count < 0 || (count && !paths))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_context_options.layers: %lld paths at NULL", (long long)count);
  for (int64_t i = count; i-- > 0 && status == WLM_OK;) status = add_path(&f, paths[i]);
  return status;
}

void wlmi_layers_release(wlmi_layers *layers) {
  for (int64_t i = 0; i < layers->count; i++) wlmi_free(layers->list[i].path);
  wlmi_free(layers->list);
  *layers = (wlmi_layers){0};
}
