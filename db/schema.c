/* Journal mode: both databases keep SQLite's rollback journal and never use WAL. WAL needs memory shared by all readers
 * and writers, which network file systems (home folders of clusters) do not have, and side files that a copy or a
 * read-only medium lacks. Its strength, many writes a second beside readers, is not needed: a tuner writes once per
 * candidate, which takes milliseconds to seconds to measure. Using one mode everywhere also avoids detecting the file
 * system.
 *
 * synchronous=FULL for measurements: a put that returned survives the end of the process, and a loss of power leaves an
 * undamaged file that lacks at most the last put (the removal of its journal may not have reached the disk). Lost
 * kernels are recompiled and each blob has a hash, so the kernel cache does not wait for the disk. */
#include "db/schema.h"

#define TEXT_ID "  id TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 32),"

#define STATS_COLUMNS                                                         \
  "  fingerprint TEXT NOT NULL CHECK (length(fingerprint) = 32),"             \
  "  rows INTEGER NOT NULL CHECK (rows >= 0),"                                \
  "  cols INTEGER NOT NULL CHECK (cols >= 0),"                                \
  "  nnz INTEGER NOT NULL CHECK (nnz >= 0),"                                  \
  "  longest INTEGER NOT NULL CHECK (longest BETWEEN 0 AND nnz),"             \
  "  empty_rows INTEGER NOT NULL CHECK (empty_rows BETWEEN 0 AND rows_le_4)," \
  "  rows_le_4 INTEGER NOT NULL CHECK (rows_le_4 <= rows_le_16),"             \
  "  rows_le_16 INTEGER NOT NULL CHECK (rows_le_16 <= rows),"                 \
  "  cv REAL NOT NULL CHECK (cv >= 0),"                                       \
  "  top_share REAL NOT NULL CHECK (top_share BETWEEN 0 AND 1)"

static const char tuned_1[] =
    "CREATE TABLE device (" TEXT_ID
    "  kind TEXT NOT NULL CHECK (kind <> ''),"
    "  arch TEXT NOT NULL,"
    "  name TEXT NOT NULL CHECK (name <> ''),"
    "  processors INTEGER NOT NULL CHECK (processors > 0),"
    "  memory_bytes INTEGER NOT NULL CHECK (memory_bytes >= 0),"
    "  class TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE matrix (" TEXT_ID "  name TEXT NOT NULL," STATS_COLUMNS
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE variant (" TEXT_ID
    "  name TEXT NOT NULL CHECK (name <> ''),"
    "  source_hash TEXT NOT NULL CHECK (length(source_hash) IN (0, 32))"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE measurement (" TEXT_ID
    "  problem TEXT NOT NULL CHECK (problem <> ''),"
    "  n INTEGER NOT NULL CHECK (n >= 0),"
    "  compiler TEXT NOT NULL,"
    "  driver TEXT NOT NULL,"
    "  clock TEXT NOT NULL,"
    "  time_ps INTEGER NOT NULL CHECK (CASE failed WHEN 0 THEN time_ps > 0 ELSE time_ps = 0 END),"
    "  spread_ps INTEGER NOT NULL CHECK (spread_ps >= 0),"
    "  samples INTEGER NOT NULL CHECK (samples >= 0),"
    "  calls_per_sample INTEGER NOT NULL CHECK (calls_per_sample >= 0),"
    "  max_rel_err REAL CHECK (CASE WHEN max_rel_err IS NULL THEN failed ELSE max_rel_err >= 0 END),"
    "  failed INTEGER NOT NULL CHECK (failed IN (0, 1)),"
    "  reason TEXT NOT NULL CHECK ((reason <> '') = failed),"
    "  made_at INTEGER NOT NULL CHECK (made_at >= 0),"
    "  device TEXT NOT NULL REFERENCES device (id),"
    "  matrix TEXT NOT NULL REFERENCES matrix (id),"
    "  variant TEXT NOT NULL REFERENCES variant (id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE pin ("
    "  class TEXT NOT NULL,"
    "  bucket TEXT NOT NULL,"
    "  problem TEXT NOT NULL,"
    "  n INTEGER NOT NULL,"
    "  variant TEXT NOT NULL,"
    "  PRIMARY KEY (class, bucket, problem, n)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE model ("
    "  class TEXT NOT NULL,"
    "  name TEXT NOT NULL,"
    "  made_at INTEGER NOT NULL,"
    "  data BLOB NOT NULL,"
    "  PRIMARY KEY (class, name)"
    ") STRICT;"
    "PRAGMA application_id = 0x574c4d74;" /* WLMt */
    "PRAGMA user_version = 1;";

/* Version 2 adds prepare_ps; older measurements needed no preparing. */
static const char tuned_2[] =
    "ALTER TABLE measurement ADD COLUMN prepare_ps INTEGER NOT NULL DEFAULT 0"
    "  CHECK (prepare_ps >= 0 AND (failed = 0 OR prepare_ps = 0));"
    "PRAGMA user_version = 2;";

/* Version 3 adds recorded problems. Measurements are stored as before, so files of version 2 can be read without
 * migration. */
static const char tuned_3[] =
    "CREATE TABLE recorded (" TEXT_ID "  class TEXT NOT NULL CHECK (class <> '')," STATS_COLUMNS
    ","
    "  problem TEXT NOT NULL CHECK (problem <> ''),"
    "  n INTEGER NOT NULL CHECK (n >= 0)"
    ") STRICT, WITHOUT ROWID;"
    "PRAGMA user_version = 3;";

static const char kernels_1[] =
    "CREATE TABLE kernel ("
    "  key TEXT PRIMARY KEY NOT NULL,"
    "  hash TEXT NOT NULL,"
    "  data BLOB NOT NULL"
    ") STRICT;"
    "PRAGMA application_id = 0x574c4d6b;" /* WLMk */
    "PRAGMA user_version = 1;";

/* Time of the last use in microseconds since 1970; entries from before version 2 have none and are evicted first. */
static const char kernels_2[] =
    "ALTER TABLE kernel ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 2;";

static const char *const tuned_steps[] = {tuned_1, tuned_2, tuned_3};
static const char *const kernels_steps[] = {kernels_1, kernels_2};

#define STEP_COUNT(steps) (int)(sizeof(steps) / sizeof *(steps))
const wlmi_schema wlmi_schema_tuned = {
    "a tuning database",
    0x574c4d74,
    STEP_COUNT(tuned_steps),
    tuned_steps,
    "'warploom db check --repair' keeps what is whole",
    "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;",
    1,
    2};
const wlmi_schema wlmi_schema_kernels = {
    "a kernel cache",
    0x574c4d6b,
    STEP_COUNT(kernels_steps),
    kernels_steps,
    "delete the file",
    "PRAGMA synchronous = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;",
    0,
    0};
