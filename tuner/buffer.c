#include "tuner/buffer.h"

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"

/* Uniform in [-1, 1): multiples of 2^-23, exact in float. */
static float uniform(uint64_t seed, int64_t i) {
  return (float)(int32_t)(wlmi_sample_hash(seed, i) >> 40) * 0x1p-23f - 1.0f;
}

void wlmi_fill_uniform(wlm_type type, void *to, int64_t count, uint64_t seed) {
#pragma omp parallel for
  for (int64_t i = 0; i < count; i++) wlmi_element_put(type, to, i, (double)uniform(seed, i));
}

wlm_status wlmi_buffer_make(wlmi_device *device, size_t size, int64_t rows, int64_t ld, const char *what, void **host,
                            wlmi_buffer *buffer) {
  int64_t count;
  if (__builtin_mul_overflow(rows, ld, &count) || count > INT64_MAX / (int64_t)size)
    return wlmi_fail(WLM_ERR_OVERFLOW, "%s of %lld x %lld elements", what, (long long)rows, (long long)ld);
  if (host) {
    wlm_status status = wlmi_alloc_array(count, size, what, host);
    if (status != WLM_OK) return status;
  }
  const size_t bytes = count ? (size_t)count * size : 1;
  const wlm_status status = device->ops->allocate(device, bytes + WLM_GUARD, &buffer->memory);
  if (status != WLM_OK) return wlmi_fail_in(status, "%s of %lld x %lld elements", what, (long long)rows, (long long)ld);
  buffer->size = bytes;
  return WLM_OK;
}

wlm_status wlmi_guard_check(wlmi_device *device, const void *from, size_t size, int byte, const char *what) {
  unsigned char bytes[WLM_GUARD];
  const wlm_status status = device->ops->copy_out(device, bytes, from, size);
  for (size_t i = 0; status == WLM_OK && i < size; i++)
    if (bytes[i] != byte) return wlmi_fail(WLM_ERR_MISMATCH, "byte %zu %s was written", i, what);
  return status;
}
