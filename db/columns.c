#include "db/columns.h"

#include <math.h>

const char *const wlmi_table_names[WLMI_TABLE_COUNT] = {"device", "matrix", "variant", "measurement"};

/* ---- SQL ---- */

/* The names of the columns, each after a comma. */
static void put_columns(unsigned of, wlmi_text *sql) {
  int table = 0;
  for (int i = 0; i < WLMI_FIELD_COUNT; i++) {
    const wlmi_field *field = &wlmi_fields[i];
    if (!(field->of & of)) continue;
    while (!(field->of & WLM_OF(table))) table++;
    if (of == WLMI_OF_ALL)
      wlmi_text_printf(sql, ", %s.%s", wlmi_table_names[table], field->column);
    else
      wlmi_text_printf(sql, ", %s", field->column);
  }
}

static wlm_status prepare(sqlite3 *db, wlmi_text *sql, sqlite3_stmt **statement) {
  const wlm_status status = sql->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "an SQL statement")
                                        : wlmi_sqlite_prepare(db, sql->data, statement);
  wlmi_text_release(sql);
  return status;
}

wlm_status wlmi_query_prepare(sqlite3 *db, const wlmi_query *query, sqlite3_stmt **statement) {
  wlmi_text sql = {0};
  wlmi_text_puts(&sql, query->columns);
  put_columns(query->of, &sql);
  wlmi_text_puts(&sql, query->from);
  return prepare(db, &sql, statement);
}

wlm_status wlmi_insert_prepare(sqlite3 *db, const char *table, const char *keys, unsigned of,
                               sqlite3_stmt **statement) {
  wlmi_text columns = {0}, sql = {0};
  wlmi_text_puts(&columns, keys);
  put_columns(of, &columns);
  wlmi_text_printf(&sql, "INSERT INTO %s (%s) VALUES (?", table, columns.data ? columns.data : "");
  for (const char *c = columns.data; c && *c; c++)
    if (*c == ',') wlmi_text_puts(&sql, ", ?");
  wlmi_text_puts(&sql, ") ON CONFLICT (id) DO NOTHING");
  sql.failed |= columns.failed;
  wlmi_text_release(&columns);
  return prepare(db, &sql, statement);
}

/* ---- values ---- */

static wlm_status bind_field(sqlite3_stmt *statement, int index, const wlmi_field *field,
                             const wlmi_measurement_record *record) {
  char digits[WLMI_HASH_HEX];
  int code;
  switch (field->type) {
    case WLMI_FIELD_TEXT: wlmi_sqlite_bind_text(statement, index, wlmi_field_text(field, record)); break;
    case WLMI_FIELD_INT:
    case WLMI_FIELD_INT64:
    case WLMI_FIELD_INT64_OR_NONE:
    case WLMI_FIELD_BOOL: sqlite3_bind_int64(statement, index, wlmi_field_integer(field, record)); break;
    case WLMI_FIELD_REAL:
    case WLMI_FIELD_REAL_OR_NULL:
      if (isfinite(wlmi_field_real(field, record)))
        sqlite3_bind_double(statement, index, wlmi_field_real(field, record));
      else
        sqlite3_bind_null(statement, index);
      break;
    case WLMI_FIELD_HASH:
      wlmi_hash_to_hex(wlmi_field_hash(field, record), digits);
      code = sqlite3_bind_text(statement, index, digits, -1, SQLITE_TRANSIENT); /* makes a copy */
      if (code != SQLITE_OK) return wlmi_sqlite_error(sqlite3_db_handle(statement), code);
      break;
  }
  return WLM_OK;
}

wlm_status wlmi_insert_run(sqlite3_stmt *statement, const char *const *keys, unsigned of,
                           const wlmi_measurement_record *record) {
  int index = 1;
  for (; *keys; keys++) wlmi_sqlite_bind_text(statement, index++, *keys);
  for (int i = 0; i < WLMI_FIELD_COUNT; i++)
    if (wlmi_fields[i].of & of) WLM_CHECK(bind_field(statement, index++, &wlmi_fields[i], record));
  return wlmi_sqlite_execute(statement);
}

static int read_field(sqlite3_stmt *row, int column, const wlmi_field *field, wlmi_measurement_record *record) {
  switch (field->type) {
    case WLMI_FIELD_TEXT: wlmi_field_set_text(field, record, (char *)wlmi_sqlite_text(row, column)); break;
    case WLMI_FIELD_INT:
    case WLMI_FIELD_INT64:
    case WLMI_FIELD_INT64_OR_NONE:
    case WLMI_FIELD_BOOL: return wlmi_field_set_integer(field, record, sqlite3_column_int64(row, column));
    case WLMI_FIELD_REAL:
    case WLMI_FIELD_REAL_OR_NULL: {
      int null = sqlite3_column_type(row, column) == SQLITE_NULL;
      wlmi_field_set_real(field, record, null ? (double)NAN : sqlite3_column_double(row, column));
      break;
    }
    case WLMI_FIELD_HASH: return wlmi_field_set_hash(field, record, wlmi_sqlite_text(row, column));
  }
  return 1;
}

int wlmi_fields_read(sqlite3_stmt *row, int column, unsigned of, wlmi_measurement_record *record) {
  int fits = 1;
  *record = (wlmi_measurement_record){0};
  for (int i = 0; i < WLMI_FIELD_COUNT; i++)
    if (wlmi_fields[i].of & of) fits &= read_field(row, column++, &wlmi_fields[i], record);
  wlmi_fields_derive(record);
  return fits;
}
