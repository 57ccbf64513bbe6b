/* Memory of arrays, and the list of what a call writes: poisoned before the call, and checked around its edges
 * afterwards. */
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"
#include "tuner/operands.h"

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
  const wlm_status status = device->ops->allocate(device, bytes + WLMI_GUARD, &buffer->memory);
  if (status != WLM_OK) return wlmi_fail_in(status, "%s of %lld x %lld elements", what, (long long)rows, (long long)ld);
  buffer->size = bytes;
  return WLM_OK;
}

wlm_status wlmi_guard_check(wlmi_device *device, const void *from, size_t size, int byte, const char *what) {
  unsigned char bytes[WLMI_GUARD];
  const wlm_status status = device->ops->copy_out(device, NULL, bytes, from, size);
  for (size_t i = 0; status == WLM_OK && i < size; i++)
    if (bytes[i] != byte) return wlmi_fail(WLM_ERR_MISMATCH, "byte %zu %s was written", i, what);
  return status;
}

int64_t wlmi_position_at(const wlmi_operands *operands, const wlmi_call_array *operand, const void *copy, int64_t at,
                         int64_t row) {
  if (operand->size == sizeof(int64_t)) return ((const int64_t *)copy)[at];
  if (operand->size == sizeof(int32_t)) return ((const int32_t *)copy)[at];
  const int64_t begin = operands->a.rowptr[row]; /* of 16 bits: the lower ones */
  return begin < operands->a.rowptr[row + 1] ? begin + (uint16_t)(((const uint16_t *)copy)[at] - begin) : -1;
}

char *wlmi_call_array_memory(const wlmi_operands *operands, const wlmi_call_array *output) {
  return (char *)output->buffer.memory + (output->moves ? (size_t)operands->shift * output->size : 0);
}

size_t wlmi_call_array_bytes(const wlmi_call_array *output) {
  return (size_t)(output->lines * output->ld) * output->size;
}

/* Moves the elements of lines between rows and columns of `lines` elements. */
static void turn(const wlmi_call_array *a, int64_t lines, int to_columns, const char *from, char *to) {
  const size_t size = a->size;
#pragma omp parallel for
  for (int64_t line = 0; line < lines; line++)
    for (int64_t j = 0; j < a->width; j++) {
      const size_t row = (size_t)(line * a->ld + j) * size, column = (size_t)(j * lines + line) * size;
      memcpy(to + (to_columns ? column : row), from + (to_columns ? row : column), size);
    }
}

wlm_status wlmi_call_array_put(const wlmi_operands *operands, const wlmi_call_array *a) {
  char *const memory = wlmi_call_array_memory(operands, a), *columns = NULL;
  const size_t bytes = wlmi_call_array_bytes(a);
  if (!a->by_columns) return operands->device->ops->copy_in(operands->device, memory, a->host, bytes);
  WLM_CHECK(wlmi_alloc_array((int64_t)bytes, 1, a->name, (void **)&columns));
  turn(a, a->lines, 1, a->host, columns);
  const wlm_status status = operands->device->ops->copy_in(operands->device, memory, columns, bytes);
  wlmi_free(columns);
  return status;
}

wlm_status wlmi_call_array_read(const wlmi_operands *operands, const wlmi_call_array *a, int64_t first, int64_t lines,
                                char *to) {
  const char *const memory = wlmi_call_array_memory(operands, a);
  const size_t line = (size_t)a->ld * a->size, part = (size_t)lines * a->size;
  char *columns = NULL;
  wlmi_device *device = operands->device;
  if (!a->by_columns)
    return device->ops->copy_out(device, NULL, to, memory + (size_t)first * line, (size_t)lines * line);
  wlm_status status = wlmi_alloc_array(lines, line, a->name, (void **)&columns);
  for (int64_t j = 0; status == WLM_OK && j < a->width; j++)
    status = device->ops->copy_out(device, NULL, columns + (size_t)j * part,
                                   memory + (size_t)(j * a->lines + first) * a->size, part);
  if (status == WLM_OK) turn(a, lines, 0, columns, to);
  wlmi_free(columns);
  return status;
}

