/* A string that grows. Zero-initialise it; after a failed append `failed` is set and later appends do
 * nothing, so a writer checks once at its end. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct wlmi_text {
  char *data; /* NUL-terminated once anything was appended */
  size_t size, capacity;
  int failed;
} wlmi_text;

void wlmi_text_append(wlmi_text *text, const char *data, size_t size);
void wlmi_text_puts(wlmi_text *text, const char *string);
void wlmi_text_printf(wlmi_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wlmi_text_integer(wlmi_text *text, int64_t value);
void wlmi_text_json_string(wlmi_text *text, const char *string); /* quoted and escaped; NULL gives null */
/* Text for people (core/base/printable.h). */
void wlmi_text_printable(wlmi_text *text, const char *string, int keep_lines);
/* Gives the string to the caller (wlmi_free) and empties the text; WLM_ERR_OUT_OF_MEMORY if it failed. */
wlm_status wlmi_text_take(wlmi_text *text, char **string);
void wlmi_text_release(wlmi_text *text);
