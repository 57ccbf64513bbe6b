/* xxh3-128 hashes of bytes: as a value, as lower-case hexadecimal, and computed piece by piece. They identify content
 * and are not cryptographic. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct wlmi_hash {
  uint64_t high, low;
} wlmi_hash;

static inline int wlmi_hash_equal(wlmi_hash a, wlmi_hash b) { return a.high == b.high && a.low == b.low; }

enum { WLMI_HASH_HEX = 33 }; /* 32 digits and the NUL */

wlmi_hash wlmi_hash_bytes(const void *data, size_t size);
wlmi_hash wlmi_hash_text(const char *text); /* without its NUL */
void wlmi_hash_to_hex(wlmi_hash hash, char hex[WLMI_HASH_HEX]);
int wlmi_hash_from_hex(const char *hex, wlmi_hash *hash); /* 1 when `hex` is exactly 32 hexadecimal digits */

/* For data that does not lie in memory in one piece. */
typedef struct wlmi_hasher wlmi_hasher;
wlmi_hasher *wlmi_hasher_create(void); /* NULL when out of memory */
void wlmi_hasher_add(wlmi_hasher *hasher, const void *data, size_t size);
void wlmi_hasher_add_int64(wlmi_hasher *hasher, const int64_t *data, int64_t count); /* as little-endian bytes */
wlmi_hash wlmi_hasher_result(const wlmi_hasher *hasher);
void wlmi_hasher_destroy(wlmi_hasher *hasher);
