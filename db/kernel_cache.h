/* Compiled kernels by key, in a SQLite file that may be deleted at any time. Every blob carries its hash: a
 * damaged one is as good as absent. Thread-safe; several processes may use one file.
 *
 * The file grows to `most_bytes` (and a kernel): a put past that takes out what was used longest ago, until a quarter
 * is free. Use is noted by the hour, so that a get seldom writes. */
#ifndef WLM_DB_KERNEL_CACHE_H
#define WLM_DB_KERNEL_CACHE_H

#include "common/path.h"

enum { WLM_KERNEL_CACHE_BYTES = 256 << 20 }; /* of a context */

typedef struct wlmi_kernel_cache wlmi_kernel_cache;

/* Makes the file and its folders where missing. A damaged file is emptied, but only if its header says that it is
 * a kernel cache: a file of others, a newer version's or one that is no database at all is refused and left
 * as it is. Errors as in db/database.h; none of them should keep a program from running without a cache. */
wlm_status wlmi_kernel_cache_open(const char *path, int64_t most_bytes, wlmi_kernel_cache **cache);
void wlmi_kernel_cache_close(wlmi_kernel_cache *cache); /* NULL is allowed */

/* A copy of the blob (wlmi_free); WLM_ERR_NOT_FOUND where there is none that is whole. */
wlm_status wlmi_kernel_cache_get(wlmi_kernel_cache *cache, const char *key_hex, void **blob, size_t *size);
/* Replaces what the key had. */
wlm_status wlmi_kernel_cache_put(wlmi_kernel_cache *cache, const char *key_hex, const void *blob, size_t size);

#endif
