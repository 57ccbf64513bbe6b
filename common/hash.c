#include "common/hash.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static wlm_hash from_xxh(XXH128_hash_t h) { return (wlm_hash){h.high64, h.low64}; }

wlm_hash wlm_hash_bytes(const void *data, size_t size) { return from_xxh(XXH3_128bits(data, size)); }

void wlm_hash_to_hex(wlm_hash hash, char hex[WLM_HASH_HEX]) {
  snprintf(hex, WLM_HASH_HEX, "%016llx%016llx", (unsigned long long)hash.high, (unsigned long long)hash.low);
}

int wlm_hash_from_hex(const char *hex, wlm_hash *hash) {
  uint64_t parts[2] = {0, 0};
  for (int i = 0; i < 32; i++) {
    static const char digits[] = "0123456789abcdef";
    const char *digit = hex[i] ? strchr(digits, hex[i]) : NULL;
    if (!digit) return 0;
    parts[i / 16] = parts[i / 16] << 4 | (uint64_t)(digit - digits);
  }
  if (hex[32]) return 0;
  *hash = (wlm_hash){parts[0], parts[1]};
  return 1;
}

/* xxHash's own state is over-aligned, so its own allocator makes it. */
wlm_hasher *wlm_hasher_create(void) {
  XXH3_state_t *state = XXH3_createState();
  if (state) XXH3_128bits_reset(state);
  return (wlm_hasher *)state;
}

void wlm_hasher_add(wlm_hasher *hasher, const void *data, size_t size) {
  XXH3_128bits_update((XXH3_state_t *)hasher, data, size);
}

wlm_hash wlm_hasher_result(const wlm_hasher *hasher) {
  return from_xxh(XXH3_128bits_digest((const XXH3_state_t *)hasher));
}

void wlm_hasher_destroy(wlm_hasher *hasher) { XXH3_freeState((XXH3_state_t *)hasher); }
