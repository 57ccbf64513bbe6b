#include "db/interchange.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "db/content.h"
#include "db/json_line.h"

/* ---- export ---- */

static wlm_status export_one(void *user, const char *id, const wlm_measurement_record *record) {
  wlm_text *out = user;
  wlm_measurement_json(record, id, out);
  wlm_text_puts(out, "\n");
  return out->failed ? wlm_fail(WLM_ERR_OUT_OF_MEMORY, "export of %zu bytes", out->size) : WLM_OK;
}

wlm_status wlm_store_export(wlm_store *store, wlm_text *out) {
  wlm_pin_record *pins = NULL;
  wlm_recorded *recorded = NULL;
  int64_t pin_count = 0, recorded_count = 0;
  wlm_text_printf(out, "{\"warploom\":\"tuned\",\"version\":%d}\n", WLM_INTERCHANGE_VERSION);
  wlm_status status = wlm_store_each(store, NULL, export_one, out);
  if (status == WLM_OK) status = wlm_store_load_pins(store, NULL, &pins, &pin_count);
  if (status == WLM_OK) status = wlm_store_load_recorded(store, NULL, &recorded, &recorded_count);
  for (int64_t i = 0; i < pin_count; i++) {
    wlm_pin_json(&pins[i], out);
    wlm_text_puts(out, "\n");
  }
  for (int64_t i = 0; i < recorded_count; i++) {
    wlm_recorded_json(&recorded[i], out);
    wlm_text_puts(out, "\n");
  }
  wlm_pins_free(pins, pin_count);
  wlm_recorded_free(recorded, recorded_count);
  if (status == WLM_OK && out->failed) status = wlm_fail(WLM_ERR_OUT_OF_MEMORY, "export of %zu bytes", out->size);
  return status;
}

wlm_status wlm_store_export_file(wlm_store *store, FILE *file, const char *name) {
  wlm_text text = {0};
  wlm_status status = wlm_store_export(store, &text);
  if (status == WLM_OK && (fwrite(text.data, 1, text.size, file) != text.size || fflush(file)))
    status = wlm_fail(WLM_ERR_IO, "%s: cannot write: %s", name, strerror(errno));
  wlm_text_release(&text);
  return status;
}

wlm_status wlm_store_export_path(wlm_store *store, const char *path) {
  wlm_text text = {0};
  wlm_status status = wlm_store_export(store, &text);
  if (status == WLM_OK) status = wlm_path_write(path, text.data, text.size);
  wlm_text_release(&text);
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
static wlm_status read_line(source *from, wlm_text *line, int *more) {
  int byte;
  line->size = 0;
  while ((byte = next_byte(from)) != EOF && byte != '\n') {
    char c = (char)byte;
    wlm_text_append(line, &c, 1);
  }
  *more = byte != EOF || line->size;
  if (from->file && ferror(from->file)) return wlm_fail(WLM_ERR_IO, "cannot read: %s", strerror(errno));
  if (line->size == 0) wlm_text_append(line, "", 0);
  if (line->failed) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "line of %zu bytes", line->size);
  if (strlen(line->data) != line->size) return wlm_fail(WLM_ERR_PARSE, "holds a NUL byte");
  return WLM_OK;
}

static wlm_status read_content_line(wlm_json_reader *reader, const char *line, wlm_content *content) {
  wlm_status status = WLM_OK;
  switch (wlm_json_kind(reader, line)) {
    case WLM_LINE_PIN:
      WLM_TRY(
          wlm_grow((void **)&content->pins, content->pin_count, &content->pin_capacity, sizeof *content->pins, "pins"));
      WLM_TRY(wlm_json_read_pin(reader, line, &content->pins[content->pin_count]));
      content->pin_count++;
      break;
    case WLM_LINE_RECORDED:
      WLM_TRY(wlm_grow((void **)&content->recorded, content->recorded_count, &content->recorded_capacity,
                       sizeof *content->recorded, "recorded problems"));
      WLM_TRY(wlm_json_read_recorded(reader, line, &content->recorded[content->recorded_count]));
      content->recorded_count++;
      break;
    case WLM_LINE_MEASUREMENT:
      WLM_TRY(wlm_measurements_reserve(&content->records, content->count, &content->capacity));
      WLM_TRY(wlm_json_read_measurement(reader, line, &content->records[content->count]));
      content->count++;
  }
done:
  return status;
}

/* Each conflict is a line of the log. */
static void log_conflicts(wlm_text *conflicts) {
  char *rest = NULL;
  for (char *line = conflicts->size ? strtok_r(conflicts->data, "\n", &rest) : NULL; line;
       line = strtok_r(NULL, "\n", &rest))
    wlm_log(WLM_LOG_WARNING, "import: %s", line);
}

static wlm_status import_lines(wlm_store *store, source *from, const char *name, int64_t *added) {
  wlm_json_reader *reader = NULL;
  wlm_content content = {0};
  wlm_text line = {0}, conflicts = {0};
  int more;
  wlm_status status = wlm_json_reader_open(&reader);
  for (int64_t number = 1; status == WLM_OK; number++) {
    status = read_line(from, &line, &more);
    if (status == WLM_OK && !more && number > 1) break;
    if (status == WLM_OK)
      status = number == 1 ? wlm_json_read_header(reader, line.data) : read_content_line(reader, line.data, &content);
    if (status != WLM_OK) wlm_fail_in(status, "%s:%lld", name, (long long)number);
  }
  if (status == WLM_OK) status = wlm_store_add(store, &content, &conflicts, added);
  if (status == WLM_OK) log_conflicts(&conflicts);
  wlm_json_reader_close(reader);
  wlm_content_release(&content);
  wlm_text_release(&line);
  wlm_text_release(&conflicts);
  return status;
}

wlm_status wlm_store_import_file(wlm_store *store, FILE *file, const char *name, int64_t *added) {
  source from = {file, NULL, NULL};
  return import_lines(store, &from, name, added);
}

wlm_status wlm_store_import_string(wlm_store *store, const char *text, const char *name, int64_t *added) {
  source from = {NULL, text, text + strlen(text)};
  return import_lines(store, &from, name, added);
}

wlm_status wlm_store_import_path(wlm_store *store, const char *path, int64_t *added) {
  FILE *file = fopen(path, "re");
  if (!file)
    return wlm_fail(errno == ENOENT ? WLM_ERR_NOT_FOUND : WLM_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
  wlm_status status = wlm_store_import_file(store, file, path, added);
  fclose(file);
  return status;
}
