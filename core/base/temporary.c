#include "core/base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/private_file.h"

#define PREFIX "warploom-run-"

static const time_t old_seconds = 60; /* a folder is locked right after it was made */

static const char *root_folder(void) {
  const char *root = secure_getenv("TMPDIR");
  return root && *root ? root : "/tmp";
}

/* Takes ownership of the descriptor. Removes files only; a folder with subfolders is not warploom's and stays. */
static void remove_files(int folder) {
  DIR *files = fdopendir(folder);
  if (!files) {
    close(folder);
    return;
  }
  for (struct dirent *entry; (entry = readdir(files));)
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) unlinkat(folder, entry->d_name, 0);
  closedir(files);
}

/* Whether a killed process of this user left the folder: it is neither new nor locked. */
static int is_left(int folder) {
  struct stat info;
  return !fstat(folder, &info) && info.st_uid == geteuid() && time(NULL) - info.st_mtime > old_seconds &&
         !flock(folder, LOCK_EX | LOCK_NB);
}

static void remove_left(void) {
  DIR *root = opendir(root_folder());
  for (struct dirent *entry; root && (entry = readdir(root));) {
    if (strncmp(entry->d_name, PREFIX, strlen(PREFIX))) continue;
    const int folder = openat(dirfd(root), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) continue;
    if (is_left(folder)) {
      remove_files(folder);
      unlinkat(dirfd(root), entry->d_name, AT_REMOVEDIR);
    } else {
      close(folder);
    }
  }
  if (root) closedir(root);
}

/* The folder to make, for mkdtemp. Its path has no symbolic links, and no other user can exchange a folder on it. */
static wlm_status find_place(char folder[WLMI_TEMPORARY_NAME]) {
  wlmi_text wanted = {0}, real = {0};
  int is_shared; /* as /tmp is, where others cannot touch this user's folder */
  wlm_status status;
  wlmi_text_printf(&wanted, "%s/" PREFIX "XXXXXX", root_folder());
  if (wanted.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a temporary folder"));
  WLM_TRY(wlmi_private_path(wanted.data, 0, &real, &is_shared));
  if (snprintf(folder, WLMI_TEMPORARY_NAME, "%s", real.data) >= WLMI_TEMPORARY_NAME)
    status = wlmi_fail(WLM_ERR_IO, "%s: the path is too long", root_folder());
done:
  wlmi_text_release(&wanted);
  wlmi_text_release(&real);
  return status;
}

wlm_status wlmi_temporary_open(wlmi_temporary *t) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, remove_left);
  t->lock = -1;
  wlm_status status = find_place(t->folder);
  if (status != WLM_OK) {
    *t->folder = 0;
    return wlmi_fail_in(status, "no temporary folder; set TMPDIR to another place");
  }
  if (!mkdtemp(t->folder)) {
    *t->folder = 0;
    return wlmi_fail(WLM_ERR_IO, "no temporary folder under %s: %s; set TMPDIR", root_folder(), strerror(errno));
  }
  chmod(t->folder, 0700);
  t->lock = open(t->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (t->lock < 0) {
    status = wlmi_fail(WLM_ERR_IO, "no temporary folder: %s: %s", t->folder, strerror(errno));
    rmdir(t->folder);
    *t->folder = 0;
    return status;
  }
  flock(t->lock, LOCK_EX | LOCK_NB);
  return WLM_OK;
}

wlm_status wlmi_temporary_read(const wlmi_temporary *t, const char *name, char **data, size_t *size) {
  return wlmi_file_read_in(t->lock, name, data, size);
}

void wlmi_temporary_close(wlmi_temporary *t) {
  if (!*t->folder) return;
  remove_files(t->lock);
  rmdir(t->folder);
  *t->folder = 0;
}