int wlmi_pieces_next(wlmi_pieces *p, wlm_status *status) {
  const wlmi_call_array *a = p->array;
  const size_t line = (size_t)a->ld * a->size;
  const int64_t most = line && line < PIECE_BYTES ? (int64_t)(PIECE_BYTES / line) : 1;
  p->first += p->lines;
  p->lines = a->lines - p->first < most ? a->lines - p->first : most;
  if (p->lines > 0 && !p->data && *status == WLM_OK)
    *status = wlmi_alloc_array(p->lines, line, "a piece of a result", (void **)&p->data);
  if (p->lines > 0 && *status == WLM_OK) {
    *status = wlmi_call_array_read(p->operands, a, p->first, p->lines, p->data);
    if (*status == WLM_OK) return 1;
  }
  wlmi_free(p->data);
  p->data = NULL;
  return 0;
}

wlm_status wlmi_operands_poison(wlmi_operands *operands) {
  wlmi_device *device = operands->device;
  for (int i = 0; i < operands->outputs; i++) {
    const wlmi_call_array *output = &operands->output[i];
    WLM_CHECK(device->ops->fill(device, NULL, output->buffer.memory, output->byte, output->buffer.size + WLMI_GUARD));
  }
  WLM_CHECK(device->ops->synchronize(device, NULL)); /* neither fills nor copies wait for a fill */
  for (int i = 0; i < operands->outputs; i++) {
    const wlmi_call_array *output = &operands->output[i];
    if (output->host) WLM_CHECK(wlmi_call_array_put(operands, output));
  }
  return device->ops->synchronize(device, NULL);
}

/* WLM_ERR_MISMATCH if a line was written behind its elements. */
static wlm_status check_padding(const wlmi_operands *operands, const wlmi_call_array *output) {
  const size_t line = (size_t)output->ld * output->size, used = (size_t)output->width * output->size;
  wlm_status status = WLM_OK;
  if (line == used) return WLM_OK;
  for (wlmi_pieces p = {.operands = operands, .array = output}; wlmi_pieces_next(&p, &status);)
    for (int64_t i = 0; i < p.lines && status == WLM_OK; i++) {
      const char *found = p.data + (size_t)i * line;
      const char *before = output->host ? (const char *)output->host + (size_t)(p.first + i) * line : NULL;
      for (size_t at = used; at < line && status == WLM_OK; at++)
        if (found[at] != (before ? before[at] : (char)output->byte))
          status = wlmi_fail(WLM_ERR_MISMATCH, "%s was written behind its %lld columns, in row %lld", output->name,
                             (long long)output->width, (long long)(p.first + i));
    }
  return status;
}

static wlm_status check_output(const wlmi_operands *operands, const wlmi_call_array *output, int padding) {
  wlmi_device *device = operands->device;
  const char *memory = wlmi_call_array_memory(operands, output), *begin = output->buffer.memory;
  const size_t used = wlmi_call_array_bytes(output);
  const size_t guard = (size_t)(begin + output->buffer.size + WLMI_GUARD - (memory + used));
  char what[64];
  snprintf(what, sizeof what, "behind %s", output->name);
  WLM_CHECK(wlmi_guard_check(device, memory + used, guard < WLMI_GUARD ? guard : WLMI_GUARD, output->byte, what));
  snprintf(what, sizeof what, "before %s", output->name);
  if (memory > begin) WLM_CHECK(wlmi_guard_check(device, begin, (size_t)(memory - begin), output->byte, what));
  return padding ? check_padding(operands, output) : WLM_OK;
}

wlm_status wlmi_operands_intact(const wlmi_operands *operands, int padding) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < operands->outputs && status == WLM_OK; i++)
    status = check_output(operands, &operands->output[i], padding);
  return status;
}
