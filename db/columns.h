/* Fields as columns: SQL made from the list of core/records/fields.h, and values that are bound and read by it. The SQL
 * has names of that list alone, nothing of a record. */
#pragma once

#include "core/records/fields.h"
#include "db/sqlite_util.h"

extern const char *const wlmi_table_names[WLMI_TABLE_COUNT];

/* A statement that selects columns and, behind them, a set of fields in their order. Fields of WLMI_OF_ALL have their
 * table's name before them. */
typedef struct wlmi_query {
  const char *columns; /* "SELECT id, class" */
  unsigned of;         /* 0 = no fields */
  const char *from;    /* " FROM recorded ORDER BY id" */
} wlmi_query;
wlm_status wlmi_query_prepare(sqlite3 *db, const wlmi_query *query, sqlite3_stmt **statement);
/* Reads the fields from this column on, and derives the rest; sets no other field. Texts point into the row. Returns 0
 * if a value does not fit its field. */
int wlmi_fields_read(sqlite3_stmt *row, int column, unsigned of, wlmi_measurement_record *record);

/* A statement that inserts a row unless its id is there. keys: its other columns, "id, class". */
wlm_status wlmi_insert_prepare(sqlite3 *db, const char *table, const char *keys, unsigned of, sqlite3_stmt **statement);
/* Inserts a row; keys: the values of those columns, NULL at the end. */
wlm_status wlmi_insert_run(sqlite3_stmt *statement, const char *const *keys, unsigned of,
                           const wlmi_measurement_record *record);
