/* Before any SQL runs, the first 100 bytes (https://www.sqlite.org/fileformat2.html) show whether the file is
 * warploom's, because SQL may roll back a journal, which is a write. The bytes are read through SQLite's file handle:
 * opening and closing the file separately would drop the POSIX locks that other connections of this process hold on it.
 */
#include "db/database.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/private_file.h"

enum { HEADER_SIZE = 100, APPLICATION_ID_AT = 68 };
enum { LONGEST_VALUE = 64 << 20 }; /* limit for the bytes of a row; models and kernels are smaller */

/* Bytes behind the end of the file are 0. */
static wlm_status read_first(sqlite3 *db, void *bytes, int size, sqlite3_int64 *file_size) {
  sqlite3_file *file = NULL;
  memset(bytes, 0, (size_t)size);
  sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  int code = file->pMethods->xFileSize(file, file_size);
  if (code == SQLITE_OK && *file_size) code = file->pMethods->xRead(file, bytes, size, 0);
  return code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ ? WLM_OK : wlmi_sqlite_error(db, code);
}

static wlm_status check_owner(sqlite3 *db, const char *path, const wlmi_schema *schema) {
  sqlite3_int64 size = 0;
  unsigned char header[HEADER_SIZE];
  const wlm_status status = read_first(db, header, HEADER_SIZE, &size);
  if (status != WLM_OK || !size) return status; /* an empty file is a new one */
  static const char export_begins[] = "{\"warploom\"";
  if (!memcmp(header, export_begins, sizeof export_begins - 1))
    return wlmi_fail(WLM_ERR_DATABASE,
                     "%s: is a file of warploom export and no database; add it to one by warploom import", path);
  if (memcmp(header, "SQLite format 3", 16))
    return wlmi_fail(WLM_ERR_DATABASE, "%s: is not %s, nor any SQLite database; move it away or name another file",
                     path, schema->what);
  const unsigned char *id = header + APPLICATION_ID_AT;
  unsigned found = (unsigned)id[0] << 24 | (unsigned)id[1] << 16 | (unsigned)id[2] << 8 | id[3];
  if (found != (unsigned)schema->application_id)
    return wlmi_fail(WLM_ERR_DATABASE,
                     "%s: is a SQLite database but not %s (application id 0x%08x, expected 0x%08x) and is left alone; "
                     "name another file",
                     path, schema->what, found, (unsigned)schema->application_id);
  return WLM_OK;
}

/* The file to open, and how. */
typedef struct place {
  wlmi_text real; /* without symbolic links */
  int is_frozen;  /* others may add files beside it, so SQLite must neither look for a journal nor write one */
} place;

/* SQLite copies into a database what lies beside it under these names. */
static wlm_status check_beside(const char *path, const place *where) {
  static const char *const endings[] = {"-journal", "-wal", "-shm"};
  wlm_status status = WLM_OK;
  for (size_t i = 0; i < sizeof endings / sizeof *endings && status == WLM_OK; i++) {
    wlmi_text beside = {0};
    struct stat info;
    wlmi_text_printf(&beside, "%s%s", where->real.data, endings[i]);
    if (beside.failed)
      status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", path);
    else if (lstat(beside.data, &info))
      status = errno == ENOENT ? WLM_OK : wlmi_fail(WLM_ERR_IO, "%s: %s", beside.data, strerror(errno));
    else if (!S_ISREG(info.st_mode) || wlmi_private_check(beside.data, &info) != WLM_OK)
      status = wlmi_fail(WLM_ERR_IO,
                         "%s: is not used, because %s could have been written by another user and SQLite would copy it "
                         "into the database; remove that file",
                         path, beside.data);
    else if (where->is_frozen && info.st_size)
      status = wlmi_fail(WLM_ERR_IO,
                         "%s: is not used, because %s shows an unfinished write and others may add files to the "
                         "folder; move both files to a folder of your own",
                         path, beside.data);
    wlmi_text_release(&beside);
  }
  return status;
}

/* If another process created a file meanwhile, that one is checked like any other. */
static wlm_status check_file(const char *path, const char *real, wlmi_store_mode mode) {
  struct stat info;
  wlm_status status = WLM_OK;
  if (mode == WLMI_STORE_WRITE) status = wlmi_private_make(real);
  if (status != WLM_OK) return status;
  if (stat(real, &info)) return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) return wlmi_fail(WLM_ERR_DATABASE, "%s: is not an ordinary file; name another", path);
  return wlmi_private_check(path, &info);
}

/* SQLite interprets names such as :memory:, but not with a folder before them. */
static void put_plain(wlmi_text *name, const char *path) {
  wlmi_text_printf(name, "%s%s", path[0] == '/' ? "" : "./", path);
}

