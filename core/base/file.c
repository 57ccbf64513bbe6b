#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/path.h"
#include "core/base/private_file.h"

wlm_status wlmi_file_read(const char *path, char **data, size_t *size) {
  return wlmi_file_read_in(AT_FDCWD, path, data, size);
}

wlm_status wlmi_file_read_in(int folder, const char *path, char **data, size_t *size) {
  const int descriptor = openat(folder, path, O_RDONLY | O_CLOEXEC | (folder == AT_FDCWD ? 0 : O_NOFOLLOW));
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "rb");
  if (!file) {
    const int cause = errno;
    if (descriptor >= 0) close(descriptor);
    return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(cause));
  }
  wlmi_text content = {0};
  char piece[16384];
  size_t got;
  while ((got = fread(piece, 1, sizeof piece, file)) > 0) wlmi_text_append(&content, piece, got);
  int failed = ferror(file);
  fclose(file);
  *size = content.size;
  if (!failed) return wlmi_text_take(&content, data);
  wlmi_text_release(&content);
  return wlmi_fail(WLM_ERR_IO, "%s: cannot be read", path);
}

wlm_status wlmi_file_write(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  if (!file) return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  int failed = fputs(text, file) < 0;
  failed |= fclose(file) != 0;
  return failed ? wlmi_fail(WLM_ERR_IO, "%s: cannot be written; is the disk full?", path) : WLM_OK;
}

wlm_status wlmi_file_identity(const char *path, char hex[WLMI_HASH_HEX]) {
  struct stat file;
  wlmi_text text = {0};
  char *real = realpath(path, NULL);
  hex[0] = 0;
  if (real && stat(real, &file) == 0) {
    wlmi_text_printf(&text, "%s %lld %lld.%09ld", real, (long long)file.st_size, (long long)file.st_mtim.tv_sec,
                     (long)file.st_mtim.tv_nsec);
    if (!text.failed) wlmi_hash_to_hex(wlmi_hash_bytes(text.data, text.size), hex);
  }
  const int failed = text.failed;
  wlmi_text_release(&text);
  free(real);
  return failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "identity of %s", path) : WLM_OK;
}

/* ---- files that are always whole ---- */

/* The descriptor that a path names, or -1. A regular file behind it is written through the descriptor: the shell opened
 * it, perhaps to append (>>), and renaming would replace its content. */
static int descriptor_of(const char *path) {
  static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
  if (!strcmp(path, "/dev/stdout")) return STDOUT_FILENO;
  if (!strcmp(path, "/dev/stderr")) return STDERR_FILENO;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const size_t length = strlen(folders[i]);
    if (strncmp(path, folders[i], length)) continue;
    const char *number = path + length;
    const size_t digits = strspn(number, "0123456789");
    if (digits && digits < 7 && !number[digits]) return atoi(number);
  }
  return -1;
}

static wlm_status open_as_it_is(wlmi_output *o, int descriptor) {
  const int fd = descriptor < 0 ? open(o->path, O_WRONLY | O_CLOEXEC) : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  o->file = fd < 0 ? NULL : fdopen(fd, "wb");
  if (o->file) return WLM_OK;
  const wlm_status status = wlmi_fail(WLM_ERR_IO, "%s: cannot open for writing: %s", o->path, strerror(errno));
  if (fd >= 0) close(fd);
  return status;
}

/* A symbolic link stays one: its target is replaced. */
static wlm_status find_target(wlmi_output *o, struct stat *old, int *exists) {
  char real[PATH_MAX];
  struct stat link;
  const char *target = realpath(o->path, real);
  *exists = target != NULL;
  if (!target && !lstat(o->path, &link) && S_ISLNK(link.st_mode))
    return wlmi_fail(WLM_ERR_IO, "%s: is a symbolic link that leads nowhere; remove it, or name another file", o->path);
  wlmi_text_puts(&o->target, target ? target : o->path);
  if (o->target.failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", o->path);
  if (*exists && (stat(target, old) || (S_ISREG(old->st_mode) && faccessat(AT_FDCWD, target, W_OK, AT_EACCESS))))
    return wlmi_fail(WLM_ERR_IO, "%s: cannot open for writing: %s", o->path, strerror(errno));
  return WLM_OK;
}

static wlm_status open_beside(wlmi_output *o, const struct stat *old) {
  int fd;
  const wlm_status status = wlmi_private_fresh(o->target.data, 0, &o->fresh, &fd);
  if (status != WLM_OK) {
    wlmi_text_release(&o->fresh);
    return status;
  }
  o->file = !old || !fchmod(fd, old->st_mode & 0777) ? fdopen(fd, "wb") : NULL;
  if (o->file) return WLM_OK;
  close(fd);
  return wlmi_fail(WLM_ERR_IO, "%s: cannot open for writing: %s", o->path, strerror(errno));
}

wlm_status wlmi_output_open(const char *path, wlmi_output *o) {
  const int descriptor = descriptor_of(path);
  struct stat old = {0};
  int exists;
  *o = (wlmi_output){.path = path};
  if (descriptor >= 0) return open_as_it_is(o, descriptor);
  wlm_status status = find_target(o, &old, &exists);
  if (status == WLM_OK && exists && !S_ISREG(old.st_mode)) {
    wlmi_text_release(&o->target);
    return open_as_it_is(o, -1);
  }
  if (status == WLM_OK) status = open_beside(o, exists ? &old : NULL);
  return status == WLM_OK ? WLM_OK : wlmi_output_close(o, status);
}

/* errno is that of the first write that failed: callers stop there, and flushing again fails alike or does nothing. */
static wlm_status cannot_write(const char *path) {
  return wlmi_fail(WLM_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
}

wlm_status wlmi_output_close(wlmi_output *o, wlm_status status) {
  const int is_beside = o->fresh.size > 0;
  if (o->file && status == WLM_OK) {
    const int is_written = !fflush(o->file) && !ferror(o->file) && (!is_beside || !fsync(fileno(o->file)));
    if (!is_written) status = cannot_write(o->path);
  }
  if (o->file && fclose(o->file) && status == WLM_OK) status = cannot_write(o->path);
  if (is_beside && status == WLM_OK && rename(o->fresh.data, o->target.data))
    status = wlmi_fail(WLM_ERR_IO, "%s: cannot rename %s to it: %s", o->path, o->fresh.data, strerror(errno));
  if (is_beside && status != WLM_OK) unlink(o->fresh.data);
  if (is_beside && status == WLM_OK) wlmi_path_sync_folder(o->target.data);
  wlmi_text_release(&o->target);
  wlmi_text_release(&o->fresh);
  *o = (wlmi_output){.file = NULL};
  return status;
}

wlm_status wlmi_output_check(const char *path) {
  wlmi_output output;
  struct stat facts;
  if (!stat(path, &facts) && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) return WLM_OK;
  WLM_CHECK(wlmi_output_open(path, &output));
  wlmi_output_close(&output, WLM_ERR_CANCELLED);
  return WLM_OK;
}

wlm_status wlmi_output_write(const char *path, const char *data, size_t size) {
  wlmi_output output;
  WLM_CHECK(wlmi_output_open(path, &output));
  fwrite(data, 1, size, output.file); /* closing reports a failure */
  return wlmi_output_close(&output, WLM_OK);
}
