#include "db/sqlite_util.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static const struct {
  int code; /* primary result code */
  wlm_status status;
  const char *mend;
} mends[] = {
    {SQLITE_CORRUPT, WLM_ERR_DATABASE, "the file is damaged: run 'warploom db check --repair' on it, or move it away"},
    {SQLITE_NOTADB, WLM_ERR_DATABASE, "the file is damaged or no database: move it away or name another with --db"},
    {SQLITE_FULL, WLM_ERR_IO, "nothing of this write was kept: free some space and try again"},
    {SQLITE_IOERR, WLM_ERR_IO, "nothing of this write was kept: check the file system and try again"},
    {SQLITE_BUSY, WLM_ERR_IO, "another process keeps it locked: try again when that is done"},
    {SQLITE_LOCKED, WLM_ERR_IO, "another connection keeps it locked: try again when that is done"},
    {SQLITE_READONLY, WLM_ERR_IO, "make the file and its folder writable or name another with --db"},
    {SQLITE_CANTOPEN, WLM_ERR_IO, "make the file and its folder writable or name another with --db"},
    {SQLITE_PERM, WLM_ERR_IO, "make the file and its folder writable or name another with --db"},
    {SQLITE_NOMEM, WLM_ERR_OUT_OF_MEMORY, "free some memory and try again"},
};

/* Of this thread's last wait for a lock. SQLite takes a file system that has no locks to give for a locked file. */
static _Thread_local int has_no_locks;

wlm_status wlmi_sqlite_error(sqlite3 *db, int code) {
  const char *path = db ? sqlite3_db_filename(db, "main") : NULL;
  const char *said = db ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  wlm_status status = WLM_ERR_DATABASE;
  if (code == SQLITE_IOERR_NOMEM) code = SQLITE_NOMEM;
  if (has_no_locks && (code & 0xff) == SQLITE_BUSY) {
    has_no_locks = 0;
    return wlmi_fail(WLM_ERR_IO, "%s: %s; move the file to another file system, such as a local disk",
                     path && *path ? path : "database", strerror(ENOLCK));
  }
  const char *mend = "run 'warploom db check' on it, or move it away";
  for (size_t i = 0; i < sizeof mends / sizeof *mends; i++)
    if (mends[i].code == (code & 0xff)) {
      status = mends[i].status;
      mend = mends[i].mend;
    }
  return wlmi_fail(status, "%s: %s (SQLite code %d); %s", path && *path ? path : "database", said, code, mend);
}

wlm_status wlmi_sqlite_run(sqlite3 *db, const char *sql) {
  int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
  return code == SQLITE_OK ? WLM_OK : wlmi_sqlite_error(db, sqlite3_extended_errcode(db));
}

wlm_status wlmi_sqlite_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **statement) {
  int code = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
  return code == SQLITE_OK ? WLM_OK : wlmi_sqlite_error(db, sqlite3_extended_errcode(db));
}

wlm_status wlmi_sqlite_step(sqlite3_stmt *statement, int *row) {
  sqlite3 *db = sqlite3_db_handle(statement);
  int code = sqlite3_step(statement);
  *row = code == SQLITE_ROW;
  if (*row) return WLM_OK;
  wlm_status status = code == SQLITE_DONE ? WLM_OK : wlmi_sqlite_error(db, sqlite3_extended_errcode(db));
  sqlite3_reset(statement);
  return status;
}

int wlmi_sqlite_next(sqlite3_stmt *statement, wlm_status *status) {
  int row = 0;
  if (*status == WLM_OK) *status = wlmi_sqlite_step(statement, &row);
  return row;
}

wlm_status wlmi_sqlite_read(sqlite3_stmt *row, wlm_status status) {
  sqlite3 *db = sqlite3_db_handle(row);
  return status != WLM_OK && sqlite3_errcode(db) == SQLITE_NOMEM ? wlmi_sqlite_error(db, SQLITE_NOMEM) : status;
}

wlm_status wlmi_sqlite_execute(sqlite3_stmt *statement) {
  int row;
  wlm_status status = wlmi_sqlite_step(statement, &row);
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return status;
}

wlm_status wlmi_sqlite_integer(sqlite3 *db, const char *sql, int64_t *value) {
  sqlite3_stmt *statement = NULL;
  int row = 0;
  wlm_status status;
  *value = 0;
  WLM_TRY(wlmi_sqlite_prepare(db, sql, &statement));
  WLM_TRY(wlmi_sqlite_step(statement, &row));
  if (row) *value = sqlite3_column_int64(statement, 0);
done:
  sqlite3_finalize(statement);
  return status;
}

const char *wlmi_sqlite_text(sqlite3_stmt *row, int column) {
  const char *text = (const char *)sqlite3_column_text(row, column);
  return text ? text : "";
}

void wlmi_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text) {
  sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

wlm_status wlmi_sqlite_begin(sqlite3 *db) { return wlmi_sqlite_run(db, "BEGIN IMMEDIATE"); }

wlm_status wlmi_sqlite_end(sqlite3 *db, wlm_status status) {
  if (status == WLM_OK) status = wlmi_sqlite_run(db, "COMMIT");
  /* Some errors have rolled back already. The result of the rollback is ignored, because the first error counts. */
  if (!sqlite3_get_autocommit(db)) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
  return status;
}

/* ---- waiting for locks ---- */

enum { TRY_MS = 5, SHORT_MS = 500, LONG_MS = 60000, TELL_MS = 1000 };

/* `tries` counts the calls for one lock. Returns 0 to give up. */
static int wait_for(sqlite3 *db, int tries, int most_ms) {
  has_no_locks = errno == ENOLCK;
  if (has_no_locks && most_ms > SHORT_MS) most_ms = SHORT_MS;
  if (tries * TRY_MS >= most_ms) return 0;
  if (tries * TRY_MS == TELL_MS)
    wlmi_log(WLM_LOG_WARNING, "%s: another process keeps it locked; waiting up to a minute for it",
             sqlite3_db_filename(db, "main"));
  nanosleep(&(struct timespec){.tv_nsec = TRY_MS * 1000000L}, NULL);
  return 1;
}

static int wait_shortly(void *db, int tries) { return wait_for(db, tries, SHORT_MS); }

static int wait_a_minute(void *db, int tries) { return wait_for(db, tries, LONG_MS); }

void wlmi_sqlite_wait(sqlite3 *db, wlmi_sqlite_waiting waiting) {
  static int (*const handlers[])(void *, int) = {
      [WLMI_WAIT_NOT] = NULL, [WLMI_WAIT_SHORTLY] = wait_shortly, [WLMI_WAIT_A_MINUTE] = wait_a_minute};
  sqlite3_busy_handler(db, handlers[waiting], db);
}

int wlmi_sqlite_is_locked(sqlite3 *db) { return (sqlite3_errcode(db) & 0xff) == SQLITE_BUSY; }
