/* The tuning database without faults: reading back, foreign files, versions, paths, permissions. */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/path.h"
#include "db/database.h"
#include "support/db_fixture.h"
#include "support/failing_malloc.h"
#include "support/test.h"

static wlm_store *store_with(const char *path, int64_t count) {
  put_samples(path, count);
  GET(wlm_store *, store, wlmi_store_open(path, WLMI_STORE_WRITE, &store));
  return store;
}

typedef struct seen {
  int64_t count;
  char last[WLMI_HASH_HEX];
} seen;

static wlm_status compare_with_sample(void *user, const char *id, const wlmi_measurement_record *record) {
  seen *so_far = user;
  char expected[WLMI_HASH_HEX];
  wlmi_measurement_record sample = sample_measurement(record->made_at - 1700000000);
  assert_status(WLM_OK, wlmi_measurement_id(&sample, expected));
  assert_string_equal(id, expected);
  assert_true(strcmp(so_far->last, id) < 0);
  assert_true(record->stats.cv == sample.stats.cv);
  assert_true(record->stats.mean == sample.stats.mean);
  assert_int_equal(record->stats.size, sizeof(wlm_stats));
  assert_memory_equal(record->stats.fingerprint, sample.stats.fingerprint, sizeof sample.stats.fingerprint);
  assert_true(record->failed ? record->max_rel_err != record->max_rel_err : record->max_rel_err == sample.max_rel_err);
  assert_string_equal(record->matrix_name, sample.matrix_name);
  assert_string_equal(record->reason, sample.reason);
  assert_string_equal(record->device.name, sample.device.name);
  assert_int_equal(record->prepare_ps, sample.prepare_ps);
  strcpy(so_far->last, id);
  so_far->count++;
  return WLM_OK;
}

TEST(reading_gives_what_was_put) {
  const char *path = folder_file(&folder, "new/folders/on the way/tuned.db");
  OWNED(wlm_store) *store = store_with(path, 50);
  seen all = {0};
  HELD(wlmi_text) faults = {0};
  assert_status(WLM_OK, each_measurement(store, NULL, compare_with_sample, &all));
  assert_int_equal(all.count, 50);
  wlmi_store_close(store);

  assert_status(WLM_OK, wlmi_store_open(path, WLMI_STORE_READ, &store));
  all = (seen){0};
  assert_status(WLM_OK, each_measurement(store, "cuda/sm_90/NVIDIA H200/132", compare_with_sample, &all));
  assert_int_equal(all.count, 50);
  all = (seen){0};
  assert_status(WLM_OK, each_measurement(store, "cuda/sm_90/NVIDIA H200/131", compare_with_sample, &all));
  assert_int_equal(all.count, 0);
  GET(wlmi_store_counts, counts, wlmi_store_count(store, &counts));
  assert_int_equal(counts.devices, 1);
  assert_int_equal(counts.matrices, 5);
  assert_int_equal(counts.variants, 20);
  assert_int_equal(counts.measurements, 50);
  assert_int_equal(counts.failed, 7);
  assert_status(WLM_OK, wlmi_store_check(store, &faults));
  assert_int_equal(faults.size, 0);
}

TEST(equal_measurements_are_one_row) {
  OWNED(wlm_store) *store = store_with(folder_file(&folder, "tuned.db"), 0);
  wlmi_measurement_record records[3] = {sample_measurement(0), sample_measurement(0), sample_measurement(0)};
  const wlmi_content content = {.records = records, .count = 3};
  records[2].time_ps++;
  GET(int64_t, added, wlmi_store_add(store, &content, NULL, &added));
  assert_int_equal(added, 2);
  assert_status(WLM_OK, wlmi_store_add(store, &content, NULL, &added));
  assert_int_equal(added, 0);
  GET(wlmi_store_counts, counts, wlmi_store_count(store, &counts));
  assert_int_equal(counts.measurements, 2);
}

