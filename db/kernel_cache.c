#include "db/kernel_cache.h"

#include <pthread.h>
#include <string.h>

#include "common/hash.h"
#include "common/log.h"
#include "common/memory.h"
#include "db/database.h"

static const char get_sql[] = "SELECT hash, data FROM kernel WHERE key = ?1";
static const char put_sql[] =
    "INSERT INTO kernel (key, hash, data) VALUES (?1, ?2, ?3)"
    " ON CONFLICT (key) DO UPDATE SET hash = excluded.hash, data = excluded.data";

struct wlm_kernel_cache {
  pthread_mutex_t lock; /* over all that follows */
  sqlite3 *db;          /* NULL after a repair that failed */
  sqlite3_stmt *get, *put;
  char *path;
};

static void disconnect(wlm_kernel_cache *cache) {
  sqlite3_finalize(cache->get);
  sqlite3_finalize(cache->put);
  sqlite3_close(cache->db);
  cache->get = cache->put = NULL;
  cache->db = NULL;
}

static wlm_status try_connect(wlm_kernel_cache *cache) {
  wlm_status status;
  WLM_TRY(wlm_database_open(cache->path, 1, &wlm_schema_kernels, &cache->db));
  WLM_TRY(wlm_sqlite_prepare(cache->db, get_sql, &cache->get));
  WLM_TRY(wlm_sqlite_prepare(cache->db, put_sql, &cache->put));
done:
  if (status != WLM_OK) disconnect(cache);
  return status;
}

/* Empties the damaged file, which refuses files that are not ours, and opens it afresh. */
static wlm_status repair(wlm_kernel_cache *cache) {
  disconnect(cache);
  wlm_log(WLM_LOG_WARNING, "kernel cache: %s; it is emptied", wlm_error_detail());
  wlm_status status = wlm_database_reset(cache->path, &wlm_schema_kernels);
  return status == WLM_OK ? try_connect(cache) : status;
}

wlm_status wlm_kernel_cache_open(const char *path, wlm_kernel_cache **out) {
  wlm_status status;
  wlm_kernel_cache *cache = wlm_alloc_zero(1, sizeof *cache);
  *out = NULL;
  if (!cache) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "a kernel cache");
  pthread_mutex_init(&cache->lock, NULL);
  cache->path = wlm_strdup(path ? path : "");
  if (!cache->path) WLM_TRY(wlm_fail(WLM_ERR_OUT_OF_MEMORY, "a kernel cache"));
  status = try_connect(cache);
  if (status == WLM_ERR_DATABASE) status = repair(cache);
  WLM_TRY(status);
  *out = cache;
  return WLM_OK;
done:
  wlm_kernel_cache_close(cache);
  return status;
}

void wlm_kernel_cache_close(wlm_kernel_cache *cache) {
  if (!cache) return;
  disconnect(cache);
  pthread_mutex_destroy(&cache->lock);
  wlm_free(cache->path);
  wlm_free(cache);
}

/* Copies the row's blob if it has the row's hash. */
static wlm_status copy_blob(sqlite3_stmt *row, const char *key, void **blob, size_t *size) {
  const void *data = sqlite3_column_blob(row, 1);
  const char *stated = (const char *)sqlite3_column_text(row, 0);
  size_t bytes = (size_t)sqlite3_column_bytes(row, 1);
  char hash[WLM_HASH_HEX];
  wlm_hash_to_hex(wlm_hash_bytes(data, bytes), hash);
  if (!stated || strcmp(stated, hash)) return wlm_fail(WLM_ERR_NOT_FOUND, "kernel %s is damaged in the cache", key);
  *blob = wlm_alloc(bytes);
  if (!*blob) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "kernel of %zu bytes", bytes);
  if (bytes) memcpy(*blob, data, bytes);
  *size = bytes;
  return WLM_OK;
}

static wlm_status get(wlm_kernel_cache *cache, const char *key, void **blob, size_t *size) {
  int row;
  wlm_sqlite_bind_text(cache->get, 1, key);
  wlm_status status = wlm_sqlite_step(cache->get, &row);
  if (status == WLM_OK)
    status = row ? copy_blob(cache->get, key, blob, size) : wlm_fail(WLM_ERR_NOT_FOUND, "kernel %s is not cached", key);
  sqlite3_reset(cache->get);
  sqlite3_clear_bindings(cache->get);
  return status;
}

static wlm_status put(wlm_kernel_cache *cache, const char *key, const void *blob, size_t size) {
  char hash[WLM_HASH_HEX];
  wlm_hash_to_hex(wlm_hash_bytes(blob, size), hash);
  wlm_sqlite_bind_text(cache->put, 1, key);
  wlm_sqlite_bind_text(cache->put, 2, hash);
  sqlite3_bind_blob64(cache->put, 3, size ? blob : "", size, SQLITE_STATIC);
  return wlm_sqlite_execute(cache->put);
}

wlm_status wlm_kernel_cache_get(wlm_kernel_cache *cache, const char *key_hex, void **blob, size_t *size) {
  *blob = NULL;
  *size = 0;
  pthread_mutex_lock(&cache->lock);
  wlm_status status = cache->db ? get(cache, key_hex, blob, size) : WLM_ERR_DATABASE;
  if (cache->db && status == WLM_ERR_DATABASE) status = repair(cache);
  /* After a repair, or without a file, there is nothing to be found. */
  if (!*blob && (status == WLM_OK || status == WLM_ERR_DATABASE))
    status = wlm_fail(WLM_ERR_NOT_FOUND, "kernel %s is not cached", key_hex);
  pthread_mutex_unlock(&cache->lock);
  return status;
}

wlm_status wlm_kernel_cache_put(wlm_kernel_cache *cache, const char *key_hex, const void *blob, size_t size) {
  pthread_mutex_lock(&cache->lock);
  wlm_status status =
      cache->db ? put(cache, key_hex, blob, size)
                : wlm_fail(WLM_ERR_DATABASE, "%s: the kernel cache was damaged and could not be repaired", cache->path);
  if (cache->db && status == WLM_ERR_DATABASE) {
    status = repair(cache);
    if (status == WLM_OK) status = put(cache, key_hex, blob, size);
  }
  pthread_mutex_unlock(&cache->lock);
  return status;
}
