#include "db/interchange.h"

#include <errno.h>
#include <string.h>

#include "common/memory.h"
#include "db/json_line.h"

/* ---- export ---- */

static wlm_status export_one(void *user, const char *id, const wlm_measurement_record *record) {
  wlm_text *out = user;
  wlm_measurement_json(record, id, out);
  wlm_text_puts(out, "\n");
  return out->failed ? wlm_fail(WLM_ERR_OUT_OF_MEMORY, "export of %zu bytes", out->size) : WLM_OK;
}

wlm_status wlm_store_export(wlm_store *store, wlm_text *out) {
  wlm_text_printf(out, "{\"warploom\":\"tuned\",\"version\":%d}\n", WLM_INTERCHANGE_VERSION);
  return wlm_store_each(store, NULL, export_one, out);
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

static wlm_status import_lines(wlm_store *store, source *from, const char *name, int64_t *added) {
  wlm_json_reader *reader = NULL;
  wlm_measurement_record *records = NULL;
  int64_t count = 0, capacity = 0;
  wlm_text line = {0};
  int more;
  wlm_status status = wlm_json_reader_open(&reader);
  for (int64_t number = 1; status == WLM_OK; number++) {
    status = read_line(from, &line, &more);
    if (status == WLM_OK && !more && number > 1) break;
    if (status == WLM_OK && number == 1)
      status = wlm_json_read_header(reader, line.data);
    else if (status == WLM_OK && (status = wlm_measurements_reserve(&records, count, &capacity)) == WLM_OK &&
             (status = wlm_json_read_measurement(reader, line.data, &records[count])) == WLM_OK)
      count++;
    if (status != WLM_OK) wlm_fail_in(status, "%s:%lld", name, (long long)number);
  }
  if (status == WLM_OK) status = wlm_store_merge(store, records, count, added);
  wlm_json_reader_close(reader);
  wlm_measurements_free(records, count);
  wlm_text_release(&line);
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
