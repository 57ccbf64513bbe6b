#include "core/base/printable.h"

#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

enum { ESCAPE = 8 };

/* The next character as it is to be shown, of *size bytes, which may lie in `escape`; *text moves behind it. */
static const char *next(const char **text, int keep_lines, char escape[ESCAPE], size_t *size) {
  static const char named[] = "\n\t\r", names[] = "ntr";
  const char *at = *text, *name = strchr(named, *at);
  const unsigned char byte = (unsigned char)*at;
  const int length = wlmi_utf8_length(at);
  *escape = 0;
  *text += length ? length : 1;
  *size = (size_t)length;
  if (keep_lines && (byte == '\n' || byte == '\t')) return at;
  if (name)
    snprintf(escape, ESCAPE, "\\%c", names[name - named]);
  else if (!length || byte < 0x20 || byte == 0x7f)
    snprintf(escape, ESCAPE, "\\x%02x", byte);
  else if (byte == 0xc2 && (unsigned char)at[1] < 0xa0)
    snprintf(escape, ESCAPE, "\\u%04x", (unsigned char)at[1]);
  else
    return at;
  *size = strlen(escape);
  return escape;
}

void wlmi_printable(const char *text, int keep_lines, char *out, size_t size) {
  char escape[ESCAPE];
  size_t used = 0, more;
  while (*text) {
    const char *shown = next(&text, keep_lines, escape, &more);
    if (used + more >= size) break;
    memcpy(out + used, shown, more);
    used += more;
  }
  out[used] = 0;
}
