#include "core/base/strings.h"

#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"

/* The slot of the text, or the free one where it belongs. */
static int64_t *slot_of(const wlmi_strings *strings, const char *text, size_t size) {
  const uint64_t mask = (uint64_t)strings->slot_count - 1; /* a power of 2 */
  for (uint64_t at = wlmi_hash_bytes(text, size).low;; at++) {
    int64_t *slot = &strings->slots[at & mask];
    if (!*slot || !strcmp(strings->texts[*slot - 1], text)) return slot;
  }
}

/* Keeps at least half of the slots free. */
static wlm_status reserve_slots(wlmi_strings *strings) {
  enum { FIRST = 64 };
  if (2 * (strings->count + 1) <= strings->slot_count) return WLM_OK;
  const int64_t slot_count = strings->slot_count ? 2 * strings->slot_count : FIRST;
  int64_t *slots = wlmi_alloc_zero((size_t)slot_count, sizeof *slots);
  if (!slots) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a set of strings");
  wlmi_free(strings->slots);
  strings->slots = slots;
  strings->slot_count = slot_count;
  for (int64_t i = 0; i < strings->count; i++) *slot_of(strings, strings->texts[i], strlen(strings->texts[i])) = 1 + i;
  return WLM_OK;
}

wlm_status wlmi_strings_keep(wlmi_strings *strings, const char *text, int64_t *index) {
  WLM_CHECK(reserve_slots(strings));
  int64_t *slot = slot_of(strings, text, strlen(text));
  if (!*slot) {
    WLM_CHECK(wlmi_grow((void **)&strings->texts, strings->count, &strings->capacity, sizeof *strings->texts,
                        "a set of strings"));
    char *copy = wlmi_strdup(text);
    if (!copy) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a set of strings");
    strings->texts[strings->count++] = copy;
    *slot = strings->count;
  }
  *index = *slot - 1;
  return WLM_OK;
}

void wlmi_strings_release(wlmi_strings *strings) {
  for (int64_t i = 0; i < strings->count; i++) wlmi_free(strings->texts[i]);
  wlmi_free(strings->texts);
  wlmi_free(strings->slots);
  *strings = (wlmi_strings){0};
}
