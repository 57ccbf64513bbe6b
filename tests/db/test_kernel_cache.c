/* The kernel cache: get returns what was put, or nothing; a damaged file is repaired, and foreign files are not
 * touched. */
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/db_fixture.h"
#include "support/test.h"

enum { KERNELS = 40, MOST_BYTES = 9000 };

static int setup(void **state) {
  folder_begin(state);
  folder_file(&folder, "cache/kernels.db");
  return 0;
}

/* Makes kernel i: its size, bytes and key follow from i. */
static size_t kernel(int i, unsigned char *data, char key[WLMI_HASH_HEX]) {
  uint64_t seed = (uint64_t)i;
  size_t size = i ? draw(&seed) % MOST_BYTES : 0;
  for (size_t k = 0; k < size; k++) data[k] = (unsigned char)draw(&seed);
  wlmi_hash_to_hex(wlmi_hash_bytes(&i, sizeof i), key);
  return size;
}

static wlm_status put_kernel(wlmi_kernel_cache *cache, int i) {
  unsigned char data[MOST_BYTES];
  char key[WLMI_HASH_HEX];
  size_t size = kernel(i, data, key);
  return wlmi_kernel_cache_put(cache, key, data, size);
}

/* Returns 1 if the kernel is found and correct, 0 if it is absent, -1 otherwise. */
static int get_kernel(wlmi_kernel_cache *cache, int i) {
  unsigned char data[MOST_BYTES];
  char key[WLMI_HASH_HEX];
  WLM_FREED void *blob = NULL;
  size_t expected = kernel(i, data, key), size;
  wlm_status status = wlmi_kernel_cache_get(cache, key, &blob, &size);
  if (status == WLM_ERR_NOT_FOUND) return blob || size ? -1 : 0;
  int right = status == WLM_OK && size == expected && !memcmp(blob, data, size);
  return right ? 1 : -1;
}

static wlmi_kernel_cache *open_cache(void) {
  GET(wlmi_kernel_cache *, cache, wlmi_kernel_cache_open(folder.file, WLMI_KERNEL_CACHE_BYTES, &cache));
  return cache;
}

static wlmi_kernel_cache *filled_cache(void) {
  wlmi_kernel_cache *cache = open_cache();
  for (int i = 0; i < KERNELS; i++) assert_status(WLM_OK, put_kernel(cache, i));
  return cache;
}

TEST(get_returns_what_was_put) {
  OWNED(wlmi_kernel_cache) *cache = filled_cache();
  for (int i = 0; i < KERNELS; i++) assert_int_equal(1, get_kernel(cache, i));
  assert_int_equal(0, get_kernel(cache, KERNELS));
  wlmi_kernel_cache_close(cache);
  cache = open_cache();
  for (int i = 0; i < KERNELS; i++) assert_int_equal(1, get_kernel(cache, i));
  char key[WLMI_HASH_HEX];
  unsigned char data[MOST_BYTES];
  WLM_FREED void *blob = NULL;
  kernel(3, data, key);
  assert_status(WLM_OK, wlmi_kernel_cache_put(cache, key, "new", 4)); /* the second put replaces the first */
  GET(size_t, size, wlmi_kernel_cache_get(cache, key, &blob, &size));
  assert_int_equal(size, 4);
  assert_string_equal(blob, "new");
}

TEST(a_damaged_blob_is_absent_and_replaced) {
  wlmi_kernel_cache_close(filled_cache());
  run_sql(folder.file, "UPDATE kernel SET data = zeroblob(length(data) + 1)");
  OWNED(wlmi_kernel_cache) *cache = open_cache();
  for (int i = 0; i < KERNELS; i++) assert_int_equal(0, get_kernel(cache, i));
  assert_status(WLM_OK, put_kernel(cache, 5));
  assert_int_equal(1, get_kernel(cache, 5));
}

/* As after a changed byte in the index: each key leads to the row of kernel 3. */
TEST(the_kernel_of_another_key_is_absent) {
  wlmi_kernel_cache_close(filled_cache());
  char key[WLMI_HASH_HEX], statement[256];
  unsigned char data[MOST_BYTES];
  kernel(3, data, key);
  snprintf(statement, sizeof statement,
           "UPDATE kernel SET (hash, data) = (SELECT hash, data FROM kernel WHERE key = '%s')", key);
  run_sql(folder.file, statement);
  OWNED(wlmi_kernel_cache) *cache = open_cache();
  for (int i = 0; i < KERNELS; i++) assert_int_equal(i == 3, get_kernel(cache, i));
  assert_status(WLM_OK, put_kernel(cache, 5));
  assert_int_equal(1, get_kernel(cache, 5));
}

/* Everything behind the header of a kernel cache is damaged: the cache still opens, returns only correct kernels and
 * stores new ones. */
