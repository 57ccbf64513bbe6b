#include "core/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static wlm_status default_path(const char *variable, const char *below_home, const char *file, wlmi_text *out) {
  const char *base = secure_getenv(variable), *home = secure_getenv("HOME");
  struct stat info;
  if (base && base[0] == '/') /* the XDG rules: a relative path is to be ignored */
    wlmi_text_printf(out, "%s/warploom/%s", base, file);
  else if (home && home[0] == '/' && stat(home, &info))
    return wlmi_fail(WLM_ERR_NOT_FOUND,
                     "no folder for %s: HOME is %s, which does not exist; set %s or HOME, or name a "
                     "file",
                     file, home, variable);
  else if (home && home[0] == '/')
    wlmi_text_printf(out, "%s/%s/warploom/%s", home, below_home, file);
  else
    return wlmi_fail(WLM_ERR_NOT_FOUND, "no folder for %s: set %s or HOME to an absolute path, or name a file", file,
                     variable);
  return out->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", file) : WLM_OK;
}

wlm_status wlmi_store_default_path(wlmi_text *out) {
  return default_path("XDG_DATA_HOME", ".local/share", "tuned.db", out);
}

wlm_status wlmi_kernel_cache_default_path(wlmi_text *out) {
  return default_path("XDG_CACHE_HOME", ".cache", "kernels.db", out);
}

/* Some file systems cannot sync a folder, so the result is ignored. */
void wlmi_path_sync_folder(const char *path) {
  wlmi_text folder = {0};
  const char *slash = strrchr(path, '/');
  wlmi_text_append(&folder, path, slash ? (size_t)(slash - path) + 1 : 0);
  int fd = folder.failed ? -1 : open(slash ? folder.data : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    fsync(fd);
    close(fd);
  }
  wlmi_text_release(&folder);
}

/* link() never replaces an existing file. On a file system without hard links rename() would, so the name is checked
 * right before. */
wlm_status wlmi_path_place_new(const char *fresh, const char *path) {
  struct stat info;
  if (!link(fresh, path))
    unlink(fresh);
  else if (errno == EEXIST || !lstat(path, &info))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: exists already; name a new file", path);
  else if (rename(fresh, path))
    return wlmi_fail(WLM_ERR_IO, "%s: cannot rename %s to it: %s", path, fresh, strerror(errno));
  wlmi_path_sync_folder(path);
  return WLM_OK;
}

/* First gives the old file a second name, so `path` exists at every moment. On a file system without hard links the old
 * file is renamed; after a crash at that point both files exist, but none has the name `path`. */
wlm_status wlmi_path_replace_damaged(const char *fresh, const char *path, wlmi_text *kept_as) {
  const size_t start = kept_as->size;
  struct stat info;
  int taken = 1;
  for (int i = 1; taken; i++) {
    if (kept_as->data) kept_as->data[kept_as->size = start] = 0;
    wlmi_text_printf(kept_as, "%s.damaged", path);
    if (i > 1) wlmi_text_printf(kept_as, "-%d", i);
    if (kept_as->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", path);
    taken = !lstat(kept_as->data + start, &info);
  }
  const char *kept = kept_as->data + start;
  if (link(path, kept) && rename(path, kept))
    return wlmi_fail(WLM_ERR_IO, "%s: cannot keep it as %s: %s", path, kept, strerror(errno));
  if (rename(fresh, path))
    return wlmi_fail(WLM_ERR_IO, "%s: cannot rename %s to it: %s; the old file is %s", path, fresh, strerror(errno),
                     kept);
  wlmi_path_sync_folder(path);
  return WLM_OK;
}
