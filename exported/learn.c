#include "exported/learn.h"

#include <string.h>

#include "core/base/memory.h"
#include "runtime/learned.h"

static wlmi_measurement_record record_of(const wlmi_exported *tables, const wlmi_exported_class *class,
                                         const wlmi_exported_measurement *m) {
  const wlmi_exported_matrix *matrix = &tables->matrices[m->matrix];
  return (wlmi_measurement_record){.device = class->device,
                                   .matrix_name = (char *)matrix->name,
                                   .stats = matrix->stats,
                                   .variant = (char *)tables->texts[m->variant],
                                   .version = (char *)tables->texts[m->version],
                                   .problem = (char *)tables->texts[m->problem],
                                   .n = m->n,
                                   .compiler = (char *)tables->texts[m->compiler],
                                   .driver = (char *)tables->texts[m->driver],
                                   .clock = (char *)tables->texts[m->clock],
                                   .time_ps = m->time_ps,
                                   .spread_ps = m->spread_ps,
                                   .prepare_ps = m->prepare_ps,
                                   .samples = m->samples,
                                   .failed = m->failed,
                                   .reason = (char *)tables->texts[m->reason],
                                   .made_at = m->made_at};
}

/* Pins are used on their own device class only. */
static wlm_status add_class(const wlmi_exported *tables, const wlmi_exported_class *class, int borrowed,
                            wlmi_snapshot *snapshot) {
  const char *name = borrowed ? class->name : NULL;
  wlmi_measurement_record *records = NULL;
  wlm_status status = WLM_OK;
  if (!borrowed) WLM_TRY(wlmi_learned_add_pins(snapshot, class->pins, class->pin_count));
  for (int64_t i = 0; i < class->model_count; i++) {
    const wlmi_exported_model *m = &class->models[i];
    WLM_TRY(wlmi_learned_add_model(snapshot, &(wlmi_learned_model){m->name, m->data, m->size}, name, NULL));
  }
  WLM_TRY(wlmi_alloc_array(class->measurement_count, sizeof *records, "measurements", (void **)&records));
  for (int64_t i = 0; i < class->measurement_count; i++) records[i] = record_of(tables, class, &class->measurements[i]);
  status = wlmi_snapshot_add_measurements(snapshot, records, class->measurement_count, name, NULL, NULL);
done:
  wlmi_free(records);
  return status;
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
    if (its == 0 || !c->measurement_count) continue;
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
    if (!strcmp(tables->classes[i].name, device_class)) WLM_CHECK(add_class(tables, &tables->classes[i], 0, snapshot));
  if (other) WLM_CHECK(add_class(tables, other, 1, snapshot));
  return WLM_OK;
}