TEST(a_damaged_cache_is_recreated) {
  wlmi_kernel_cache_close(filled_cache());
  size_t size;
  FREED unsigned char *whole = read_whole(folder.file, &size), *copy = malloc(size);
  uint64_t seed = 21;
  int lost = 0;
  for (int round = 0; round < 120; round++) {
    memcpy(copy, whole, size);
    size_t kept = round % 3 ? size : 100 + draw(&seed) % (size - 100);
    for (int flips = round % 3 * 40; flips > 0; flips--)
      copy[100 + draw(&seed) % (size - 100)] = (unsigned char)draw(&seed);
    if (round % 5 == 0) memset(copy + 100, 0xa5, 4000); /* overwrites the schema */
    write_whole(folder.file, copy, kept);
    OWNED(wlmi_kernel_cache) *cache = open_cache();
    for (int i = 0; i < KERNELS; i++) {
      int found = get_kernel(cache, i);
      assert_true(found >= 0);
      lost += !found;
    }
    for (int i = 0; i < KERNELS; i++) assert_status(WLM_OK, put_kernel(cache, i));
    for (int i = 0; i < KERNELS; i++) assert_int_equal(1, get_kernel(cache, i));
  }
  print_message("%d of %d kernels were lost to damage\n", lost, 120 * KERNELS);
  assert_true(lost > 1000);
}

static void assert_refused(wlm_status expected) {
  size_t before_size, after_size;
  wlmi_kernel_cache *cache;
  FREED unsigned char *before = read_whole(folder.file, &before_size);
  assert_status(expected, wlmi_kernel_cache_open(folder.file, WLMI_KERNEL_CACHE_BYTES, &cache));
  assert_null(cache);
  assert_contains(wlm_error_detail(), folder.file);
  FREED unsigned char *after = read_whole(folder.file, &after_size);
  assert_int_equal(before_size, after_size);
  assert_memory_equal(before, after, after_size);
}

TEST(files_of_others_are_left_alone) {
  wlmi_kernel_cache_close(filled_cache()); /* creates the folder */
  write_whole(folder.file, "my thesis", 9);
  assert_refused(WLM_ERR_DATABASE);
  unlink(folder.file);
  wlm_store *store; /* a path of tuned.db passed by mistake: its measurements must survive */
  assert_status(WLM_OK, wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store));
  wlmi_store_close(store);
  assert_refused(WLM_ERR_DATABASE);
  size_t size; /* the same for a damaged tuned.db */
  FREED unsigned char *data = read_whole(folder.file, &size);
  memset(data + 100, 0xa5, 3000);
  write_whole(folder.file, data, size / 2);
  assert_refused(WLM_ERR_DATABASE);
}

TEST(a_newer_version_is_left_alone) {
  wlmi_kernel_cache_close(filled_cache());
  run_sql(folder.file, "PRAGMA user_version = 9");
  assert_refused(WLM_ERR_DATABASE_VERSION);
}

TEST(an_open_cache_survives_its_deletion) {
  OWNED(wlmi_kernel_cache) *cache = filled_cache();
  unlink(folder.file);
  for (int i = 0; i < KERNELS; i++) assert_true(get_kernel(cache, i) >= 0);
  put_kernel(cache, 1); /* may succeed or fail */
  wlmi_kernel_cache_close(cache);
  cache = filled_cache();
  assert_int_equal(1, get_kernel(cache, 1));
}

static int64_t count_rows(void) {
  OWNED(sqlite3) *db = NULL;
  sqlite3_stmt *row;
  assert_int_equal(SQLITE_OK, sqlite3_open(folder.file, &db));
  assert_int_equal(SQLITE_OK, sqlite3_prepare_v2(db, "SELECT count(*) FROM kernel", -1, &row, NULL));
  assert_int_equal(SQLITE_ROW, sqlite3_step(row));
  int64_t count = sqlite3_column_int64(row, 0);
  sqlite3_finalize(row);
  return count;
}

/* Every kernel was used a day ago, a few are used today, and then the cache becomes full. */
TEST(the_least_recently_used_kernels_are_evicted) {
  enum { LIMIT = 250000, ROUNDS = 400, USED = 7 };
  struct stat info;
  OWNED(wlmi_kernel_cache) *cache = filled_cache();
  run_sql(folder.file, "UPDATE kernel SET used_at = used_at - 86400000000");
  for (int i = 0; i < USED; i++) assert_int_equal(1, get_kernel(cache, i));
  wlmi_kernel_cache_close(cache);
  assert_status(WLM_OK, wlmi_kernel_cache_open(folder.file, LIMIT, &cache));
  int last = KERNELS;
  for (int64_t before = 0; count_rows() > before; last++) { /* until the cache evicts one */
    before = count_rows();
    assert_status(WLM_OK, put_kernel(cache, last));
    assert_in_range(last, KERNELS, KERNELS + 100);
  }
  int gone = 0;
  for (int i = 0; i < USED; i++) assert_int_equal(1, get_kernel(cache, i));
  for (int i = USED; i < KERNELS; i++) gone += !get_kernel(cache, i);
  for (int i = KERNELS; i < last; i++) assert_int_equal(1, get_kernel(cache, i));
  assert_true(gone > 5 && gone < KERNELS - USED);
  for (int i = 0; i < ROUNDS; i++) {
    assert_status(WLM_OK, put_kernel(cache, 1000 + i));
    assert_int_equal(1, get_kernel(cache, 1000 + i));
    assert_int_equal(0, stat(folder.file, &info));
    assert_true(info.st_size <= LIMIT + 4 * MOST_BYTES);
  }
}

