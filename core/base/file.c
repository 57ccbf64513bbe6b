#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"

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

wlm_status wlmi_file_identity(const char *path, char hex[WLM_HASH_HEX]) {
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
