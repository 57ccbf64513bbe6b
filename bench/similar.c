#include "bench/similar.h"

#include <stdlib.h>
#include <string.h>

struct shape {
  long lanes, vector; /* 0 where the variant has no such parameter */
};

static size_t piece_size(const char *piece) { return strcspn(piece, ",/"); }

static int takes(const char *piece, const char *key, long *value) {
  const size_t size = strlen(key);
  if (strncmp(piece, key, size)) return 0;
  *value = strtol(piece + size, NULL, 10);
  return 1;
}

static int of_shape(const char *piece, struct shape *shape) {
  return takes(piece, "lanes=", &shape->lanes) || takes(piece, "vector=", &shape->vector);
}

int wlmi_variants_are_similar(const char *a, const char *b) {
  struct shape x = {0, 0}, y = {0, 0};
  for (;;) {
    const size_t size = piece_size(a), other = piece_size(b);
    if (!(of_shape(a, &x) && of_shape(b, &y)) && (size != other || memcmp(a, b, size))) return 0;
    a += size;
    b += other;
    if (!*a || !*b) break;
    a++;
    b++;
  }
  return !*a && !*b && (x.lanes == y.lanes || x.lanes * x.vector == y.lanes * y.vector);
}

int wlmi_same_family(const char *a, const char *b) {
  const size_t size = strcspn(a, "/");
  return size == strcspn(b, "/") && !memcmp(a, b, size);
}
