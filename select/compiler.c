#include "select/compiler.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789";

int wlmi_compiler_same(const char *a, const char *b) {
  size_t length = strcspn(a ? a : "", digits);
  return length == strcspn(b ? b : "", digits) && !strncmp(a ? a : "", b ? b : "", length);
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
  if (!a) a = "";
  if (!b) b = "";
  a += strcspn(a, digits);
  b += strcspn(b, digits);
  for (;;) {
    long long left = next_number(&a), right = next_number(&b);
    if (left != right) return left < right ? -1 : 1;
    if (left < 0) return 0;
  }
}
