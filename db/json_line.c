/* SQLite's JSON functions do the parsing, in a database without a file. Reals are taken from their text, because
 * SQLite's own conversion may be off in the last digit and the id covers every bit. */
#include "db/json_line.h"

#include <math.h>
#include <string.h>

#include "common/memory.h"
#include "db/fields.h"
#include "db/sqlite_util.h"

enum { IS_OBJECT, HEADER, MEMBERS, NUMBER, KIND, PIN, STATEMENT_COUNT };
static const char *const sql[STATEMENT_COUNT] = {
    "SELECT CASE WHEN json_valid(?1) THEN json_type(?1) END",
    "SELECT json_extract(?1, '$.warploom'), json_extract(?1, '$.version')",
    "SELECT key, type, atom FROM json_each(?1)",
    "SELECT ?1 -> ?2",
    "SELECT CASE WHEN NOT json_valid(?1) THEN 0 WHEN json_type(?1, '$.pin') IS NOT NULL THEN 1"
    " WHEN json_type(?1, '$.recorded') IS NOT NULL THEN 2 ELSE 0 END", /* wlmi_line_kind */
    "SELECT group_concat(key || ' ' || type, ', '), max(CASE key WHEN 'class' THEN atom END),"
    " max(CASE key WHEN 'pin' THEN atom END), max(CASE key WHEN 'problem' THEN atom END),"
    " max(CASE key WHEN 'n' THEN atom END), max(CASE key WHEN 'variant' THEN atom END)"
    " FROM (SELECT key, type, atom FROM json_each(?1) ORDER BY key)",
};

struct wlmi_json_reader {
  sqlite3 *db;
  sqlite3_stmt *statements[STATEMENT_COUNT];
};

wlm_status wlmi_json_reader_open(wlmi_json_reader **out) {
  wlm_status status;
  wlmi_json_reader *reader = wlmi_alloc_zero(1, sizeof *reader);
  *out = NULL;
  if (!reader) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a reader of JSON lines");
  int code = sqlite3_open_v2(":memory:", &reader->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL);
  if (code != SQLITE_OK) WLM_TRY(wlmi_sqlite_error(reader->db, code));
  for (int i = 0; i < STATEMENT_COUNT; i++) WLM_TRY(wlmi_sqlite_prepare(reader->db, sql[i], &reader->statements[i]));
  *out = reader;
  return WLM_OK;
done:
  wlmi_json_reader_close(reader);
  return status;
}

void wlmi_json_reader_close(wlmi_json_reader *reader) {
  if (!reader) return;
  for (int i = 0; i < STATEMENT_COUNT; i++) sqlite3_finalize(reader->statements[i]);
  sqlite3_close(reader->db);
  wlmi_free(reader);
}

static wlm_status start(wlmi_json_reader *reader, int which, const char *line, sqlite3_stmt **statement) {
  int row;
  *statement = reader->statements[which];
  sqlite3_reset(*statement);
  wlmi_sqlite_bind_text(*statement, 1, line);
  return which == MEMBERS ? WLM_OK : wlmi_sqlite_step(*statement, &row);
}

static void release(sqlite3_stmt *statement) {
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
}

static wlm_status check_object(wlmi_json_reader *reader, const char *line) {
  sqlite3_stmt *row;
  wlm_status status = start(reader, IS_OBJECT, line, &row);
  if (status == WLM_OK && strcmp(wlmi_sqlite_text(row, 0), "object"))
    status = wlmi_fail(WLM_ERR_PARSE, "not a JSON object");
  release(row);
  return status;
}

wlm_status wlmi_json_read_header(wlmi_json_reader *reader, const char *line) {
  sqlite3_stmt *row = reader->statements[HEADER];
  wlm_status status;
  if (check_object(reader, line) != WLM_OK)
    return wlmi_fail(WLM_ERR_PARSE,
                     "not a warploom export: the first line must be {\"warploom\":\"tuned\",\"version\":%d}",
                     WLM_INTERCHANGE_VERSION);
  WLM_TRY(start(reader, HEADER, line, &row));
  if (strcmp(wlmi_sqlite_text(row, 0), "tuned"))
    WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "not a warploom export: warploom must be \"tuned\""));
  if (sqlite3_column_type(row, 1) != SQLITE_INTEGER) WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "version must be an integer"));
  if (sqlite3_column_int64(row, 1) != WLM_INTERCHANGE_VERSION)
    WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "found version %s, expected %d; import it with the warploom that wrote it",
                      wlmi_sqlite_text(row, 1), WLM_INTERCHANGE_VERSION));
