#include "db/kernel_cache.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "db/database.h"

static const char get_sql[] = "SELECT hash, data, used_at FROM kernel WHERE key = ?1";
static const char put_sql[] =
    "INSERT INTO kernel (key, hash, data, used_at) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (key) DO UPDATE SET hash = excluded.hash, data = excluded.data, used_at = excluded.used_at";
static const char touch_sql[] = "UPDATE kernel SET used_at = ?2 WHERE key = ?1";
static const char used_bytes_sql[] =
    "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
/* ?1 is the size to keep. Entries are counted in whole pages from the most to the least recently used; those beyond ?1
 * are deleted. */
static const char evict_sql[] =
    "DELETE FROM kernel WHERE key IN (SELECT key FROM (SELECT key, sum((length(data) / 4096 + 1) * 4096)"
    " OVER (ORDER BY used_at DESC, key) AS bytes FROM kernel) WHERE bytes > ?1)";

static const int64_t touch_after = 3600 * (int64_t)1000000; /* microseconds */

enum { GET, PUT, TOUCH, USED_BYTES, EVICT, STATEMENT_COUNT };
static const char *const sql[STATEMENT_COUNT] = {get_sql, put_sql, touch_sql, used_bytes_sql, evict_sql};

struct wlmi_kernel_cache {
  pthread_mutex_t lock; /* protects all fields below */
  sqlite3 *db;          /* NULL after a failed repair, and after another process kept it locked for too long */
  sqlite3_stmt *statements[STATEMENT_COUNT];
  int64_t limit; /* bytes */
  char *path;
};

static void disconnect(wlmi_kernel_cache *cache) {
  for (int i = 0; i < STATEMENT_COUNT; i++) {
    sqlite3_finalize(cache->statements[i]);
    cache->statements[i] = NULL;
  }
  sqlite3_close(cache->db);
  cache->db = NULL;
}

static wlm_status try_connect(wlmi_kernel_cache *cache) {
  wlm_status status;
  WLM_TRY(wlmi_database_open(cache->path, WLMI_STORE_WRITE, &wlmi_schema_kernels, &cache->db));
  for (int i = 0; i < STATEMENT_COUNT; i++) WLM_TRY(wlmi_sqlite_prepare(cache->db, sql[i], &cache->statements[i]));
done:
  if (status != WLM_OK) disconnect(cache);
  return status;
}

/* Empties the damaged file (unless it is not warploom's) and opens it again. */
static wlm_status repair(wlmi_kernel_cache *cache) {
  disconnect(cache);
  wlmi_log(WLM_LOG_WARNING, "kernel cache: %s; it is emptied", wlm_error_detail());
  wlm_status status = wlmi_database_reset(cache->path, &wlmi_schema_kernels);
  return status == WLM_OK ? try_connect(cache) : status;
}

wlm_status wlmi_kernel_cache_open(const char *path, int64_t most_bytes, wlmi_kernel_cache **out) {
  wlm_status status;
  wlmi_kernel_cache *cache = wlmi_alloc_zero(1, sizeof *cache);
  *out = NULL;
  if (!cache) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a kernel cache");
  pthread_mutex_init(&cache->lock, NULL);
  cache->limit = most_bytes;
  cache->path = wlmi_strdup(path ? path : "");
  if (!cache->path) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a kernel cache"));
  status = try_connect(cache);
  if (status == WLM_ERR_DATABASE) status = repair(cache);
  WLM_TRY(status);
  *out = cache;
  return WLM_OK;
done:
  wlmi_kernel_cache_close(cache);
  return status;
}

void wlmi_kernel_cache_close(wlmi_kernel_cache *cache) {
  if (!cache) return;
  disconnect(cache);
  pthread_mutex_destroy(&cache->lock);
  wlmi_free(cache->path);
  wlmi_free(cache);
}

/* Ends the use of a file that could not be repaired, or that stays locked: a cache is not worth waiting for again.
 * Returns whether that is so. */
static int gave_up(wlmi_kernel_cache *cache, wlm_status status) {
  if (status == WLM_OK || (cache->db && !wlmi_sqlite_is_locked(cache->db))) return 0;
  wlmi_log(WLM_LOG_WARNING, "continuing without a kernel cache: %s", wlm_error_detail());
  disconnect(cache);
  return 1;
}

/* Of a key and its blob, because a damaged index leads to the row of another key. */
static void hash_row(const char *key, const void *blob, size_t size, char hex[WLMI_HASH_HEX]) {
  const wlmi_hash parts[] = {wlmi_hash_text(key), wlmi_hash_bytes(blob, size)};
  wlmi_hash_to_hex(wlmi_hash_bytes(parts, sizeof parts), hex);
}

