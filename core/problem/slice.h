/* A part of a text that is parsed: it points into the text and has no NUL at its end. */
#pragma once

#include <string.h>

typedef struct wlmi_slice {
  const char *text;
  size_t size;
} wlmi_slice;

/* Without the spaces and tabs around it. */
static inline wlmi_slice wlmi_slice_trim(wlmi_slice s) {
  while (s.size && (s.text[0] == ' ' || s.text[0] == '\t')) s.text++, s.size--;
  while (s.size && (s.text[s.size - 1] == ' ' || s.text[s.size - 1] == '\t')) s.size--;
  return s;
}

static inline int wlmi_slice_is(wlmi_slice s, const char *name) {
  return s.size == strlen(name) && !memcmp(s.text, name, s.size);
}

/* The index of the name that it is; -1 = it is none of them. */
static inline int wlmi_slice_index(wlmi_slice s, const char *const *names, int count) {
  for (int i = 0; i < count; i++)
    if (wlmi_slice_is(s, names[i])) return i;
  return -1;
}
