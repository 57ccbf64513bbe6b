#include "db/interchange.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/private_file.h"
#include "core/records/lines.h"

wlm_status wlmi_store_export(wlm_store *store, wlmi_text *out) {
  wlmi_content content;
  wlm_status status = wlmi_content_load(store, &content);
  if (status == WLM_OK) status = wlmi_lines_write(&content, out);
  wlmi_content_release(&content);
  return status;
}

wlm_status wlmi_store_export_file(wlm_store *store, FILE *file, const char *name) {
  wlmi_text text = {0};
  wlm_status status = wlmi_store_export(store, &text);
  if (status == WLM_OK && (fwrite(text.data, 1, text.size, file) != text.size || fflush(file)))
    status = wlmi_fail(WLM_ERR_IO, "%s: cannot write: %s", name, strerror(errno));
  wlmi_text_release(&text);
  return status;
}

wlm_status wlmi_store_export_path(wlm_store *store, const char *path) {
  wlmi_text text = {0};
  wlm_status status = wlmi_store_export(store, &text);
  if (status == WLM_OK) status = wlmi_output_write(path, text.data, text.size);
  wlmi_text_release(&text);
  return status;
}

/* Logs each conflict as one line. */
static void log_conflicts(wlmi_text *conflicts) {
  char *rest = NULL;
  for (char *line = conflicts->size ? strtok_r(conflicts->data, "\n", &rest) : NULL; line;
       line = strtok_r(NULL, "\n", &rest))
    wlmi_log(WLM_LOG_WARNING, "import: %s", line);
}

wlm_status wlmi_store_import(wlm_store *store, const wlmi_content *content, int64_t *added) {
  wlmi_text conflicts = {0};
  const wlm_status status = wlmi_store_add(store, content, &conflicts, added);
  if (status == WLM_OK) log_conflicts(&conflicts);
  wlmi_text_release(&conflicts);
  return status;
}

wlm_status wlmi_store_open_lines(const char *path, wlm_store **store) {
  wlmi_content content = {0};
  wlm_store *filled = NULL;
  FILE *file = NULL;
  int64_t size;
  int fd = -1;
  wlm_status status;
  *store = NULL;
  WLM_TRY(wlmi_private_open(path, 0, &fd, &size));
  file = fdopen(fd, "r");
  if (!file) WLM_TRY(wlmi_fail(WLM_ERR_IO, "%s: cannot open: %s", path, strerror(errno)));
  WLM_TRY(wlmi_lines_read_file(file, path, &content));
  WLM_TRY(wlmi_store_open_memory(&filled));
  WLM_TRY(wlmi_store_import(filled, &content, NULL));
  *store = filled;
  filled = NULL;
done:
  if (file)
    fclose(file);
  else if (fd >= 0)
    close(fd);
  wlmi_content_release(&content);
  wlmi_store_close(filled);
  return status;
}
