/* A set of strings in which equal texts share one index. Zero-initialise it. */
#pragma once

#include <stdint.h>

#include "core/base/status.h"

typedef struct wlmi_strings {
  char **texts; /* copies, in the order of their first appearance; they never move before the release */
  int64_t count, capacity;
  int64_t *slots; /* hash table with linear probing: 1 + index into texts, 0 = free */
  int64_t slot_count;
} wlmi_strings;

/* The index of the text, which is added if the set does not have it. */
wlm_status wlmi_strings_keep(wlmi_strings *strings, const char *text, int64_t *index);
void wlmi_strings_release(wlmi_strings *strings); /* also of a zeroed one */
