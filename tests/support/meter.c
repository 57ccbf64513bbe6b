#include "support/meter.h"

#include <stdlib.h>

#include "warploom/warploom.h"

static void *metered_reallocate(void *user, void *old, size_t size) {
  meter *m = user;
  const int64_t after = m->calls++ - m->fail_at;
  if (m->fail_at >= 0 && after >= 0 && (!m->failures || after < m->failures)) return NULL;
  if (!old) m->live++;
  if ((int64_t)size > m->most) m->most = (int64_t)size;
  return realloc(old, size ? size : 1);
}

static void *metered_allocate(void *user, size_t size) { return metered_reallocate(user, NULL, size); }

static void metered_release(void *user, void *old) {
  meter *m = user;
  m->live -= old != NULL;
  free(old);
}

void meter_begin(meter *m) {
  const wlm_allocator allocator = {metered_allocate, metered_reallocate, metered_release, m};
  wlm_set_allocator(&allocator);
}
