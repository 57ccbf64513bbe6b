#include "common/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

wlm_status wlmi_file_read(const char *path, char **data, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
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