TEST(a_put_is_all_or_nothing) {
  OWNED(wlm_store) *store = store_with(folder_file(&folder, "tuned.db"), 0);
  wlmi_measurement_record records[3] = {sample_measurement(0), sample_measurement(1), sample_measurement(2)};
  records[2].time_ps = 0;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_store_put(store, records, 3));
  GET(wlmi_store_counts, counts, wlmi_store_count(store, &counts));
  assert_int_equal(counts.measurements + counts.devices + counts.matrices + counts.variants, 0);
  records[2].time_ps = 1;
  assert_status(WLM_OK, wlmi_store_put(store, records, 3)); /* the store still works */
  assert_status(WLM_OK, wlmi_store_put(store, NULL, 0));
}

TEST(a_put_without_memory_says_so) {
  OWNED(wlm_store) *store = store_with(folder_file(&folder, "tuned.db"), 0);
  int64_t failed = 1, refused = 0;
  for (int64_t k = 1; failed; k++) {
    const wlmi_measurement_record record = sample_measurement(k);
    failing_malloc_begin(k, 1);
    const wlm_status status = wlmi_store_put(store, &record, 1);
    failed = failing_malloc_end();
    if (status != WLM_OK) assert_status(WLM_ERR_OUT_OF_MEMORY, status);
    refused += status != WLM_OK;
  }
  assert_true(refused > 0);
}

TEST(loading_copies_and_keeps_no_lock) {
  wlm_store *store = store_with(folder_file(&folder, "tuned.db"), 10);
  wlmi_measurement_record *records, extra = sample_measurement(99);
  GET(int64_t, count, wlmi_store_load(store, NULL, &records, &count));
  assert_int_equal(count, 10);
  wlmi_measurements_free(records, count);
  assert_status(WLM_OK, wlmi_store_put(store, &extra, 1)); /* loading keeps no read lock */
  assert_status(WLM_OK, wlmi_store_load(store, NULL, &records, &count));
  wlmi_store_close(store);
  assert_int_equal(count, 11);
  for (int64_t i = 0; i < count; i++) assert_status(WLM_OK, wlmi_measurement_check(&records[i]));
  wlmi_measurements_free(records, count);
}

/* Opening in either mode must fail with this error and leave the file unchanged. */
static void assert_refused(const char *path, wlm_status expected, const char *part) {
  wlm_store *store;
  size_t before_size, after_size;
  FREED unsigned char *before = read_whole(path, &before_size);
  for (int mode = WLMI_STORE_READ; mode <= WLMI_STORE_WRITE; mode++) {
    assert_status(expected, wlmi_store_open(path, (wlmi_store_mode)mode, &store));
    assert_null(store);
    assert_contains(wlm_error_detail(), part);
    assert_contains(wlm_error_detail(), path);
  }
  FREED unsigned char *after = read_whole(path, &after_size);
  assert_int_equal(before_size, after_size);
  assert_memory_equal(before, after, before_size);
}

TEST(missing_and_empty_files_are_not_found) {
  const char *path = folder_file(&folder, "tuned.db");
  wlm_store *store;
  assert_fails(WLM_ERR_NOT_FOUND, wlmi_store_open(path, WLMI_STORE_READ, &store), path);
  assert_int_equal(-1, access(path, F_OK));
  write_whole(path, "", 0);
  assert_status(WLM_ERR_NOT_FOUND, wlmi_store_open(path, WLMI_STORE_READ, &store));
  wlmi_store_close(store_with(path, 1)); /* an empty file counts as missing */
  assert_status(WLM_OK, wlmi_store_open(path, WLMI_STORE_READ, &store));
  wlmi_measurement_record record = sample_measurement(2);
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlmi_store_put(store, &record, 1), "reading only");
  wlmi_store_close(store);
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_store_open("", WLMI_STORE_WRITE, &store));
}

