#include "support/meter.h"

#include <stdlib.h>

#include "warploom/warploom.h"

static void *metered_allocate(void *user, size_t size) {
  meter *m = user;
  if (m->fail_at >= 0 && m->calls++ >= m->fail_at) return NULL;
  void *memory = malloc(size ? size : 1);
  m->live += memory != NULL;
  return memory;
}

static void *metered_reallocate(void *user, void *old, size_t size) {
  meter *m = user;
  if (m->fail_at >= 0 && m->calls++ >= m->fail_at) return NULL;
  if (!old) m->live++;
  return realloc(old, size ? size : 1);
}

static void metered_release(void *user, void *old) {
  meter *m = user;
  m->live -= old != NULL;
  free(old);
}

void meter_begin(meter *m) {
  const wlm_allocator allocator = {metered_allocate, metered_reallocate, metered_release, m};
  wlm_set_allocator(&allocator);
}
