#include "core/base/json.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "core/base/printable.h"

static void begin(wlmi_text *out, const char *key) {
  if (out->size && !strchr("{[:\n", out->data[out->size - 1])) wlmi_text_puts(out, ",");
  if (!key) return;
  wlmi_text_json_string(out, key);
  wlmi_text_puts(out, ":");
}

void wlmi_json_open(wlmi_text *out, const char *key, char opener) {
  begin(out, key);
  wlmi_text_append(out, &opener, 1);
}

void wlmi_json_close(wlmi_text *out, char closer) { wlmi_text_append(out, &closer, 1); }

void wlmi_json_string(wlmi_text *out, const char *key, const char *value) {
  wlmi_text printable = {0};
  const int is_utf8 = !value || wlmi_is_utf8(value);
  if (!is_utf8) wlmi_text_printable(&printable, value, 1);
  begin(out, key);
  wlmi_text_json_string(out, is_utf8 ? value : printable.data);
  out->failed |= printable.failed;
  wlmi_text_release(&printable);
}

void wlmi_json_integer(wlmi_text *out, const char *key, int64_t value) {
  begin(out, key);
  wlmi_text_integer(out, value);
}

void wlmi_json_real(wlmi_text *out, const char *key, const char *format, double value) {
  char number[64];
  snprintf(number, sizeof number, format, value);
  wlmi_json_raw(out, key, isfinite(value) ? number : "null");
}

void wlmi_json_raw(wlmi_text *out, const char *key, const char *json) {
  begin(out, key);
  wlmi_text_puts(out, json);
}

void wlmi_json_members(wlmi_text *out, const char *members) {
  if (members && *members) wlmi_json_raw(out, NULL, members);
}

/* It has a point also where it is whole. */
static void put_double(wlmi_text *out, const char *key, const char *format, double value) {
  char number[64];
  snprintf(number, sizeof number - 2, format, value);
  if (!strpbrk(number, ".e")) strcat(number, ".0");
  wlmi_json_raw(out, key, isfinite(value) ? number : "null");
}

void wlmi_json_put(wlmi_text *out, const char *formats, ...) {
  char key[32], format[16];
  va_list values;
  va_start(values, formats);
  for (int used; sscanf(formats, " %31[^=]=%15s%n", key, format, &used) == 2; formats += used) {
    if (!strcmp(format, "%s")) {
      const char *text = va_arg(values, const char *);
      wlmi_json_string(out, key, text && *text ? text : NULL);
    } else if (!strcmp(format, "%i")) {
      wlmi_json_raw(out, key, va_arg(values, int) ? "true" : "false");
    } else if (!strcmp(format, "%d")) {
      wlmi_json_integer(out, key, va_arg(values, int));
    } else if (!strcmp(format, "%jd")) {
      wlmi_json_integer(out, key, va_arg(values, intmax_t));
    } else {
      put_double(out, key, format, va_arg(values, double));
    }
  }
  va_end(values);
}