done:
  release(row);
  return status;
}

static wlm_status read_real(wlmi_json_reader *reader, const char *line, const wlmi_field *field,
                            wlmi_measurement_record *record) {
  sqlite3_stmt *row = reader->statements[NUMBER];
  wlmi_sqlite_bind_text(row, 2, field->key);
  wlm_status status = start(reader, NUMBER, line, &row);
  if (status == WLM_OK) wlmi_field_set_real(field, record, wlmi_real_parse(wlmi_sqlite_text(row, 0)));
  release(row);
  return status;
}

/* One member of the object, the row of MEMBERS: key, type, value. */
static wlm_status read_value(wlmi_json_reader *reader, const char *line, const wlmi_field *field, sqlite3_stmt *member,
                             wlmi_measurement_record *record) {
  const char *type = wlmi_sqlite_text(member, 1), *value = wlmi_sqlite_text(member, 2);
  int integer = sqlite3_column_type(member, 2) == SQLITE_INTEGER && !strcmp(type, "integer");
  int text = !strcmp(type, "text"), fits = 0;
  switch (field->type) {
    case WLM_FIELD_TEXT: {
      char *copy = text ? wlmi_strdup(value) : NULL;
      if (text && !copy) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "value of %s", field->key);
      wlmi_field_set_text(field, record, copy);
      fits = text;
      break;
    }
    case WLM_FIELD_INT:
    case WLM_FIELD_INT64:
    case WLM_FIELD_INT64_OR_NONE:
      fits = integer && wlmi_field_set_integer(field, record, sqlite3_column_int64(member, 2));
      break;
    case WLM_FIELD_BOOL:
      fits = !strcmp(type, "true") || !strcmp(type, "false");
      wlmi_field_set_integer(field, record, !strcmp(type, "true"));
      break;
    case WLM_FIELD_REAL:
    case WLM_FIELD_REAL_OR_NULL:
      if (!strcmp(type, "integer") || !strcmp(type, "real")) return read_real(reader, line, field, record);
      wlmi_field_set_real(field, record, (double)NAN);
      fits = !strcmp(type, "null") && field->type == WLM_FIELD_REAL_OR_NULL;
      break;
    case WLM_FIELD_HASH: fits = text && wlmi_field_set_hash(field, record, value); break;
  }
  return fits ? WLM_OK : wlmi_fail(WLM_ERR_PARSE, "%s must be %s", field->key, field->must_be);
}

static int field_of(const char *key) {
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (!strcmp(wlmi_fields[i].key, key)) return i;
  return -1;
}

/* What a line has besides fields, and which fields. */
typedef struct line_shape {
  const char *own; /* the key of a text that is no field */
  int (*fits)(const char *own);
  const char *must_be;
  int (*has)(const wlmi_field *field);
} line_shape;

static int has_all(const wlmi_field *field) { return (void)field, 1; }

static int is_hash(const char *text) {
  wlmi_hash hash;
  return wlmi_hash_from_hex(text, &hash);
}

static int is_filled(const char *text) { return *text != 0; }

static wlm_status read_own(const line_shape *shape, sqlite3_stmt *member, char **own) {
  const char *value = wlmi_sqlite_text(member, 2);
  if (strcmp(wlmi_sqlite_text(member, 1), "text") || !shape->fits(value))
    return wlmi_fail(WLM_ERR_PARSE, "%s must be %s", shape->own, shape->must_be);
  *own = wlmi_strdup(value);
  return *own ? WLM_OK : wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "value of %s", shape->own);
}

