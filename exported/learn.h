/* Fills a snapshot from the tables, as a context of the full library does from its databases (runtime/stores.c): the
 * device's own class, then the most similar other one. Nothing is stale, because measurements and kernels were exported
 * together. */
#pragma once

#include "exported/tables.h"
#include "select/snapshot.h"

/* snapshot->families is set. `device_class`: wlmi_device_class of the device. */
wlm_status wlmi_exported_learn(const wlmi_exported *tables, const wlmi_device_record *device, const char *device_class,
                               wlmi_snapshot *snapshot);
