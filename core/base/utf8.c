#include "core/base/utf8.h"

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