/* Sets every field of the shape from the line, and *own, which the caller frees. */
static wlm_status read_members(wlmi_json_reader *reader, const char *line, const line_shape *shape,
                               wlmi_measurement_record *record, char **own) {
  sqlite3_stmt *member;
  char seen[WLM_FIELD_COUNT] = {0};
  wlm_status status = start(reader, MEMBERS, line, &member);
  int more;
  for (;;) {
    WLM_TRY(wlmi_sqlite_step(member, &more));
    if (!more) break;
    const char *key = wlmi_sqlite_text(member, 0);
    const int is_own = !strcmp(key, shape->own), field = field_of(key);
    if (!is_own && (field < 0 || !shape->has(&wlmi_fields[field])))
      WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "unknown key %.80s", key));
    if (is_own ? *own != NULL : seen[field]) WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "%s occurs twice", key));
    if (is_own) {
      WLM_TRY(read_own(shape, member, own));
    } else {
      seen[field] = 1;
      WLM_TRY(read_value(reader, line, &wlmi_fields[field], member, record));
    }
  }
  if (!*own) WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "%s is missing", shape->own));
  for (int i = 0; i < WLM_FIELD_COUNT; i++)
    if (!seen[i] && shape->has(&wlmi_fields[i]) && wlmi_fields[i].type != WLM_FIELD_INT64_OR_NONE)
      WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "%s is missing", wlmi_fields[i].key));
done:
  release(member);
  return status;
}

/* A line that says what cannot be is malformed; the detail text stays. */
static wlm_status as_parsed(wlm_status checked) {
  return checked == WLM_ERR_INVALID_ARGUMENT ? WLM_ERR_PARSE : checked;
}

wlm_status wlmi_json_read_measurement(wlmi_json_reader *reader, const char *line, wlmi_measurement_record *record) {
  static const line_shape shape = {"id", is_hash, "32 lower-case hexadecimal digits", has_all};
  char *stated = NULL, id[WLM_HASH_HEX];
  wlm_status status;
  *record = (wlmi_measurement_record){0};
  WLM_TRY(check_object(reader, line));
  WLM_TRY(read_members(reader, line, &shape, record, &stated));
  wlmi_fields_derive(record);
  WLM_TRY(as_parsed(wlmi_measurement_check(record)));
  WLM_TRY(wlmi_measurement_id(record, id));
  if (strcmp(id, stated))
    WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "id is %s, but the content has %s: the line was changed after its export", stated,
                      id));
done:
  wlmi_free(stated);
  if (status != WLM_OK) wlmi_measurement_release(record);
  return status;
}

wlm_status wlmi_json_read_recorded(wlmi_json_reader *reader, const char *line, wlmi_recorded *recorded) {
  static const line_shape shape = {"recorded", is_filled, "a string that is not empty", wlmi_recorded_has};
  wlmi_measurement_record record = {.n = 0};
  wlm_status status;
  *recorded = (wlmi_recorded){0};
  WLM_TRY(check_object(reader, line));
  status = read_members(reader, line, &shape, &record, &recorded->device_class);
  wlmi_fields_derive(&record);
  recorded->stats = record.stats;
  recorded->problem = record.problem;
  recorded->n = record.n;
  if (status == WLM_OK) status = as_parsed(wlmi_recorded_check(recorded));
done:
  if (status != WLM_OK) wlmi_recorded_release(recorded);
  return status;
}

wlmi_line_kind wlmi_json_kind(wlmi_json_reader *reader, const char *line) {
  sqlite3_stmt *row;
  wlm_status status = start(reader, KIND, line, &row);
  const wlmi_line_kind kind = status == WLM_OK ? (wlmi_line_kind)sqlite3_column_int(row, 0) : WLM_LINE_MEASUREMENT;
  release(row);
  return kind;
}

wlm_status wlmi_json_read_pin(wlmi_json_reader *reader, const char *line, wlmi_pin_record *pin) {
  static const char members[] = "class text, n integer, pin text, problem text, variant text";
  sqlite3_stmt *row = reader->statements[PIN];
  wlm_status status;
  WLM_TRY(check_object(reader, line));
  WLM_TRY(start(reader, PIN, line, &row));
  if (strcmp(wlmi_sqlite_text(row, 0), members))
    WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "a pin has the members %s; found %.200s", members, wlmi_sqlite_text(row, 0)));
  const wlmi_pin_record read = {(char *)wlmi_sqlite_text(row, 1), (char *)wlmi_sqlite_text(row, 2),
                                (char *)wlmi_sqlite_text(row, 3), sqlite3_column_int64(row, 4),
                                (char *)wlmi_sqlite_text(row, 5)};
  WLM_TRY(as_parsed(wlmi_pin_check(&read)));
  status = wlmi_pin_copy(&read, pin);
done:
  release(row);
  return status;
}
