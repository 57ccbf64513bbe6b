/* Compiled kernels by key, in a SQLite file that may be deleted at any time. Every blob has a hash of it and its key; a
 * damaged one counts as absent. Thread-safe; several processes may use one file.
 *
 * The file grows to `most_bytes`: a put beyond that deletes the least recently used kernels until a quarter is free.
 * Uses are recorded at most once an hour, so a get seldom writes. */
#pragma once

#include "core/base/path.h"

enum { WLMI_KERNEL_CACHE_BYTES = 256 << 20 }; /* of a context */

typedef struct wlmi_kernel_cache wlmi_kernel_cache;

/* Creates the file and its folders if they are missing. A damaged file is emptied if its header says that it is a
 * kernel cache. Any other file, also one of a newer version, is refused and left as it is. Errors as in db/database.h;
 * a program can always run without a cache. */
wlm_status wlmi_kernel_cache_open(const char *path, int64_t most_bytes, wlmi_kernel_cache **cache);
void wlmi_kernel_cache_close(wlmi_kernel_cache *cache); /* NULL is allowed */

/* Both wait half a second for another process that has locked the file. After that, and after a repair that failed, the
 * cache counts as empty until it is closed and keeps nothing; one line in the log says so. */

/* A copy of the blob (wlmi_free); WLM_ERR_NOT_FOUND if there is none or it is damaged. */
wlm_status wlmi_kernel_cache_get(wlmi_kernel_cache *cache, const char *key_hex, void **blob, size_t *size);
/* Adds or replaces the blob of the key. */
wlm_status wlmi_kernel_cache_put(wlmi_kernel_cache *cache, const char *key_hex, const void *blob, size_t size);
