#include "core/base/text.h"

#include <stdarg.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/printable.h"

static int reserve(wlmi_text *text, size_t more) {
  if (text->failed) return 0;
  size_t needed = text->size + more + 1;
  if (needed > text->capacity) {
    size_t capacity = needed * 2 > 64 ? needed * 2 : 64;
    char *data = wlmi_realloc(text->data, capacity);
    if (!data) {
      text->failed = 1;
      return 0;
    }
    text->data = data;
    text->capacity = capacity;
  }
  return 1;
}

void wlmi_text_append(wlmi_text *text, const char *data, size_t size) {
  if (!reserve(text, size)) return;
  memcpy(text->data + text->size, data, size);
  text->size += size;
  text->data[text->size] = 0;
}

void wlmi_text_puts(wlmi_text *text, const char *string) { wlmi_text_append(text, string, strlen(string)); }

void wlmi_text_printf(wlmi_text *text, const char *format, ...) {
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

void wlmi_text_json_string(wlmi_text *text, const char *string) {
  if (!string) {
    wlmi_text_puts(text, "null");
    return;
  }
  wlmi_text_puts(text, "\"");
  for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
    switch (*c) {
      case '"': wlmi_text_puts(text, "\\\""); break;
      case '\\': wlmi_text_puts(text, "\\\\"); break;
      case '\n': wlmi_text_puts(text, "\\n"); break;
      case '\t': wlmi_text_puts(text, "\\t"); break;
      case '\r': wlmi_text_puts(text, "\\r"); break;
      default:
        if (*c < 0x20)
          wlmi_text_printf(text, "\\u%04x", *c);
        else
          wlmi_text_append(text, (const char *)c, 1);
    }
  }
  wlmi_text_puts(text, "\"");
}

void wlmi_text_printable(wlmi_text *text, const char *string, int keep_lines) {
  const size_t most = WLM_PRINTABLE_SIZE(strlen(string));
  if (!*string || !reserve(text, most)) return;
  wlmi_printable(string, keep_lines, text->data + text->size, most);
  text->size += strlen(text->data + text->size);
}

wlm_status wlmi_text_take(wlmi_text *text, char **string) {
  if (!text->data) wlmi_text_append(text, "", 0);
  if (text->failed) {
    wlm_status status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "text of more than %zu bytes", text->size);
    wlmi_text_release(text);
    *string = NULL;
    return status;
  }
  *string = text->data;
  *text = (wlmi_text){0};
  return WLM_OK;
}

void wlmi_text_release(wlmi_text *text) {
  wlmi_free(text->data);
  *text = (wlmi_text){0};
}
