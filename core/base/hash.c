#include "core/base/hash.h"

#include <endian.h>
#include <string.h>
#include <xxhash.h>

static const char digits[] = "0123456789abcdef";

static wlmi_hash from_xxh(XXH128_hash_t h) { return (wlmi_hash){h.high64, h.low64}; }

wlmi_hash wlmi_hash_bytes(const void *data, size_t size) { return from_xxh(XXH3_128bits(data, size)); }

wlmi_hash wlmi_hash_text(const char *text) { return wlmi_hash_bytes(text, strlen(text)); }

void wlmi_hash_to_hex(wlmi_hash hash, char hex[WLMI_HASH_HEX]) {
  const uint64_t parts[2] = {hash.high, hash.low};
  for (int i = 0; i < 32; i++) hex[i] = digits[parts[i / 16] >> (60 - i % 16 * 4) & 15];
  hex[32] = 0;
}

int wlmi_hash_from_hex(const char *hex, wlmi_hash *hash) {
  uint64_t parts[2] = {0, 0};
  for (int i = 0; i < 32; i++) {
    const char *digit = hex[i] ? strchr(digits, hex[i]) : NULL;
    if (!digit) return 0;
    parts[i / 16] = parts[i / 16] << 4 | (uint64_t)(digit - digits);
  }
  if (hex[32]) return 0;
  *hash = (wlmi_hash){parts[0], parts[1]};
  return 1;
}

/* xxHash's own state is over-aligned, so its own allocator makes it. */
wlmi_hasher *wlmi_hasher_create(void) {
  XXH3_state_t *state = XXH3_createState();
  if (state) XXH3_128bits_reset(state);
  return (wlmi_hasher *)state;
}

void wlmi_hasher_add(wlmi_hasher *hasher, const void *data, size_t size) {
  XXH3_128bits_update((XXH3_state_t *)hasher, data, size);
}

void wlmi_hasher_add_int64(wlmi_hasher *hasher, const int64_t *data, int64_t count) {
  uint64_t chunk[512];
  for (int64_t i = 0, size; i < count; i += size) {
    size = count - i < 512 ? count - i : 512;
    for (int64_t k = 0; k < size; k++) chunk[k] = htole64((uint64_t)data[i + k]);
    wlmi_hasher_add(hasher, chunk, (size_t)size * sizeof *chunk);
  }
}

wlmi_hash wlmi_hasher_result(const wlmi_hasher *hasher) {
  return from_xxh(XXH3_128bits_digest((const XXH3_state_t *)hasher));
}

void wlmi_hasher_destroy(wlmi_hasher *hasher) { XXH3_freeState((XXH3_state_t *)hasher); }
