/* A foreign schema can run code or hide data: a trigger runs at each write, a view can replace a table. So the schema
 * of a file is compared with that of a new database, which is made in memory by the same steps. */
#include <string.h>

#include "db/database.h"

static const char schema_sql[] =
    "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name, tbl_name";
enum { TYPE, NAME, TABLE, SQL };

/* Makes an empty database of this version. */
static wlm_status make_expected(const wlmi_schema *schema, int64_t version, sqlite3 **db) {
  const int code = sqlite3_open_v2(":memory:", db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
  wlm_status status = code == SQLITE_OK ? WLM_OK : wlmi_sqlite_error(NULL, code);
  for (int64_t step = 0; status == WLM_OK && step < version; step++) status = wlmi_sqlite_run(*db, schema->steps[step]);
  return status;
}

static int compare_names(sqlite3_stmt *a, sqlite3_stmt *b) {
  int order = 0;
  for (int i = 0; i < SQL && !order; i++) order = strcmp(wlmi_sqlite_text(a, i), wlmi_sqlite_text(b, i));
  return order;
}

/* Compares without blanks, which SQLite adds where a migration added a column. */
static int same_sql(const char *a, const char *b) {
  for (;; a++, b++) {
    a += strspn(a, " \n\t");
    b += strspn(b, " \n\t");
    if (*a != *b) return 0;
    if (!*a) return 1;
  }
}

static void tell(wlmi_text *faults, const char *format, sqlite3_stmt *row) {
  if (faults->size) wlmi_text_puts(faults, ", ");
  wlmi_text_printf(faults, format, wlmi_sqlite_text(row, TYPE), wlmi_sqlite_text(row, NAME));
}

static wlm_status compare(sqlite3_stmt *found, sqlite3_stmt *expected, wlmi_text *faults) {
  int left, right;
  WLM_CHECK(wlmi_sqlite_step(found, &left));
  WLM_CHECK(wlmi_sqlite_step(expected, &right));
  while (left || right) {
    const int order = !left ? 1 : !right ? -1 : compare_names(found, expected);
    if (order < 0) tell(faults, "the %s '%.64s' is not warploom's", found);
    if (order > 0) tell(faults, "the %s '%.64s' is missing", expected);
    if (order == 0 && !same_sql(wlmi_sqlite_text(found, SQL), wlmi_sqlite_text(expected, SQL)))
      tell(faults, "the %s '%.64s' is not as warploom makes it", found);
    if (order <= 0) WLM_CHECK(wlmi_sqlite_step(found, &left));
    if (order >= 0) WLM_CHECK(wlmi_sqlite_step(expected, &right));
  }
  return WLM_OK;
}

wlm_status wlmi_database_compare(sqlite3 *db, const wlmi_schema *schema, int64_t version, wlmi_text *faults) {
  sqlite3 *fresh = NULL;
  sqlite3_stmt *found = NULL, *expected = NULL;
  wlm_status status;
  WLM_TRY(make_expected(schema, version, &fresh));
  WLM_TRY(wlmi_sqlite_prepare(db, schema_sql, &found));
  WLM_TRY(wlmi_sqlite_prepare(fresh, schema_sql, &expected));
  WLM_TRY(compare(found, expected, faults));
  if (faults->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "comparing schemas");
done:
  sqlite3_finalize(found);
  sqlite3_finalize(expected);
  sqlite3_close(fresh);
  return status;
}
