#include "core/base/json_value.h"

#include <math.h>

#include "core/base/printable.h"

json_t *wlmi_json_of_text(const char *text) {
  if (!text || wlmi_is_utf8(text)) return text ? json_string(text) : json_null();
  wlmi_text printable = {0};
  wlmi_text_printable(&printable, text, 1);
  json_t *value = printable.failed ? NULL : json_string(printable.data);
  wlmi_text_release(&printable);
  return value;
}

json_t *wlmi_json_of_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static int append(const char *data, size_t size, void *out) {
  wlmi_text_append(out, data, size);
  return 0;
}

void wlmi_json_dump(json_t *value, size_t flags, wlmi_text *out) {
  if (!value || json_dump_callback(value, append, out, flags | JSON_ENCODE_ANY)) out->failed = 1;
  json_decref(value);
}
