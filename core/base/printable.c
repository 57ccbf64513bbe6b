#include "core/base/printable.h"

#include <stdio.h>
#include <string.h>

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

/* ---- UTF-8 ---- */

int wlmi_utf8_length(const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  if (s[0] < 0x80) return 1;
  int length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
  for (int i = 1; i < length; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)) return 0;
  if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) return 0;
  return length;
}

int wlmi_is_utf8(const char *text) {
  while (*text) {
    const int length = wlmi_utf8_length(text);
    if (!length) return 0;
    text += length;
  }
  return 1;
}