TEST(files_of_others_are_left_alone) {
  const char *path = folder_file(&folder, "theirs.db");
  run_sql(path, "CREATE TABLE precious (x); INSERT INTO precious VALUES (1);");
  assert_refused(path, WLM_ERR_DATABASE, "is a SQLite database but not a tuning database");
  run_sql(path, "PRAGMA application_id = 1234; PRAGMA user_version = 1;");
  assert_refused(path, WLM_ERR_DATABASE, "application id 0x000004d2, expected 0x574c4d74");
  run_sql(path, "PRAGMA journal_mode = WAL;");
  assert_refused(path, WLM_ERR_DATABASE, "is a SQLite database but not a tuning database");
  static const char text[] = "just some text, longer than a header\n";
  write_whole(path, text, sizeof text - 1);
  assert_refused(path, WLM_ERR_DATABASE, "is not a tuning database, nor any SQLite database");
  static const char lines[] = "{\"warploom\":\"tuned\",\"version\":1}\n";
  write_whole(path, lines, sizeof lines - 1);
  assert_refused(path, WLM_ERR_DATABASE,
                 "is a file of warploom export and no database; add it to one by warploom import");
  wlm_store *store;
  assert_fails(WLM_ERR_DATABASE, wlmi_store_open(folder.path, WLMI_STORE_WRITE, &store), "is not an ordinary file");
  assert_status(WLM_ERR_DATABASE, wlmi_store_open("/dev/null", WLMI_STORE_WRITE, &store));
}

TEST(other_versions_are_refused) {
  const char *path = folder_file(&folder, "tuned.db");
  wlmi_store_close(store_with(path, 3));
  run_sql(path, "PRAGMA user_version = 4;");
  assert_refused(path, WLM_ERR_DATABASE_VERSION, "found schema version 4, expected 3");
  run_sql(path, "PRAGMA user_version = -1;");
  assert_refused(path, WLM_ERR_DATABASE_VERSION, "found schema version -1, expected 3");
}

TEST(older_versions_migrate_forwards) {
  static const char *const steps[] = {
      "CREATE TABLE t (a INTEGER) STRICT; INSERT INTO t VALUES (1); PRAGMA application_id = 77;"
      "PRAGMA user_version = 1;",
      "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 5; PRAGMA user_version = 2;",
      "DROP TABLE t; CREATE TABLE u (a); CREATE TABLE u (a); PRAGMA user_version = 3;"}; /* the second CREATE fails */
  wlmi_schema schema = {.what = "a test database",
                        .application_id = 77,
                        .version = 1,
                        .steps = steps,
                        .mend = "mend it",
                        .settings = "PRAGMA synchronous = OFF"};
  const char *path = folder_file(&folder, "test.db");
  OWN(sqlite3, db, wlmi_database_open(path, WLMI_STORE_WRITE, &schema, &db));
  sqlite3_close(db);
  schema.version = 2;
  assert_fails(WLM_ERR_DATABASE_VERSION, wlmi_database_open(path, WLMI_STORE_READ, &schema, &db),
               "found schema version 1, expected 2");
  assert_status(WLM_OK, wlmi_database_open(path, WLMI_STORE_WRITE, &schema, &db));
  GET(int64_t, value, wlmi_sqlite_integer(db, "SELECT a + b FROM t", &value));
  assert_int_equal(value, 6);
  sqlite3_close(db);
  schema.version = 3;
  assert_status(WLM_ERR_DATABASE, wlmi_database_open(path, WLMI_STORE_WRITE, &schema, &db));
  assert_null(db);
  schema.version = 2; /* a failed migration leaves the old version unchanged */
  assert_status(WLM_OK, wlmi_database_open(path, WLMI_STORE_READ, &schema, &db));
  assert_status(WLM_OK, wlmi_sqlite_integer(db, "SELECT a + b FROM t", &value));
  assert_int_equal(value, 6);
}

/* A file of version 1 cannot be opened for reading. Opening it for writing migrates it: ids stay, and prepare_ps is
 * 0. */
