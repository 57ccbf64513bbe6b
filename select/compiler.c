#include "select/compiler.h"

#include <stdlib.h>
#include <string.h>

/* The version begins at the first digit behind a space or a parenthesis, so neither the 86 of
 * "x86_64-conda-linux-gnu-cc 11.4" nor the 12 of "gcc-12 12.3" counts. The end of the text if there is none. */
static const char *version_of(const char *compiler) {
  const char *at = compiler;
  for (; *at; at++)
    if (*at >= '0' && *at <= '9' && at > compiler && (at[-1] == ' ' || at[-1] == '(')) break;
  return at;
}

/* The next character of a program's name; skips "-12" at the end of a word, a version that is part of the name. */
static const char *skip_suffix(const char *at) {
  const size_t length = *at == '-' ? 1 + strspn(at + 1, "0123456789") : 0;
  return length > 1 && (at[length] == ' ' || !at[length]) ? at + length : at;
}

int wlmi_compiler_same(const char *a, const char *b) {
  if (a == b) return 1;
  if (!a) a = "";
  if (!b) b = "";
  const char *const a_end = version_of(a), *const b_end = version_of(b);
  for (;; a++, b++) {
    a = skip_suffix(a);
    b = skip_suffix(b);
    if (a >= a_end || b >= b_end) return a >= a_end && b >= b_end;
    if (*a != *b) return 0;
  }
}

/* The next number of a version, -1 behind its end. */
static long long next_number(const char **version) {
  char *end;
  if (**version < '0' || **version > '9') return -1;
  long long number = strtoll(*version, &end, 10);
  *version = *end == '.' ? end + 1 : "";
  return number;
}

int wlmi_compiler_compare(const char *a, const char *b) {
  if (a == b) return 0;
  a = version_of(a ? a : "");
  b = version_of(b ? b : "");
  for (;;) {
    long long left = next_number(&a), right = next_number(&b);
    if (left != right) return left < right ? -1 : 1;
    if (left < 0) return 0;
  }
}
