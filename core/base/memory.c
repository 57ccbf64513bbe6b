#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

static void *default_allocate(void *user, size_t size) {
  (void)user;
  return malloc(size);
}

static void *default_reallocate(void *user, void *old, size_t size) {
  (void)user;
  return realloc(old, size);
}

static void default_release(void *user, void *old) {
  (void)user;
  free(old);
}

static const wlm_allocator default_allocator = {default_allocate, default_reallocate, default_release, NULL};
static wlm_allocator hooks = {default_allocate, default_reallocate, default_release, NULL};

void wlm_set_allocator(const wlm_allocator *allocator) { hooks = allocator ? *allocator : default_allocator; }

static wlm_device_allocator device_hooks; /* without functions: the driver's */

void wlm_set_device_allocator(const wlm_device_allocator *allocator) {
  device_hooks = allocator ? *allocator : (wlm_device_allocator){0};
}

const wlm_device_allocator *wlmi_device_allocator(void) { return device_hooks.allocate ? &device_hooks : NULL; }

void *wlmi_alloc(size_t size) { return hooks.allocate(hooks.user, size ? size : 1); }

void *wlmi_alloc_zero(size_t count, size_t size) {
  size_t total;
  if (__builtin_mul_overflow(count, size, &total)) return NULL;
  void *pointer = wlmi_alloc(total);
  return pointer ? memset(pointer, 0, total) : NULL;
}

void *wlmi_realloc(void *old, size_t size) { return hooks.reallocate(hooks.user, old, size ? size : 1); }

void wlmi_free(void *pointer) {
  if (pointer) hooks.release(hooks.user, pointer);
}

void wlm_string_free(char *string) { wlmi_free(string); }

char *wlmi_strdup(const char *text) {
  if (!text) return NULL;
  size_t size = strlen(text) + 1;
  char *copy = wlmi_alloc(size);
  return copy ? memcpy(copy, text, size) : NULL;
}

wlm_status wlmi_alloc_array(int64_t count, size_t size, const char *what, void **out) {
  size_t total;
  *out = NULL;
  if (count < 0 || __builtin_mul_overflow((size_t)count, size, &total))
    return wlmi_fail(WLM_ERR_OVERFLOW, "%s: %lld elements of %zu bytes do not fit in memory", what, (long long)count,
                     size);
  *out = wlmi_alloc(total);
  if (!*out) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s: %zu bytes", what, total);
  return WLM_OK;
}

wlm_status wlmi_grow(void **array, int64_t count, int64_t *capacity, size_t size, const char *what) {
  if (count < *capacity) return WLM_OK;
  int64_t larger = *capacity ? *capacity * 2 : 64;
  void *moved = (uint64_t)larger > SIZE_MAX / size ? NULL : wlmi_realloc(*array, (size_t)larger * size);
  if (!moved) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s: %lld", what, (long long)larger);
  *array = moved;
  *capacity = larger;
  return WLM_OK;
}
