/* Wraps SQLite with warploom's errors: every failure becomes a wlm_status whose detail text names the file, SQLite's
 * message and what to do. All SQL is made of constant texts; values are bound. */
#pragma once

#include <sqlite3.h>

#include "core/base/status.h"

/* WLM_ERR_DATABASE if the file's content is the cause (damaged, no database, another schema), WLM_ERR_IO if the
 * environment is (full disk, no permission, busy), WLM_ERR_OUT_OF_MEMORY. */
wlm_status wlmi_sqlite_error(sqlite3 *db, int code);
wlm_status wlmi_sqlite_run(sqlite3 *db, const char *sql); /* one or more statements without parameters */
wlm_status wlmi_sqlite_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **statement);
/* *row = 1 on a row, 0 at the end. The statement is reset at the end and after an error. */
wlm_status wlmi_sqlite_step(sqlite3_stmt *statement, int *row);
/* The condition of a loop over rows: 1 on a row; 0 at the end, after an error, which *status gets, and where *status is
 * an error already. */
int wlmi_sqlite_next(sqlite3_stmt *statement, wlm_status *status);
/* Runs a statement that returns no rows, and clears its bindings. */
wlm_status wlmi_sqlite_execute(sqlite3_stmt *statement);
wlm_status wlmi_sqlite_integer(sqlite3 *db, const char *sql, int64_t *value); /* result of a query that returns one
                                                                               * integer */

/* What a statement does when another process has locked the file. Where more than a second passes, a line in the log
 * says what is waited for. */
typedef enum wlmi_sqlite_waiting {
  WLMI_WAIT_NOT,
  WLMI_WAIT_SHORTLY, /* half a second */
  WLMI_WAIT_A_MINUTE
} wlmi_sqlite_waiting;
void wlmi_sqlite_wait(sqlite3 *db, wlmi_sqlite_waiting waiting);
int wlmi_sqlite_is_locked(sqlite3 *db); /* whether the last call failed because the lock was not given in time */

/* A column of the current row; "" where it is NULL. It lives until the next step. */
const char *wlmi_sqlite_text(sqlite3_stmt *row, int column);
/* The status of reading a row: `status`, or WLM_ERR_OUT_OF_MEMORY if a column only seemed invalid because SQLite ran
 * out of memory. */
wlm_status wlmi_sqlite_read(sqlite3_stmt *row, wlm_status status);
/* The bound text must live until the statement is done. */
void wlmi_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text);

/* Begins a transaction and takes the write lock immediately, so that it cannot fail later because of another writer. */
wlm_status wlmi_sqlite_begin(sqlite3 *db);
/* Commits if `status` is WLM_OK, otherwise rolls back; returns `status` or what went wrong with the commit. */
wlm_status wlmi_sqlite_end(sqlite3 *db, wlm_status status);