/* A file that is only read may lie in a sticky folder, because others cannot replace it there. */
static wlm_status find_place(const char *path, wlmi_store_mode mode, place *where) {
  struct stat info;
  const int is_there = !stat(path, &info);
  const int is_reader = mode == WLMI_STORE_READ || mode == WLMI_STORE_READ_PATIENT;
  if (!is_there && errno != ENOENT) return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  if (!is_there && mode != WLMI_STORE_WRITE)
    return wlmi_fail(WLM_ERR_NOT_FOUND, "%s: no such file; 'warploom tune' makes it", path);
  if (is_there && !S_ISREG(info.st_mode))
    return wlmi_fail(WLM_ERR_DATABASE, "%s: is not an ordinary file; name another", path);
  if (mode == WLMI_STORE_READ_SHIPPED) {
    put_plain(&where->real, path);
    return where->real.failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", path) : WLM_OK;
  }
  WLM_CHECK(wlmi_private_path(path, mode == WLMI_STORE_WRITE, &where->real, is_reader ? &where->is_frozen : NULL));
  WLM_CHECK(check_file(path, where->real.data, mode));
  return check_beside(path, where);
}

/* With immutable=1 SQLite uses no lock, journal or log. */
static void append_frozen(wlmi_text *name, const char *real) {
  wlmi_text_puts(name, "file:");
  for (; *real; real++)
    if (strchr("%?#", *real))
      wlmi_text_printf(name, "%%%02x", (unsigned char)*real);
    else
      wlmi_text_append(name, real, 1);
  wlmi_text_puts(name, "?immutable=1");
}

/* Opens the file if it is warploom's or empty. */
static wlm_status open_ours(const char *path, wlmi_store_mode mode, const wlmi_schema *schema, sqlite3 **db) {
  const int writable = mode == WLMI_STORE_WRITE;
  place where = {0};
  wlmi_text name = {0};
  wlm_status status;
  *db = NULL;
  if (!path || !*path) return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "the path of %s is empty", schema->what);
  WLM_TRY(find_place(path, mode, &where));
  if (where.is_frozen)
    append_frozen(&name, where.real.data);
  else
    wlmi_text_puts(&name, where.real.data);
  if (name.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", path));
  /* A reader asks for write access too, because it may have to roll back the unfinished write of a killed process; if
   * refused, it reads without. A connection is used by one thread at a time, so it needs no lock, which would cost as
   * much as reading the rows. */
  const int access = where.is_frozen ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE;
  int code = sqlite3_open_v2(name.data, db, access | SQLITE_OPEN_NOMUTEX | (writable ? SQLITE_OPEN_CREATE : 0), NULL);
  if (code == SQLITE_NOMEM) WLM_TRY(wlmi_sqlite_error(NULL, code));
  if (code != SQLITE_OK) {
    const int cause = sqlite3_system_errno(*db);
    status = wlmi_fail(WLM_ERR_IO, "%s: cannot open: %s", path, cause ? strerror(cause) : sqlite3_errstr(code));
    goto done;
  }
  sqlite3_extended_result_codes(*db, 1);
  sqlite3_limit(*db, SQLITE_LIMIT_LENGTH, LONGEST_VALUE);
  WLM_TRY(check_owner(*db, path, schema));
  if (writable && sqlite3_db_readonly(*db, "main") == 1)
    WLM_TRY(wlmi_fail(WLM_ERR_IO, "%s: is read-only; make it writable or name another file", path));
  const int is_patient = writable || mode == WLMI_STORE_READ_PATIENT || mode == WLMI_STORE_SALVAGE;
  wlmi_sqlite_wait(*db, is_patient && schema->is_waited_for ? WLMI_WAIT_A_MINUTE : WLMI_WAIT_SHORTLY);
done:
  wlmi_text_release(&where.real);
  wlmi_text_release(&name);
  if (status != WLM_OK) {
    sqlite3_close(*db);
    *db = NULL;
  }
  return status;
}

static wlm_status check_version(sqlite3 *db, const char *path, const wlmi_schema *schema, int writable,
                                int64_t *version) {
  WLM_CHECK(wlmi_sqlite_integer(db, "PRAGMA user_version", version));
  if (*version < 0 || *version > schema->version)
    return wlmi_fail(WLM_ERR_DATABASE_VERSION,
                     "%s: found schema version %lld, expected %d; use the warploom that wrote it or name another file",
                     path, (long long)*version, schema->version);
  const int oldest = schema->oldest_read ? schema->oldest_read : schema->version;
  if (writable || *version >= oldest) return WLM_OK;
  if (*version == 0) return wlmi_fail(WLM_ERR_NOT_FOUND, "%s: is empty; 'warploom tune' fills it", path);
  return wlmi_fail(WLM_ERR_DATABASE_VERSION,
                   "%s: found schema version %lld, expected %d; any command that writes to it brings it up to date",
                   path, (long long)*version, schema->version);
}

static wlm_status check_schema(sqlite3 *db, const char *path, const wlmi_schema *schema, int64_t version) {
  wlmi_text faults = {0};
  wlm_status status = wlmi_database_compare(db, schema, version, &faults);
  if (status == WLM_OK && faults.size)
    status = wlmi_fail(WLM_ERR_DATABASE, "%s: %s; %s", path, faults.data, schema->mend);
  wlmi_text_release(&faults);
  return status;
}

/* Before anything is written or a row is read. Version and tables are read in one transaction: between two, another
 * connection may migrate the file. */
