/* A string that grows. Zero-initialise it; after a failed append `failed` is set and later appends do
 * nothing, so a writer checks once at its end. */
#ifndef WLM_COMMON_TEXT_H
#define WLM_COMMON_TEXT_H

#include <stddef.h>

#include "common/status.h"

typedef struct wlm_text {
  char *data; /* NUL-terminated once anything was appended */
  size_t size, capacity;
  int failed;
} wlm_text;

void wlm_text_append(wlm_text *text, const char *data, size_t size);
void wlm_text_puts(wlm_text *text, const char *string);
void wlm_text_printf(wlm_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wlm_text_json_string(wlm_text *text, const char *string); /* quoted and escaped; NULL gives null */
/* Gives the string to the caller (wlm_free) and empties the text; WLM_ERR_OUT_OF_MEMORY if it failed. */
wlm_status wlm_text_take(wlm_text *text, char **string);
void wlm_text_release(wlm_text *text);

#endif
