#include "core/base/json.h"

#include <math.h>
#include <string.h>

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
  begin(out, key);
  wlmi_text_json_string(out, value);
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
