#include "tuner/buffer.h"

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"

enum { PIECE_BYTES = 1 << 24 };

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

static wlm_status check_piece(const wlmi_lines *r, int64_t first, int64_t rows, const char *piece) {
  const size_t row = (size_t)r->ld * r->size;
  for (int64_t i = 0; i < rows; i++)
    for (size_t at = (size_t)r->n * r->size; at < row; at++) {
      const char before = r->before ? r->before[(size_t)(first + i) * row + at] : (char)r->byte;
      if (piece[(size_t)i * row + at] != before)
        return wlmi_fail(WLM_ERR_MISMATCH, "%s was written behind its %lld columns, in row %lld", r->what,
                         (long long)r->n, (long long)(first + i));
    }
  return WLM_OK;
}

wlm_status wlmi_padding_check(wlmi_device *device, const wlmi_lines *r) {
  const size_t row = (size_t)r->ld * r->size;
  const int64_t step = row < PIECE_BYTES ? (int64_t)(PIECE_BYTES / (row ? row : 1)) : 1;
  char *piece;
  wlm_status status = WLM_OK;
  if (r->ld == r->n) return WLM_OK;
  WLM_CHECK(wlmi_alloc_array(step < r->rows ? step : r->rows, row, r->what, (void **)&piece));
  for (int64_t first = 0; first < r->rows && status == WLM_OK; first += step) {
    const int64_t rows = first + step < r->rows ? step : r->rows - first;
    status = device->ops->copy_out(device, piece, r->memory + (size_t)first * row, (size_t)rows * row);
    if (status == WLM_OK) status = check_piece(r, first, rows, piece);
  }
  wlmi_free(piece);
  return status;
}
