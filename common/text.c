#include "common/text.h"

#include <stdarg.h>
#include <string.h>

#include "common/memory.h"

static int reserve(wlm_text *text, size_t more) {
  if (text->failed) return 0;
  size_t needed = text->size + more + 1;
  if (needed > text->capacity) {
    size_t capacity = needed * 2 > 64 ? needed * 2 : 64;
    char *data = wlm_realloc(text->data, capacity);
    if (!data) {
      text->failed = 1;
      return 0;
    }
    text->data = data;
    text->capacity = capacity;
  }
  return 1;
}

void wlm_text_append(wlm_text *text, const char *data, size_t size) {
  if (!reserve(text, size)) return;
  memcpy(text->data + text->size, data, size);
  text->size += size;
  text->data[text->size] = 0;
}

void wlm_text_puts(wlm_text *text, const char *string) { wlm_text_append(text, string, strlen(string)); }

void wlm_text_printf(wlm_text *text, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int size = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (size >= 0 && reserve(text, (size_t)size)) {
    vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
    text->size += (size_t)size;
  }
  va_end(again);
}

void wlm_text_json_string(wlm_text *text, const char *string) {
  if (!string) {
    wlm_text_puts(text, "null");
    return;
  }
  wlm_text_puts(text, "\"");
  for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
    switch (*c) {
      case '"': wlm_text_puts(text, "\\\""); break;
      case '\\': wlm_text_puts(text, "\\\\"); break;
      case '\n': wlm_text_puts(text, "\\n"); break;
      case '\t': wlm_text_puts(text, "\\t"); break;
      case '\r': wlm_text_puts(text, "\\r"); break;
      default:
        if (*c < 0x20)
          wlm_text_printf(text, "\\u%04x", *c);
        else
          wlm_text_append(text, (const char *)c, 1);
    }
  }
  wlm_text_puts(text, "\"");
}

wlm_status wlm_text_take(wlm_text *text, char **string) {
  if (!text->data) wlm_text_append(text, "", 0);
  if (text->failed) {
    wlm_status status = wlm_fail(WLM_ERR_OUT_OF_MEMORY, "text of more than %zu bytes", text->size);
    wlm_text_release(text);
    *string = NULL;
    return status;
  }
  *string = text->data;
  *text = (wlm_text){0};
  return WLM_OK;
}

void wlm_text_release(wlm_text *text) {
  wlm_free(text->data);
  *text = (wlm_text){0};
}