/* Nothing is evicted as long as there is room. A cache that is larger than its limit, which an earlier version may have
 * left, shrinks at the next put. */
TEST(only_a_full_cache_shrinks) {
  struct stat info;
  wlmi_kernel_cache_close(filled_cache());
  assert_int_equal(0, stat(folder.file, &info));
  OWN(wlmi_kernel_cache, cache, wlmi_kernel_cache_open(folder.file, info.st_size * 11 / 10, &cache));
  assert_status(WLM_OK, put_kernel(cache, 1));
  assert_int_equal(count_rows(), KERNELS);
  wlmi_kernel_cache_close(cache);
  assert_status(WLM_OK, wlmi_kernel_cache_open(folder.file, info.st_size / 2, &cache));
  assert_status(WLM_OK, put_kernel(cache, 1));
  assert_in_range(count_rows(), 1, KERNELS / 2);
  assert_int_equal(1, get_kernel(cache, 1));
}

TEST(a_cache_of_version_1_is_brought_up_to_date) {
  wlmi_kernel_cache_close(filled_cache());
  run_sql(folder.file, "ALTER TABLE kernel DROP COLUMN used_at; PRAGMA user_version = 1");
  OWNED(wlmi_kernel_cache) *cache = open_cache();
  for (int i = 0; i < KERNELS; i++) assert_int_equal(1, get_kernel(cache, i));
}

static int lines;

static void count_lines(void *user, wlm_log_level level, const char *message) {
  (void)user, (void)level;
  lines++;
  assert_contains(message, "continuing without a kernel cache", "locked");
}

/* A cache is not worth waiting for: after one wait it counts as empty, also when it is free again. */
TEST(a_locked_cache_is_given_up) {
  OWNED(wlmi_kernel_cache) *cache = filled_cache();
  wlmi_kernel_cache *other = open_cache(), *late;
  sqlite3 *db;
  lines = 0;
  wlm_set_log(count_lines, NULL, WLM_LOG_WARNING);
  assert_int_equal(SQLITE_OK, sqlite3_open(folder.file, &db));
  assert_int_equal(SQLITE_OK, sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL));
  assert_int_equal(0, get_kernel(cache, 1));
  assert_int_equal(lines, 1);
  assert_status(WLM_OK, put_kernel(other, 1));
  assert_int_equal(lines, 2);
  assert_status(WLM_ERR_IO, wlmi_kernel_cache_open(folder.file, WLMI_KERNEL_CACHE_BYTES, &late));
  assert_int_equal(SQLITE_OK, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
  sqlite3_close(db);
  for (int i = 0; i < KERNELS; i++) {
    assert_int_equal(0, get_kernel(cache, i));
    assert_status(WLM_OK, put_kernel(cache, i));
  }
  assert_int_equal(lines, 2);
  wlm_set_log(NULL, NULL, WLM_LOG_WARNING);
  wlmi_kernel_cache_close(cache);
  wlmi_kernel_cache_close(other);
  cache = open_cache();
  for (int i = 0; i < KERNELS; i++) assert_int_equal(1, get_kernel(cache, i));
}

/* A process that had to wait for the others for too long goes on without the cache. */
static void *use_from_thread(void *argument) {
  wlmi_kernel_cache *cache = argument;
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < KERNELS; i++)
      if (get_kernel(cache, i) < 0 || put_kernel(cache, i) != WLM_OK || get_kernel(cache, i) < 0) return cache;
  return NULL;
}

TEST(threads_and_processes_share_it) {
  enum { PROCESSES = 3, THREADS = 3 };
  pid_t children[PROCESSES];
  for (int p = 0; p < PROCESSES; p++) {
    if ((children[p] = fork()) == 0) {
      wlmi_kernel_cache *cache;
      pthread_t threads[THREADS];
      int failed = wlmi_kernel_cache_open(folder.file, WLMI_KERNEL_CACHE_BYTES, &cache) != WLM_OK;
      for (int t = 0; !failed && t < THREADS; t++) pthread_create(&threads[t], NULL, use_from_thread, cache);
      for (int t = 0; !failed && t < THREADS; t++) {
        void *result;
        pthread_join(threads[t], &result);
        failed |= result != NULL;
      }
      if (failed) fprintf(stderr, "%s\n", wlm_error_detail());
      _exit(failed);
    }
  }
  for (int p = 0; p < PROCESSES; p++) {
    int result;
    assert_int_equal(children[p], waitpid(children[p], &result, 0));
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
  }
  OWNED(wlmi_kernel_cache) *cache = open_cache();
  int found = 0;
  for (int i = 0; i < KERNELS; i++) found += get_kernel(cache, i);
  assert_true(found > 0);
}

EACH(setup, folder_end)
