#include "core/base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/base/private_folder.h"

wlm_status wlmi_private_fresh(const char *path, int is_private, wlmi_text *fresh, int *fd) {
  const size_t start = fresh->size;
  unsigned long long number;
  *fd = -1;
  for (int tries = 0; *fd < 0 && tries < 8; tries++) {
    if (getrandom(&number, sizeof number, 0) != sizeof number)
      return wlmi_fail(WLM_ERR_IO, "%s: no random name for a file beside it: %s", path, strerror(errno));
    if (fresh->data) fresh->data[fresh->size = start] = 0;
    wlmi_text_printf(fresh, "%s.tmp-%016llx", path, number);
    if (fresh->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", path);
    *fd = open(fresh->data + start, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, is_private ? 0600 : 0666);
    if (*fd < 0 && errno != EEXIST) break;
  }
  if (*fd >= 0 && (!is_private || !fchmod(*fd, 0600))) return WLM_OK;
  const wlm_status status = wlmi_fail(WLM_ERR_IO, "%s: cannot open for writing: %s", path, strerror(errno));
  if (*fd >= 0) {
    close(*fd);
    unlink(fresh->data + start);
  }
  return status;
}

/* Creates the file under a temporary name. Closing any descriptor of a file drops all locks of this process on it, so
 * no other code may open the file before this descriptor is closed. */
wlm_status wlmi_private_make(const char *path) {
  wlmi_text fresh = {0};
  struct stat info;
  int fd;
  if (!lstat(path, &info)) return WLM_OK;
  wlm_status status = wlmi_private_fresh(path, 1, &fresh, &fd);
  if (status != WLM_OK) goto done;
  close(fd);
  if (link(fresh.data, path) && errno != EEXIST && /* a file system without hard links */
      lstat(path, &info) && rename(fresh.data, path))
    status = wlmi_fail(WLM_ERR_IO, "%s: cannot be made: %s", path, strerror(errno));
  unlink(fresh.data);
done:
  wlmi_text_release(&fresh);
  return status;
}

static int others_write(const struct stat *info) { return info->st_mode & (S_IWGRP | S_IWOTH); }

wlm_status wlmi_private_check(const char *path, const struct stat *file) {
  if (wlmi_is_foreign(file->st_uid))
    return wlmi_fail(WLM_ERR_IO,
                     "%s: belongs to another user (uid %ld) and is not used; use a copy of your own, or name another",
                     path, (long)file->st_uid);
  if (others_write(file))
    return wlmi_fail(WLM_ERR_IO, "%s: others may write to it (mode %04o), so it is not used; run 'chmod go-w %s'", path,
                     (unsigned)file->st_mode & 07777, path);
  return WLM_OK;
}

wlm_status wlmi_private_open(const char *path, int is_shipped, int *fd, int64_t *size) {
  wlmi_text real = {0};
  struct stat info;
  wlm_status status = WLM_OK;
  int is_shared;
  if (stat(path, &info)) {
    if (errno == ENOENT) return wlmi_fail(WLM_ERR_NOT_FOUND, "%s: no such file", path);
    return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) return wlmi_fail(WLM_ERR_DATABASE, "%s: is not an ordinary file; name another", path);
  if (!is_shipped) WLM_TRY(wlmi_private_path(path, 0, &real, &is_shared));
  *fd = open(is_shipped ? path : real.data, O_RDONLY | O_CLOEXEC);
  if (*fd < 0 || fstat(*fd, &info)) WLM_TRY(wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno)));
  *size = info.st_size;
  if (!is_shipped) status = wlmi_private_check(path, &info);
done:
  wlmi_text_release(&real);
  return status;
}
