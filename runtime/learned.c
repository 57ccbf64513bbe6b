#include "runtime/learned.h"

#include <string.h>

#include "runtime/context_state.h"

void wlmi_context_device_record(const wlm_context *context, wlmi_device_record *record) {
  const wlmi_device_info *info = &context->device->info;
  *record = (wlmi_device_record){(char *)info->name, (char *)info->kind, (char *)info->arch, info->limits.processors,
                                 info->memory_bytes};
}

wlm_status wlmi_learned_add_pins(wlmi_snapshot *snapshot, const wlmi_pin_record *pins, int64_t count) {
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < count && status == WLM_OK; i++) {
    wlmi_pin pin = {.problem = pins[i].problem, .n = pins[i].n, .variant = pins[i].variant};
    wlmi_hash fingerprint;
    pin.exact = wlmi_hash_from_hex(pins[i].target, &fingerprint);
    if (pin.exact) memcpy(pin.fingerprint, (uint64_t[]){fingerprint.high, fingerprint.low}, sizeof pin.fingerprint);
    if (pin.exact || wlmi_bucket_parse(pins[i].target, &pin.bucket)) status = wlmi_snapshot_add_pin(snapshot, &pin);
  }
  return status;
}

wlm_status wlmi_learned_add_model(wlmi_snapshot *snapshot, const wlmi_model_record *record, const char *borrowed,
                                  const char *stale) {
  wlmi_model model;
  wlm_status status = wlmi_model_read(record->data, record->size, &model);
  if (status == WLM_ERR_DATABASE || status == WLM_ERR_DATABASE_VERSION) {
    wlmi_log(WLM_LOG_WARNING, "continuing without the model for %s: %s", record->name, wlm_error_detail());
    return WLM_OK;
  }
  if (status == WLM_OK) status = wlmi_snapshot_add_model(snapshot, &model, borrowed, stale);
  wlmi_model_release(&model);
  return status;
}
