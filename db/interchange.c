#include "db/interchange.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "db/json_line.h"

/* ---- export ---- */

static wlm_status export_one(void *user, const char *id, const wlmi_measurement_record *record) {
  wlmi_text *out = user;
  wlmi_measurement_json(record, id, out);
  wlmi_text_puts(out, "\n");
  return out->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "export of %zu bytes", out->size) : WLM_OK;
}

wlm_status wlmi_store_export(wlm_store *store, wlmi_text *out) {
  wlmi_pin_record *pins = NULL;
  wlmi_recorded *recorded = NULL;
  int64_t pin_count = 0, recorded_count = 0;
  wlmi_text_printf(out, "{\"warploom\":\"tuned\",\"version\":%d}\n", WLM_INTERCHANGE_VERSION);
  wlm_status status = wlmi_store_each(store, NULL, export_one, out);
  if (status == WLM_OK) status = wlmi_store_load_pins(store, NULL, &pins, &pin_count);
  if (status == WLM_OK) status = wlmi_store_load_recorded(store, NULL, &recorded, &recorded_count);
  for (int64_t i = 0; i < pin_count; i++) {
    wlmi_pin_json(&pins[i], out);
    wlmi_text_puts(out, "\n");
  }
  for (int64_t i = 0; i < recorded_count; i++) {
    wlmi_recorded_json(&recorded[i], out);
    wlmi_text_puts(out, "\n");
  }
  wlmi_pins_free(pins, pin_count);
  wlmi_recorded_free(recorded, recorded_count);
  if (status == WLM_OK && out->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "export of %zu bytes", out->size);
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
  if (status == WLM_OK) status = wlmi_path_write(path, text.data, text.size);
  wlmi_text_release(&text);
  return status;
}

/* ---- import ---- */

/* Where lines come from: a file or a string. */
typedef struct source {
  FILE *file;
  const char *next, *end;
} source;

static int next_byte(source *from) {
  if (from->file) return getc(from->file);
  return from->next < from->end ? (unsigned char)*from->next++ : EOF;
}

/* The next line without its end; *more = 0 after the last. */
static wlm_status read_line(source *from, wlmi_text *line, int *more) {
  int byte;
  line->size = 0;
  while ((byte = next_byte(from)) != EOF && byte != '\n') {
    char c = (char)byte;
    wlmi_text_append(line, &c, 1);
  }
  *more = byte != EOF || line->size;
  if (from->file && ferror(from->file)) return wlmi_fail(WLM_ERR_IO, "cannot read: %s", strerror(errno));
  if (line->size == 0) wlmi_text_append(line, "", 0);
  if (line->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "line of %zu bytes", line->size);
  if (strlen(line->data) != line->size) return wlmi_fail(WLM_ERR_PARSE, "holds a NUL byte");
  return WLM_OK;
}

/* Each conflict is a line of the log. */
static void log_conflicts(wlmi_text *conflicts) {
  char *rest = NULL;
  for (char *line = conflicts->size ? strtok_r(conflicts->data, "\n", &rest) : NULL; line;
       line = strtok_r(NULL, "\n", &rest))
    wlmi_log(WLM_LOG_WARNING, "import: %s", line);
}

static wlm_status import_lines(wlm_store *store, source *from, const char *name, int64_t *added) {
  wlmi_content content = {0};
  wlmi_text line = {0}, conflicts = {0};
  int more;
  wlm_status status = WLM_OK;
  for (int64_t number = 1; status == WLM_OK; number++) {
    status = read_line(from, &line, &more);
    if (status == WLM_OK && !more && number > 1) break;
    if (status == WLM_OK)
      status = number == 1 ? wlmi_json_read_header(line.data) : wlmi_json_read_line(line.data, &content);
    if (status != WLM_OK) wlmi_fail_in(status, "%s:%lld", name, (long long)number);
  }
  if (status == WLM_OK) status = wlmi_store_add(store, &content, &conflicts, added);
  if (status == WLM_OK) log_conflicts(&conflicts);
  wlmi_content_release(&content);
  wlmi_text_release(&line);
  wlmi_text_release(&conflicts);
  return status;
}

wlm_status wlmi_store_import_file(wlm_store *store, FILE *file, const char *name, int64_t *added) {
  source from = {file, NULL, NULL};
  return import_lines(store, &from, name, added);
}

wlm_status wlmi_store_import_string(wlm_store *store, const char *text, const char *name, int64_t *added) {
  source from = {NULL, text, text + strlen(text)};
  return import_lines(store, &from, name, added);
}

wlm_status wlmi_store_import_path(wlm_store *store, const char *path, int64_t *added) {
  FILE *file = fopen(path, "re");
  if (!file)
    return wlmi_fail(errno == ENOENT ? WLM_ERR_NOT_FOUND : WLM_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
  wlm_status status = wlmi_store_import_file(store, file, path, added);
  fclose(file);
  return status;
}
