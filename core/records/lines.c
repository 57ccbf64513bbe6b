#include "core/records/lines.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/records/record.h"

/* Raise it when lines get other keys, other kinds or other values than the readers of this version accept. */
enum { FORMAT_VERSION = 1 };

static wlm_status parse(const char *line, json_t **object) {
  json_error_t error;
  *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
  if (json_is_object(*object)) return WLM_OK;
  if (*object) return wlmi_fail(WLM_ERR_PARSE, "not a JSON object: it is an array");
  if (json_error_code(&error) == json_error_out_of_memory)
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "line of %zu bytes", strlen(line));
  return wlmi_fail(WLM_ERR_PARSE, "not a JSON object: %s", error.text);
}

static wlm_status read_header(const char *line, int *is_newer) {
  json_t *object;
  wlm_status status;
  *is_newer = 0;
  if (parse(line, &object) != WLM_OK)
    WLM_TRY(wlmi_fail(WLM_ERR_PARSE,
                      "not a warploom export: the first line must be {\"warploom\":\"tuned\",\"version\":%d}",
                      FORMAT_VERSION));
  const char *of = json_string_value(json_object_get(object, "warploom"));
  const json_t *version = json_object_get(object, "version");
  if (!of || strcmp(of, "tuned"))
    WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "not a warploom export: warploom must be \"tuned\""));
  if (!json_is_integer(version)) WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "version must be an integer"));
  if (json_integer_value(version) < FORMAT_VERSION)
    WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "version must be at least %d", FORMAT_VERSION));
  *is_newer = json_integer_value(version) > FORMAT_VERSION;
  status = WLM_OK;
done:
  json_decref(object);
  return status;
}

/* ---- fields ---- */

static wlm_status read_field(const wlmi_field *field, const json_t *value, wlmi_measurement_record *record) {
  const char *text = json_string_value(value); /* NULL = it is no string */
  int fits = 0;
  switch (field->type) {
    case WLMI_FIELD_TEXT: {
      char *copy = text ? wlmi_strdup(text) : NULL;
      if (text && !copy) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "value of %s", field->key);
      wlmi_field_set_text(field, record, copy);
      fits = text != NULL;
      break;
    }
    case WLMI_FIELD_INT:
    case WLMI_FIELD_INT64:
    case WLMI_FIELD_INT64_OR_NONE:
      fits = json_is_integer(value) && wlmi_field_set_integer(field, record, json_integer_value(value));
      break;
    case WLMI_FIELD_BOOL:
      fits = json_is_boolean(value);
      wlmi_field_set_integer(field, record, json_is_true(value));
      break;
    case WLMI_FIELD_REAL:
    case WLMI_FIELD_REAL_OR_NULL:
      fits = json_is_number(value) || (json_is_null(value) && field->type == WLMI_FIELD_REAL_OR_NULL);
      wlmi_field_set_real(field, record, json_is_number(value) ? json_number_value(value) : (double)NAN);
      break;
    case WLMI_FIELD_HASH: fits = text && wlmi_field_set_hash(field, record, text); break;
  }
  return fits ? WLM_OK : wlmi_fail(WLM_ERR_PARSE, "%s must be %s", field->key, field->must_be);
}

/* The keys of a kind of line. */
typedef struct line_shape {
  const char *own; /* the key of a text that is no field */
  int (*fits)(const char *own);
  const char *must_be;
  unsigned of; /* its fields */
} line_shape;

static int is_hash(const char *text) {
  wlmi_hash hash;
  return wlmi_hash_from_hex(text, &hash);
}

static int is_filled(const char *text) { return *text != 0; }

/* WLM_ERR_PARSE naming a key that this kind of line does not have. */
static wlm_status refuse_unknown(json_t *object, const line_shape *shape) {
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    int known = !strcmp(key, shape->own);
    for (int i = 0; i < WLMI_FIELD_COUNT && !known; i++)
      known = !strcmp(key, wlmi_fields[i].key) && wlmi_fields[i].of & shape->of;
    if (!known) return wlmi_fail(WLM_ERR_PARSE, "unknown key %.80s", key);
  }
  return WLM_OK;
}