TEST(version_1_migrates_with_prepare_ps_0) {
  wlmi_schema first = wlmi_schema_tuned;
  const char *path = folder_file(&folder, "tuned.db");
  wlm_store *store;
  wlmi_text sql = {0}, faults = {0};
  seen all = {0};
  const wlmi_measurement_record record = sample_measurement(0);
  const wlm_stats *s = &record.stats;
  GET(wlmi_record_ids, ids, wlmi_measurement_ids(&record, &ids));
  wlmi_text_printf(&sql,
                   "INSERT INTO device VALUES ('%s', 'cuda', 'sm_90', '%s', 132, 150000000000,"
                   " 'cuda/sm_90/NVIDIA H200/132');",
                   ids.device, record.device.name);
  wlmi_text_printf(&sql,
                   "INSERT INTO matrix VALUES ('%s', '%s', '%016llx%016llx', 1000, 900, 7000, 300, 3, 40, 900,"
                   " 0.33333333333333331, 0.1);",
                   ids.matrix, record.matrix_name, (unsigned long long)s->fingerprint[0],
                   (unsigned long long)s->fingerprint[1]);
  wlmi_text_printf(&sql, "INSERT INTO variant VALUES ('%s', '%s', '%s');", ids.variant, record.variant, record.version);
  wlmi_text_printf(&sql,
                   "INSERT INTO measurement VALUES ('%s', '%s', 32, 'nvrtc 13.0', '580.65', 'hot', 1000000, 1000,"
                   " 9, 100, 1.2345678901234567e-7, 0, '', 1700000000, '%s', '%s', '%s');",
                   ids.measurement, record.problem, ids.device, ids.matrix, ids.variant);
  first.version = 1;
  OWN(sqlite3, db, wlmi_database_open(path, WLMI_STORE_WRITE, &first, &db));
  sqlite3_close(db);
  run_sql(path, sql.data);
  wlmi_text_release(&sql);
  assert_fails(WLM_ERR_DATABASE_VERSION, wlmi_store_open(path, WLMI_STORE_READ, &store),
               "found schema version 1, expected 3");

  store = store_with(path, 3); /* stores three samples, the first of which is already there */
  assert_status(WLM_OK, each_measurement(store, NULL, compare_with_sample, &all));
  assert_int_equal(all.count, 3);
  assert_status(WLM_OK, wlmi_store_check(store, &faults));
  wlmi_measurement_record prepared = sample_measurement(3);
  prepared.prepare_ps = 77;
  assert_status(WLM_OK, wlmi_store_put(store, &prepared, 1));
  wlmi_store_close(store);
  assert_status(WLM_OK, wlmi_database_open(path, WLMI_STORE_READ, &wlmi_schema_tuned, &db));
  GET(int64_t, version, wlmi_sqlite_integer(db, "PRAGMA user_version", &version));
  assert_int_equal(version, 3);
  assert_status(WLM_OK, wlmi_sqlite_integer(db, "SELECT sum(prepare_ps) FROM measurement", &version));
  assert_int_equal(version, 77);
}

TEST(the_schema_states_its_own_number) {
  const wlmi_schema *schemas[] = {&wlmi_schema_tuned, &wlmi_schema_kernels};
  for (int i = 0; i < 2; i++) {
    OWN(sqlite3, db, wlmi_database_open(folder_file(&folder, i ? "b" : "a"), WLMI_STORE_WRITE, schemas[i], &db));
    GET(int64_t, value, wlmi_sqlite_integer(db, "PRAGMA user_version", &value));
    assert_int_equal(value, schemas[i]->version);
    assert_status(WLM_OK, wlmi_sqlite_integer(db, "PRAGMA application_id", &value));
    assert_int_equal(value, schemas[i]->application_id);
  }
}

TEST(special_names_of_sqlite_are_plain_files) {
  char before[4096];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(0, chdir(folder.path));
  wlmi_store_close(store_with(":memory:", 1));
  wlmi_store_close(store_with("file:x?mode=memory", 1));
  assert_int_equal(0, access(":memory:", F_OK));
  assert_int_equal(0, access("file:x?mode=memory", F_OK));
  assert_int_equal(0, chdir(before));
}

