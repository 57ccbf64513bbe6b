/* The list of what a call writes: poisoned before the call, and checked around its edges afterwards. */
#include <stdio.h>

#include "tuner/operands.h"

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

wlm_status wlmi_operands_poison(wlmi_operands *operands) {
  wlmi_device *device = operands->device;
  for (int i = 0; i < operands->outputs; i++) {
    const wlmi_call_array *output = &operands->output[i];
    WLM_CHECK(device->ops->fill(device, output->buffer.memory, output->byte, output->buffer.size + WLM_GUARD));
  }
  WLM_CHECK(device->ops->synchronize(device, NULL)); /* a fill need not wait, a copy does not wait for it */
  for (int i = 0; i < operands->outputs; i++) {
    const wlmi_call_array *output = &operands->output[i];
    if (output->host)
      WLM_CHECK(device->ops->copy_in(device, wlmi_call_array_memory(operands, output), output->host,
                                     wlmi_call_array_bytes(output)));
  }
  return device->ops->synchronize(device, NULL);
}

static wlm_status check_output(const wlmi_operands *operands, const wlmi_call_array *output, int padding) {
  wlmi_device *device = operands->device;
  const char *memory = wlmi_call_array_memory(operands, output), *begin = output->buffer.memory;
  const size_t used = wlmi_call_array_bytes(output);
  const size_t guard = (size_t)(begin + output->buffer.size + WLM_GUARD - (memory + used));
  const wlmi_lines lines = {.memory = memory,
                            .before = output->host,
                            .rows = output->lines,
                            .n = output->width,
                            .ld = output->ld,
                            .size = output->size,
                            .byte = output->byte,
                            .what = output->name};
  char what[64];
  snprintf(what, sizeof what, "behind %s", output->name);
  WLM_CHECK(wlmi_guard_check(device, memory + used, guard < WLM_GUARD ? guard : WLM_GUARD, output->byte, what));
  snprintf(what, sizeof what, "before %s", output->name);
  if (memory > begin) WLM_CHECK(wlmi_guard_check(device, begin, (size_t)(memory - begin), output->byte, what));
  if (padding) return wlmi_padding_check(device, &lines);
  return WLM_OK;
}

wlm_status wlmi_operands_intact(const wlmi_operands *operands, int padding) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < operands->outputs && status == WLM_OK; i++)
    status = check_output(operands, &operands->output[i], padding);
  return status;
}
