#include "generator/files.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file.h"
#include "core/base/memory.h"
#include "generator/archive.h"
#include "generator/generator.h"

const char *wlmi_archive_find(const char *name, size_t *size) {
  for (int i = 0; i < wlmi_archive_count; i++) {
    if (strcmp(wlmi_archive[i].name, name)) continue;
    *size = (size_t)(wlmi_archive[i].end - wlmi_archive[i].begin);
    return wlmi_archive[i].begin;
  }
  return NULL;
}

static wlmi_hash version;

/* Adds a file, and its name, to what was hashed before. */
static void hash_file(wlmi_hash *hash, const char *name, const char *text, size_t size) {
  const wlmi_hash parts[] = {*hash, wlmi_hash_text(name), wlmi_hash_bytes(text, size)};
  *hash = wlmi_hash_bytes(parts, sizeof parts);
}

static void hash_files(void) {
  for (int i = 0; i < wlmi_archive_count; i++) {
    const struct wlmi_archive_file *file = &wlmi_archive[i];
    hash_file(&version, file->name, file->begin, (size_t)(file->end - file->begin));
  }
}

wlmi_hash wlmi_generator_version(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, hash_files);
  return version;
}

static const char family_file[] = "/family.lua";

static int is_family_file(const char *name) {
  const char *slash = strchr(name, '/');
  return slash && !strcmp(slash, family_file);
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* In any locale the same order. */
static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

wlm_status wlmi_template_names(const char *folder, void (*found)(void *user, const char *name), void *user) {
  if (!folder) {
    for (int i = 0; i < wlmi_archive_count; i++)
      if (is_family_file(wlmi_archive[i].name)) found(user, wlmi_archive[i].name);
    return WLM_OK;
  }
  struct dirent **entries;
  int count = scandir(folder, &entries, is_visible, by_name);
  if (count < 0)
    return wlmi_fail(WLM_ERR_IO, "templates folder %s: %s; set WARPLOOM_TEMPLATES to a folder laid out as templates/",
                     folder, strerror(errno));
  wlmi_text path = {0};
  int families = 0;
  for (int i = 0; i < count; i++) {
    struct stat info;
    path.size = 0;
    wlmi_text_printf(&path, "%s/%s%s", folder, entries[i]->d_name, family_file);
    if (!path.failed && stat(path.data, &info) == 0) {
      found(user, path.data + strlen(folder) + 1);
      families++;
    }
    free(entries[i]);
  }
  free(entries);
  int failed = path.failed;
  wlmi_text_release(&path);
  if (failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of a family");
  return families ? WLM_OK : wlmi_fail(WLM_ERR_NOT_FOUND, "templates folder %s: holds no NAME%s", folder, family_file);
}

/* Adds the files of a folder. One that is not there has none. */
static wlm_status hash_folder(wlmi_hash *hash, const char *folder, const char *name) {
  struct dirent **entries = NULL;
  wlmi_text path = {0};
  wlm_status status = WLM_OK;
  wlmi_text_printf(&path, "%s/%s", folder, name);
  const int count = path.failed ? 0 : scandir(path.data, &entries, is_visible, by_name);
  if (count < 0 && errno != ENOENT)
    status = wlmi_fail(WLM_ERR_IO, "templates folder %s: %s", path.data, strerror(errno));
  for (int i = 0; i < count; i++) {
    struct stat info;
    char *text = NULL;
    size_t size;
    path.size = 0;
    wlmi_text_printf(&path, "%s/%s/%s", folder, name, entries[i]->d_name);
    if (!path.failed && status == WLM_OK && stat(path.data, &info) == 0 && S_ISREG(info.st_mode)) {
      status = wlmi_file_read(path.data, &text, &size);
      if (status == WLM_OK) hash_file(hash, path.data + strlen(folder), text, size);
    }
    wlmi_free(text);
    free(entries[i]);
  }
  free(entries);
  if (path.failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of a template");
  wlmi_text_release(&path);
  return status;
}

wlm_status wlmi_template_hash(const char *folder, const char *family, wlmi_hash *hash) {
  *hash = wlmi_generator_version();
  WLM_CHECK(hash_folder(hash, folder, "prelude"));
  return hash_folder(hash, folder, family);
}

wlm_status wlmi_template_read(const char *folder, const char *name, char **text, size_t *size) {
  if (folder) {
    wlmi_text path = {0};
    wlmi_text_printf(&path, "%s/%s", folder, name);
    wlm_status status =
        path.failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", name) : wlmi_file_read(path.data, text, size);
    wlmi_text_release(&path);
    if (status != WLM_ERR_IO || (strncmp(name, "prelude/", 8) && strncmp(name, "programs/", 9))) return status;
  }
  const char *found = wlmi_archive_find(name, size);
  if (!found) return wlmi_fail(WLM_ERR_NOT_FOUND, "%s: no such template in the library", name);
  *text = wlmi_alloc(*size + 1);
  if (!*text) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s", name);
  memcpy(*text, found, *size);
  (*text)[*size] = 0;
  return WLM_OK;
}