/* Sets every field of the shape, and *own, which lives as long as the object. */
static wlm_status read_members(json_t *object, const line_shape *shape, wlmi_measurement_record *record,
                               const char **own) {
  const json_t *value = json_object_get(object, shape->own);
  *own = json_string_value(value);
  if (!value) return wlmi_fail(WLM_ERR_PARSE, "%s is missing", shape->own);
  if (!*own || !shape->fits(*own)) return wlmi_fail(WLM_ERR_PARSE, "%s must be %s", shape->own, shape->must_be);
  for (int i = 0; i < WLMI_FIELD_COUNT; i++) {
    const wlmi_field *field = &wlmi_fields[i];
    if (!(field->of & shape->of)) continue;
    value = json_object_get(object, field->key);
    if (value)
      WLM_CHECK(read_field(field, value, record));
    else if (field->type != WLMI_FIELD_INT64_OR_NONE)
      return wlmi_fail(WLM_ERR_PARSE, "%s is missing", field->key);
  }
  wlmi_fields_derive(record);
  return refuse_unknown(object, shape);
}

/* ---- the three kinds of lines ---- */

/* An invalid value in a line is WLM_ERR_PARSE, with the detail text of the check. */
static wlm_status as_parsed(wlm_status checked) {
  return checked == WLM_ERR_INVALID_ARGUMENT ? WLM_ERR_PARSE : checked;
}

static wlm_status read_measurement(json_t *object, wlmi_measurement_record *record) {
  static const line_shape shape = {"id", is_hash, "32 lower-case hexadecimal digits", WLMI_OF_ALL};
  const char *stated;
  char id[WLMI_HASH_HEX];
  wlm_status status;
  *record = (wlmi_measurement_record){0};
  WLM_TRY(read_members(object, &shape, record, &stated));
  WLM_TRY(as_parsed(wlmi_measurement_check(record)));
  WLM_TRY(wlmi_measurement_id(record, id));
  if (strcmp(id, stated))
    WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "id is %s, but the content has %s: the line was changed after its export", stated,
                      id));
done:
  if (status != WLM_OK) wlmi_measurement_release(record);
  return status;
}

static wlm_status read_recorded(json_t *object, wlmi_recorded *recorded) {
  static const line_shape shape = {"recorded", is_filled, "a string that is not empty", WLMI_OF_RECORDED};
  wlmi_measurement_record record = {.n = 0};
  const char *class;
  wlm_status status;
  WLM_TRY(read_members(object, &shape, &record, &class));
  const wlmi_recorded read = {(char *)class, record.stats, record.problem, record.n};
  WLM_TRY(as_parsed(wlmi_recorded_check(&read)));
  status = wlmi_recorded_copy(&read, recorded);
done:
  wlmi_measurement_release(&record);
  return status;
}

static wlm_status read_pin(json_t *object, wlmi_pin_record *pin) {
  wlmi_pin_record read = {0};
  json_error_t error;
  json_int_t n;
  if (json_unpack_ex(object, &error, JSON_STRICT, "{s:s,s:s,s:s,s:I,s:s}", "pin", &read.target, "class",
                     &read.device_class, "problem", &read.problem, "n", &n, "variant", &read.variant))
    return wlmi_fail(WLM_ERR_PARSE, "a pin has the texts pin, class, problem, variant and the integer n: %s",
                     error.text);
  read.n = n;
  const wlm_status status = as_parsed(wlmi_pin_check(&read));
  return status == WLM_OK ? wlmi_pin_copy(&read, pin) : status;
}

static wlm_status read_content(const char *line, wlmi_content *c) {
  json_t *object;
  wlm_status status;
  WLM_TRY(parse(line, &object));
  if (json_object_get(object, "pin")) {
    WLM_TRY(wlmi_grow((void **)&c->pins, c->pin_count, &c->pin_capacity, sizeof *c->pins, "pins"));
    WLM_TRY(read_pin(object, &c->pins[c->pin_count]));
    c->pin_count++;
  } else if (json_object_get(object, "recorded")) {
    WLM_TRY(wlmi_grow((void **)&c->recorded, c->recorded_count, &c->recorded_capacity, sizeof *c->recorded,
                      "recorded problems"));
    WLM_TRY(read_recorded(object, &c->recorded[c->recorded_count]));
    c->recorded_count++;
  } else {
    WLM_TRY(wlmi_measurements_reserve(&c->records, c->count, &c->capacity));
    WLM_TRY(read_measurement(object, &c->records[c->count]));
    c->count++;
  }
done:
  json_decref(object);
  return status;
}

