/* xxh3-128 as a value, as lower-case hexadecimal and piece by piece. Identifies content: never a secret. */
#ifndef WLM_COMMON_HASH_H
#define WLM_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct wlm_hash {
  uint64_t high, low;
} wlm_hash;

enum { WLM_HASH_HEX = 33 }; /* 32 digits and the NUL */

wlm_hash wlm_hash_bytes(const void *data, size_t size);
void wlm_hash_to_hex(wlm_hash hash, char hex[WLM_HASH_HEX]);
int wlm_hash_from_hex(const char *hex, wlm_hash *hash); /* 1 when `hex` is exactly 32 hexadecimal digits */

/* Hash of something too large or too scattered to lie in one piece. */
typedef struct wlm_hasher wlm_hasher;
wlm_hasher *wlm_hasher_create(void); /* NULL when out of memory */
void wlm_hasher_add(wlm_hasher *hasher, const void *data, size_t size);
void wlm_hasher_add_int64(wlm_hasher *hasher, const int64_t *data, int64_t count); /* as little-endian bytes */
wlm_hash wlm_hasher_result(const wlm_hasher *hasher);
void wlm_hasher_destroy(wlm_hasher *hasher);

#endif
