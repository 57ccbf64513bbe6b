/* Adds what was learned to a snapshot, wherever it comes from: databases or the tables of an exported library. */
#pragma once

#include "exported/tables.h"
#include "select/snapshot.h"

wlm_status wlmi_learned_add_pins(wlmi_snapshot *snapshot, const wlmi_pin_record *pins, int64_t count);
/* A damaged model is logged and left out. `borrowed` and `stale` as in wlmi_model. */
wlm_status wlmi_learned_add_model(wlmi_snapshot *snapshot, const wlmi_model_record *model, const char *borrowed,
                                  const char *stale);

/* Fills a snapshot from tables, as a context of the full library does from its databases (runtime/stores.c): the
 * device's own class, then the most similar other one. Nothing is stale, because measurements and kernels were exported
 * together. snapshot->families is set. `device_class`: wlmi_device_class of the device. */
wlm_status wlmi_exported_learn(const wlmi_exported *tables, const wlmi_device_record *device, const char *device_class,
                               wlmi_snapshot *snapshot);