/* ---- whole files ---- */

/* A line and its room, which free releases. */
typedef struct line_buffer {
  char *text;
  size_t room;
} line_buffer;

/* The next line without its end; *more = 0 after the last. */
static wlm_status read_line(FILE *file, line_buffer *line, int *more) {
  errno = 0;
  ssize_t size = getline(&line->text, &line->room, file);
  *more = size >= 0;
  if (*more && line->text[size - 1] == '\n') line->text[--size] = 0;
  if (*more && !strcmp(line->text, "SQLite format 3"))
    return wlmi_fail(WLM_ERR_PARSE,
                     "this is a database and no file of warploom export; join databases by warploom db "
                     "merge");
  if (*more && strlen(line->text) != (size_t)size)
    return wlmi_fail(WLM_ERR_PARSE, "holds a NUL byte; this is not a file of warploom export");
  if (*more || (feof(file) && !ferror(file))) return WLM_OK;
  if (errno == ENOMEM) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a line");
  return wlmi_fail(WLM_ERR_IO, "cannot read: %s", strerror(errno));
}

/* What a newer version wrote and this one does not understand. */
typedef struct left_out {
  int64_t lines, first;
  char why[256];
} left_out;

static wlm_status leave_out(int64_t number, left_out *left) {
  if (!left->lines++) {
    left->first = number;
    snprintf(left->why, sizeof left->why, "%s", wlm_error_detail());
  }
  wlmi_clear_error();
  return WLM_OK;
}

wlm_status wlmi_lines_read_file(FILE *file, const char *name, wlmi_content *content) {
  line_buffer line = {0};
  left_out left = {0};
  wlm_status status = WLM_OK;
  int more, is_newer = 0;
  *content = (wlmi_content){0};
  for (int64_t number = 1; status == WLM_OK; number++) {
    status = read_line(file, &line, &more);
    if (status == WLM_OK && !more && number > 1) break;
    if (status == WLM_OK)
      status = number == 1 ? read_header(more ? line.text : "", &is_newer) : read_content(line.text, content);
    if (status == WLM_ERR_PARSE && is_newer) status = leave_out(number, &left);
    if (status != WLM_OK) wlmi_fail_in(status, "%s:%lld", name, (long long)number);
  }
  if (status == WLM_OK && left.lines)
    wlmi_log(WLM_LOG_WARNING,
             "%s was written by a newer warploom: %lld line%s left out, which this version does not understand (line "
             "%lld: %s)",
             name, (long long)left.lines, left.lines == 1 ? " was" : "s were", (long long)left.first, left.why);
  if (status != WLM_OK) wlmi_content_release(content);
  free(line.text);
  return status;
}

wlm_status wlmi_lines_read_path(const char *path, wlmi_content *content) {
  *content = (wlmi_content){0};
  FILE *file = fopen(path, "re");
  if (!file)
    return wlmi_fail(errno == ENOENT ? WLM_ERR_NOT_FOUND : WLM_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
  const wlm_status status = wlmi_lines_read_file(file, path, content);
  fclose(file);
  return status;
}

wlm_status wlmi_lines_read_string(const char *text, const char *name, wlmi_content *content) {
  *content = (wlmi_content){0};
  FILE *file = fmemopen((char *)text, strlen(text), "r");
  if (!file) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "reading %s", name);
  const wlm_status status = wlmi_lines_read_file(file, name, content);
  fclose(file);
  return status;
}

wlm_status wlmi_lines_write(const wlmi_content *content, wlmi_text *out) {
  wlmi_text_printf(out, "{\"warploom\":\"tuned\",\"version\":%d}\n", FORMAT_VERSION);
  for (int64_t i = 0; i < content->count; i++) {
    wlmi_measurement_line(&content->records[i], out);
    wlmi_text_puts(out, "\n");
  }
  for (int64_t i = 0; i < content->pin_count; i++) {
    wlmi_pin_json(&content->pins[i], out);
    wlmi_text_puts(out, "\n");
  }
  for (int64_t i = 0; i < content->recorded_count; i++) {
    wlmi_recorded_json(&content->recorded[i], out);
    wlmi_text_puts(out, "\n");
  }
  return out->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "export of %zu bytes", out->size) : WLM_OK;
}
