#include "exported/learn.h"

#include <string.h>

#include "runtime/learned.h"

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

/* How unlike the devices are: the ratio of their numbers of processors; 0 = too unlike, or the same device. */
static double unlikeness(const wlmi_device_record *a, const wlmi_device_record *b) {
  const int is_same = !strcmp(a->name, b->name) && a->processors == b->processors;
  const double ratio =
      a->processors > b->processors ? 1.0 * a->processors / b->processors : 1.0 * b->processors / a->processors;
  return is_same || strcmp(a->kind, b->kind) || strcmp(a->arch, b->arch) || ratio > 2 ? 0 : ratio;
}

/* As wlmi_store_nearest_class chooses: a device of the same name first, then the nearest number of processors. */
static const wlmi_exported_class *nearest(const wlmi_exported *tables, const wlmi_device_record *device) {
  const wlmi_exported_class *best = NULL;
  for (int64_t i = 0; i < tables->class_count; i++) {
    const wlmi_exported_class *c = &tables->classes[i];
    const double its = unlikeness(&c->device, device);
    if (its == 0 || !c->case_count) continue;
    const int renamed = strcmp(c->device.name, device->name) != 0;
    const int best_renamed = best && strcmp(best->device.name, device->name) != 0;
    const double of_best = best ? unlikeness(&best->device, device) : 0;
    if (!best || renamed < best_renamed ||
        (renamed == best_renamed && (its < of_best || (its == of_best && strcmp(c->name, best->name) < 0))))
      best = c;
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