/* Copies the row's blob if it has the row's hash. */
static wlm_status copy_blob(sqlite3_stmt *row, const char *key, void **blob, size_t *size) {
  const void *data = sqlite3_column_blob(row, 1);
  const char *stated = (const char *)sqlite3_column_text(row, 0);
  size_t bytes = (size_t)sqlite3_column_bytes(row, 1);
  char hash[WLMI_HASH_HEX];
  hash_row(key, data, bytes, hash);
  if (!stated || strcmp(stated, hash)) return wlmi_fail(WLM_ERR_NOT_FOUND, "kernel %s is damaged in the cache", key);
  *blob = wlmi_alloc(bytes);
  if (!*blob) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "kernel of %zu bytes", bytes);
  if (bytes) memcpy(*blob, data, bytes);
  *size = bytes;
  return WLM_OK;
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* For what is done beside a get or a put: it waits for no lock, and a failure does not matter. */
static void execute_if_free(wlmi_kernel_cache *cache, sqlite3_stmt *statement) {
  wlmi_sqlite_wait(cache->db, WLMI_WAIT_NOT);
  if (wlmi_sqlite_execute(statement) != WLM_OK) wlmi_log(WLM_LOG_DEBUG, "kernel cache: %s", wlm_error_detail());
  wlmi_sqlite_wait(cache->db, WLMI_WAIT_SHORTLY);
}

/* Records the use of a kernel. */
static void touch(wlmi_kernel_cache *cache, const char *key) {
  sqlite3_stmt *statement = cache->statements[TOUCH];
  wlmi_sqlite_bind_text(statement, 1, key);
  sqlite3_bind_int64(statement, 2, now());
  execute_if_free(cache, statement);
}

static wlm_status get(wlmi_kernel_cache *cache, const char *key, void **blob, size_t *size) {
  sqlite3_stmt *statement = cache->statements[GET];
  int row, is_old = 0;
  wlmi_sqlite_bind_text(statement, 1, key);
  wlm_status status = wlmi_sqlite_step(statement, &row);
  if (status == WLM_OK)
    status = row ? copy_blob(statement, key, blob, size) : wlmi_fail(WLM_ERR_NOT_FOUND, "kernel %s is not cached", key);
  if (status == WLM_OK) is_old = sqlite3_column_int64(statement, 2) < now() - touch_after;
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  if (is_old) touch(cache, key);
  return status;
}

/* Entries that cannot be evicted now are evicted by a later put. */
static void evict(wlmi_kernel_cache *cache) {
  int row;
  int64_t bytes = 0;
  sqlite3_stmt *used = cache->statements[USED_BYTES], *statement = cache->statements[EVICT];
  wlm_status status = wlmi_sqlite_step(used, &row);
  if (status == WLM_OK && row) bytes = sqlite3_column_int64(used, 0);
  sqlite3_reset(used);
  if (bytes <= cache->limit) return;
  sqlite3_bind_int64(statement, 1, cache->limit / 4 * 3);
  execute_if_free(cache, statement);
}

static wlm_status put(wlmi_kernel_cache *cache, const char *key, const void *blob, size_t size) {
  sqlite3_stmt *statement = cache->statements[PUT];
  char hash[WLMI_HASH_HEX];
  hash_row(key, blob, size, hash);
  wlmi_sqlite_bind_text(statement, 1, key);
  wlmi_sqlite_bind_text(statement, 2, hash);
  sqlite3_bind_blob64(statement, 3, size ? blob : "", size, SQLITE_STATIC);
  sqlite3_bind_int64(statement, 4, now());
  wlm_status status = wlmi_sqlite_execute(statement);
  if (status == WLM_OK) evict(cache);
  return status;
}

wlm_status wlmi_kernel_cache_get(wlmi_kernel_cache *cache, const char *key_hex, void **blob, size_t *size) {
  wlm_status status = WLM_OK;
  *blob = NULL;
  *size = 0;
  pthread_mutex_lock(&cache->lock);
  if (cache->db) {
    status = get(cache, key_hex, blob, size);
    if (status == WLM_ERR_DATABASE) status = repair(cache);
    if (gave_up(cache, status)) status = WLM_OK;
  }
  /* after a repair, or without a file, the cache is empty */
  if (!*blob && status == WLM_OK) status = wlmi_fail(WLM_ERR_NOT_FOUND, "kernel %s is not cached", key_hex);
  pthread_mutex_unlock(&cache->lock);
  return status;
}

wlm_status wlmi_kernel_cache_put(wlmi_kernel_cache *cache, const char *key_hex, const void *blob, size_t size) {
  wlm_status status = WLM_OK;
  pthread_mutex_lock(&cache->lock);
  if (cache->db) {
    status = put(cache, key_hex, blob, size);
    if (status == WLM_ERR_DATABASE) {
      status = repair(cache);
      if (status == WLM_OK) status = put(cache, key_hex, blob, size);
    }
    if (gave_up(cache, status)) status = WLM_OK;
  }
  pthread_mutex_unlock(&cache->lock);
  return status;
}
