#include "exported/learn.h"

#include <string.h>

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

/* Pins are used on their own device class only. */
static wlm_status add_class(const wlmi_exported_class *class, int borrowed, wlmi_snapshot *snapshot) {
  const char *name = borrowed ? class->name : NULL;
  if (!borrowed) WLM_CHECK(wlmi_learned_add_pins(snapshot, class->pins, class->pin_count));
  for (int64_t i = 0; i < class->model_count; i++)
    WLM_CHECK(wlmi_learned_add_model(snapshot, &class->models[i], name, NULL));
  for (int64_t i = 0; i < class->case_count; i++) {
    wlmi_case c = class->cases[i];
    c.point = wlmi_point_of(c.stats, c.n);
    c.borrowed = name;
    WLM_CHECK(wlmi_snapshot_add_case(snapshot, &c));
  }
  return WLM_OK;
}

static const wlmi_exported_class *nearest(const wlmi_exported *tables, const wlmi_device_record *device) {
  const wlmi_exported_class *best = NULL;
  double least = 0;
  for (int64_t i = 0; i < tables->class_count; i++) {
    const wlmi_exported_class *c = &tables->classes[i];
    const double its = wlmi_device_unlikeness(&c->device, device);
    if (its == 0 || !c->case_count) continue;
    if (best && (its > least || (its == least && strcmp(c->name, best->name) > 0))) continue;
    best = c;
    least = its;
  }
  return best;
}

wlm_status wlmi_exported_learn(const wlmi_exported *tables, const wlmi_device_record *device, const char *device_class,
                               wlmi_snapshot *snapshot) {
  const wlmi_exported_class *other = nearest(tables, device);
  for (int64_t i = 0; i < tables->class_count; i++)
    if (!strcmp(tables->classes[i].name, device_class)) WLM_CHECK(add_class(&tables->classes[i], 0, snapshot));
  if (other) WLM_CHECK(add_class(other, 1, snapshot));
  return WLM_OK;
}
