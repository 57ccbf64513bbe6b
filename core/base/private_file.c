#include "core/base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

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

/* ---- folders ---- */

/* Walks a path from the root down, as the function safe_path of OpenSSH does, and follows symbolic links on the way. */

/* Of mode 0700, whatever the umask is. errno as for mkdir. */
static int make_folder(const char *path) { return mkdir(path, 0700) || chmod(path, 0700) ? -1 : 0; }

int wlmi_is_foreign(uid_t owner) { return owner && owner != geteuid(); }

/* ---- who may write to a folder ---- */

/* In a container that runs without root's help, files of users who have no number inside, such as / of the real root,
 * seem to belong to the number 65534. */
static int has_no_number(uid_t owner) {
  enum { OVERFLOW = 65534 };
  long long inside, outside, count;
  int is_mapped = 0;
  FILE *map = owner == OVERFLOW ? fopen("/proc/self/uid_map", "re") : NULL;
  if (!map) return 0;
  while (fscanf(map, "%lld %lld %lld", &inside, &outside, &count) == 3)
    is_mapped |= inside <= OVERFLOW && OVERFLOW < inside + count;
  fclose(map);
  return !is_mapped;
}

/* Whether the group is the one that many systems make for each user, with a umask of 002: it is the first group of the
 * folder's owner, has the owner's name and lists no other user. If the folder has an access control list, the group's
 * rights in its mode are those of the whole list. */
static int is_owners_group(const char *folder, const struct stat *info) {
  struct passwd user, *has_user = NULL;
  struct group group, *has_group = NULL;
  char user_text[4096], group_text[4096];
  if (getpwuid_r(info->st_uid, &user, user_text, sizeof user_text, &has_user) || !has_user) return 0;
  if (getgrgid_r(info->st_gid, &group, group_text, sizeof group_text, &has_group) || !has_group) return 0;
  char *const *members = group.gr_mem;
  const int is_alone = !members[0] || (!strcmp(members[0], user.pw_name) && !members[1]);
  return user.pw_gid == info->st_gid && !strcmp(group.gr_name, user.pw_name) && is_alone &&
         getxattr(folder, "system.posix_acl_access", NULL, 0) <= 0;
}

static int others_write_in(const char *folder, const struct stat *info) {
  return (info->st_mode & S_IWOTH) || ((info->st_mode & S_IWGRP) && !is_owners_group(folder, info));
}

/* ---- the way to a file ---- */

typedef struct walk {
  const char *path; /* as the caller named it, for messages */
  wlmi_text *real;  /* the way so far */
  int makes;
  int is_shared; /* the folder that was checked last is a sticky one, to which others may add files */
} walk;

static wlm_status refuse_folder(const walk *w, const struct stat *info) {
  const char *folder = w->real->data;
  if (wlmi_is_foreign(info->st_uid))
    return wlmi_fail(WLM_ERR_IO,
                     "%s: the folder %s belongs to another user (uid %ld), so it is not used; name a file in a folder "
                     "of your own",
                     w->path, folder, (long)info->st_uid);
  return wlmi_fail(WLM_ERR_IO,
                   "%s: others may write to the folder %s (mode %04o), so it is not used; run 'chmod go-w %s', or name "
                   "a file in a folder of your own",
                   w->path, folder, (unsigned)info->st_mode & 07777, folder);
}

static wlm_status check_folder(walk *w, const struct stat *info) {
  const int is_open = others_write_in(w->real->data, info);
  if (wlmi_is_foreign(info->st_uid) && !has_no_number(info->st_uid)) return refuse_folder(w, info);
  if (is_open && !(info->st_mode & S_ISVTX)) return refuse_folder(w, info);
  w->is_shared = is_open;
  return WLM_OK;
}

static wlm_status follow(walk *w, const struct stat *link, int is_file);

/* Checks what the way has reached. A file, or a link that leads nowhere, is left to the caller. */
static wlm_status enter(walk *w, int is_file) {
  const char *here = w->real->data;
  struct stat info;
  if (lstat(here, &info)) {
    if (errno == ENOENT && is_file) return WLM_OK;
    const int is_made = errno == ENOENT && w->makes && (!make_folder(here) || errno == EEXIST);
    if (!is_made || lstat(here, &info))
      return wlmi_fail(WLM_ERR_IO, "%s: cannot %s the folder %s: %s", w->path, w->makes ? "make" : "use", here,
                       strerror(errno));
  }
  if (S_ISLNK(info.st_mode)) return follow(w, &info, is_file);
  if (is_file) return WLM_OK;
  if (!S_ISDIR(info.st_mode)) return wlmi_fail(WLM_ERR_IO, "%s: %s is not a folder", w->path, here);
  return check_folder(w, &info);
}

static wlm_status descend(walk *w, const char *names, int to_file) {
  wlm_status status;
  wlmi_text *real = w->real;
  if (real->data) real->data[real->size = 0] = 0;
  wlmi_text_puts(real, "/");
  for (names += strspn(names, "/"); !real->failed; names += strspn(names, "/")) {
    status = enter(w, 0);
    if (status != WLM_OK || !*names) return status;
    const size_t length = strcspn(names, "/");
    if (real->size > 1) wlmi_text_puts(real, "/");
    wlmi_text_append(real, names, length);
    names += length;
    if (!*names && to_file && !real->failed) return enter(w, 1);
  }
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", w->path);
}

/* Begins again at the target, so that the folders on the way to it are checked as well. */
static wlm_status follow(walk *w, const struct stat *link, int is_file) {
  if (wlmi_is_foreign(link->st_uid) && !has_no_number(link->st_uid))
    return wlmi_fail(WLM_ERR_IO,
                     "%s: %s is a symbolic link of another user (uid %ld) and is not used; name a file in a folder of "
                     "your own",
                     w->path, w->real->data, (long)link->st_uid);
  char *target = realpath(w->real->data, NULL);
  if (!target && is_file && errno == ENOENT) return WLM_OK;
  if (!target)
    return wlmi_fail(errno == ENOMEM ? WLM_ERR_OUT_OF_MEMORY : WLM_ERR_IO, "%s: %s: %s", w->path, w->real->data,
                     strerror(errno));
  const wlm_status status = descend(w, target, is_file);
  free(target);
  return status;
}

wlm_status wlmi_private_path(const char *path, int make, wlmi_text *real, int *is_shared) {
  walk w = {.path = path, .real = real, .makes = make};
  wlmi_text whole = {0};
  char *here = *path == '/' ? NULL : getcwd(NULL, 0);
  wlm_status status;
  if (here)
    wlmi_text_printf(&whole, "%s/%s", here, path);
  else if (*path == '/')
    wlmi_text_puts(&whole, path);
  else
    WLM_TRY(wlmi_fail(WLM_ERR_IO, "%s: the current folder: %s", path, strerror(errno)));
  if (whole.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", path));
  WLM_TRY(descend(&w, whole.data, 1));
  if (is_shared)
    *is_shared = w.is_shared;
  else if (w.is_shared)
    status = wlmi_fail(WLM_ERR_IO,
                       "%s: others may add files beside it, so it is not used; name a file in a folder of your own, as "
                       "'mkdir -m 700 FOLDER' makes one",
                       path);
done:
  wlmi_text_release(&whole);
  free(here);
  return status;
}
