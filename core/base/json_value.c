#include "core/base/json_value.h"

static int append(const char *data, size_t size, void *out) {
  wlmi_text_append(out, data, size);
  return 0;
}

void wlmi_json_dump(json_t *value, size_t flags, wlmi_text *out) {
  if (!value || json_dump_callback(value, append, out, flags | JSON_ENCODE_ANY)) out->failed = 1;
  json_decref(value);
}