static wlm_status check_content(sqlite3 *db, const char *path, wlmi_store_mode mode, const wlmi_schema *schema,
                                int64_t *version) {
  WLM_CHECK(wlmi_sqlite_run(db, "BEGIN"));
  wlm_status status = check_version(db, path, schema, mode == WLMI_STORE_WRITE, version);
  if (status == WLM_OK && mode != WLMI_STORE_SALVAGE) status = check_schema(db, path, schema, *version);
  return wlmi_sqlite_end(db, status);
}

/* Reads the version again inside the transaction, because another process may have migrated the file meanwhile. */
static wlm_status migrate(sqlite3 *db, const char *path, const wlmi_schema *schema) {
  int64_t version;
  WLM_CHECK(wlmi_sqlite_begin(db));
  wlm_status status = check_version(db, path, schema, 1, &version);
  for (; status == WLM_OK && version < schema->version; version++) status = wlmi_sqlite_run(db, schema->steps[version]);
  return wlmi_sqlite_end(db, status);
}

wlm_status wlmi_database_hopeless(const char *path) {
  return wlmi_fail(WLM_ERR_DATABASE,
                   "%s: nothing of it can be read any more; move it away, and what tunes or imports makes a new one",
                   path);
}

wlm_status wlmi_database_open(const char *path, wlmi_store_mode mode, const wlmi_schema *schema, sqlite3 **db) {
  int64_t version;
  const int writable = mode == WLMI_STORE_WRITE;
  wlm_status status = open_ours(path, mode, schema, db);
  if (status != WLM_OK) return status;
  sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, mode != WLMI_STORE_SALVAGE, NULL);
  /* With a writable schema (which is not written) SQLite also reads files that have fewer pages than their header says.
   */
  if (mode == WLMI_STORE_SALVAGE) WLM_TRY(wlmi_sqlite_run(*db, "PRAGMA writable_schema = ON"));
  sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  WLM_TRY(wlmi_sqlite_run(*db, schema->settings));
  if (!writable) WLM_TRY(wlmi_sqlite_run(*db, "PRAGMA query_only = ON"));
  WLM_TRY(check_content(*db, path, mode, schema, &version));
  if (writable && version < schema->version) WLM_TRY(migrate(*db, path, schema));
done:
  if (status == WLM_OK) return status;
  sqlite3_close(*db);
  *db = NULL;
  return status == WLM_ERR_DATABASE && mode == WLMI_STORE_SALVAGE ? wlmi_database_hopeless(path) : status;
}

/* Makes an empty database in memory, without tables. */
static wlm_status open_memory(sqlite3 **db) {
  const int code = sqlite3_open_v2(":memory:", db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
  return code == SQLITE_OK ? WLM_OK : wlmi_sqlite_error(*db, code);
}

wlm_status wlmi_database_open_memory(const wlmi_schema *schema, sqlite3 **db) {
  wlm_status status = open_memory(db);
  if (status == WLM_OK) status = wlmi_sqlite_run(*db, schema->settings);
  if (status == WLM_OK) status = migrate(*db, "memory", schema);
  if (status == WLM_OK) return status;
  sqlite3_close(*db);
  *db = NULL;
  return status;
}

wlm_status wlmi_database_peek(const char *path, char *bytes, int size) {
  sqlite3 *db = NULL;
  sqlite3_int64 file_size;
  wlmi_text name = {0};
  struct stat info;
  wlm_status status;
  if (stat(path, &info)) return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) return wlmi_fail(WLM_ERR_DATABASE, "%s: is not an ordinary file; name another", path);
  put_plain(&name, path);
  if (name.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of %s", path));
  const int code = sqlite3_open_v2(name.data, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
  if (code == SQLITE_NOMEM) WLM_TRY(wlmi_sqlite_error(NULL, code));
  if (code != SQLITE_OK)
    WLM_TRY(wlmi_fail(WLM_ERR_IO, "%s: cannot open: %s", path, strerror(sqlite3_system_errno(db))));
  status = read_first(db, bytes, size, &file_size);
done:
  wlmi_text_release(&name);
  sqlite3_close(db);
  return status;
}

wlm_status wlmi_database_reset(const char *path, const wlmi_schema *schema) {
  sqlite3 *db;
  WLM_CHECK(open_ours(path, WLMI_STORE_WRITE, schema, &db));
  sqlite3_db_config(db, SQLITE_DBCONFIG_RESET_DATABASE, 1, NULL);
  wlm_status status = wlmi_sqlite_run(db, "VACUUM");
  sqlite3_db_config(db, SQLITE_DBCONFIG_RESET_DATABASE, 0, NULL);
  if (status == WLM_OK) status = migrate(db, path, schema);
  sqlite3_close(db);
  return status;
}

/* ---- comparing schemas ---- */

/* A foreign schema can run code or hide data: a trigger runs at each write, a view can replace a table. So the schema
 * of a file is compared with that of a new database, which is made in memory by the same steps. */
static const char schema_sql[] =
    "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name, tbl_name";
enum { TYPE, NAME, TABLE, SQL };

/* Makes an empty database of this version. */
static wlm_status make_expected(const wlmi_schema *schema, int64_t version, sqlite3 **db) {
  wlm_status status = open_memory(db);
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
