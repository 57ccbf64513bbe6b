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
  if (!reserve(text, 0)) return;
  va_start(args, format);
  va_copy(again, args);
  const size_t room = text->capacity - text->size;
  const int size = vsnprintf(text->data + text->size, room, format, args);
  va_end(args);
  if (size >= 0 && (size_t)size >= room && reserve(text, (size_t)size))
    vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
  va_end(again);
  if (size >= 0 && !text->failed) text->size += (size_t)size;
  text->data[text->size] = 0;
}

void wlmi_text_integer(wlmi_text *text, int64_t value) {
  char digits[20], *first = digits + sizeof digits;
  uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
  do {
    *--first = (char)('0' + left % 10);
    left /= 10;
  } while (left);
  if (value < 0) *--first = '-';
  wlmi_text_append(text, first, (size_t)(digits + sizeof digits - first));
}

void wlmi_text_json_string(wlmi_text *text, const char *string) {
  if (!string) {
    wlmi_text_puts(text, "null");
    return;
  }
  wlmi_text_append(text, "\"", 1);
  for (const char *c = string;; c++) {
    const char *plain = c;
    while (*c != '"' && *c != '\\' && (unsigned char)*c >= 0x20) c++;
    wlmi_text_append(text, plain, (size_t)(c - plain));
    if (!*c) break;
    switch (*c) {
      case '"': wlmi_text_puts(text, "\\\""); break;
      case '\\': wlmi_text_puts(text, "\\\\"); break;
      case '\n': wlmi_text_puts(text, "\\n"); break;
      case '\t': wlmi_text_puts(text, "\\t"); break;
      case '\r': wlmi_text_puts(text, "\\r"); break;
      default: wlmi_text_printf(text, "\\u%04x", *c);
    }
  }
  wlmi_text_append(text, "\"", 1);
}

void wlmi_text_printable(wlmi_text *text, const char *string, int keep_lines) {
  const size_t most = WLMI_PRINTABLE_SIZE(strlen(string));
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