/* Root passes every permission check, so a child process runs the function as user nobody. */
static int as_nobody(int (*work)(void)) {
  pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) || setuid(65534))) _exit(99);
    _exit(work());
  }
  int result;
  assert_int_equal(child, waitpid(child, &result, 0));
  assert_true(WIFEXITED(result));
  if (WEXITSTATUS(result) == 99) skip();
  return WEXITSTATUS(result);
}

static int read_works_and_write_is_refused(void) {
  wlm_store *store;
  seen all = {0};
  if (access(folder.file, W_OK) == 0) return 1; /* the file is writable: the test would show nothing */
  if (wlmi_store_open(folder.file, WLMI_STORE_READ, &store) != WLM_OK) return 2;
  if (each_measurement(store, NULL, compare_with_sample, &all) != WLM_OK || all.count != 5) return 3;
  wlmi_store_close(store);
  if (wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store) != WLM_ERR_IO) return 4;
  return strstr(wlm_error_detail(), "is read-only") ? 0 : 5;
}

static int put_without_folder_rights_is_refused(void) {
  wlm_store *store;
  wlmi_store_counts counts;
  wlmi_measurement_record record = sample_measurement(20);
  if (access(folder.path, W_OK) == 0) return 1;
  if (wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store) != WLM_OK) return 2;
  if (wlmi_store_put(store, &record, 1) != WLM_ERR_IO) return 3; /* SQLite cannot create its journal in this folder */
  if (!strstr(wlm_error_detail(), "writable")) return 4;
  if (wlmi_store_count(store, &counts) != WLM_OK || counts.measurements != 5) return 5;
  wlmi_store_close(store);
  if (wlmi_store_open(in_folder("sub/tuned.db"), WLMI_STORE_WRITE, &store) != WLM_ERR_IO) return 6;
  return strstr(wlm_error_detail(), "cannot make the folder") ? 0 : 7;
}

TEST(read_only_files_and_folders) {
  const char *path = folder_file(&folder, "tuned.db");
  wlmi_store_close(store_with(path, 5));
  chmod(folder.path, 0555);
  chmod(path, 0444);
  assert_int_equal(0, as_nobody(read_works_and_write_is_refused));
  chmod(path, 0644);
  /* the file must belong to the user nobody, since another user's file is refused */
  if (!geteuid()) assert_int_equal(chown(path, 65534, 65534), 0);
  assert_int_equal(0, as_nobody(put_without_folder_rights_is_refused));
  chmod(folder.path, 0755);
}

static void assert_default(wlm_status (*path_of)(wlmi_text *), wlm_status expected, const char *path) {
  HELD(wlmi_text) text = {0};
  assert_status(expected, path_of(&text));
  if (path) assert_string_equal(text.data, path);
}

TEST(default_paths_follow_xdg) {
  setenv("HOME", "/home/x", 1);
  setenv("XDG_DATA_HOME", "/data", 1);
  setenv("XDG_CACHE_HOME", "/cache", 1);
  assert_default(wlmi_store_default_path, WLM_OK, "/data/warploom/tuned.db");
  assert_default(wlmi_kernel_cache_default_path, WLM_OK, "/cache/warploom/kernels.db");
  setenv("XDG_DATA_HOME", "relative", 1);
  unsetenv("XDG_CACHE_HOME");
  assert_default(wlmi_store_default_path, WLM_ERR_NOT_FOUND, NULL); /* this home does not exist */
  setenv("HOME", "/", 1);
  assert_default(wlmi_store_default_path, WLM_OK, "//.local/share/warploom/tuned.db");
  assert_default(wlmi_kernel_cache_default_path, WLM_OK, "//.cache/warploom/kernels.db");
  unsetenv("HOME");
  unsetenv("XDG_DATA_HOME");
  assert_default(wlmi_store_default_path, WLM_ERR_NOT_FOUND, NULL);
}

EACH(folder_begin, folder_end)

int main(void) {
  failing_malloc_open();
  return test_run();
}
