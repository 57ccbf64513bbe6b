/* Pins: what people decided by hand goes before all that was measured. */
#ifndef WLM_RUNTIME_DISPATCH_PINS_H
#define WLM_RUNTIME_DISPATCH_PINS_H

#include "runtime/dispatch/snapshot.h"

/* The pin for this matrix, or else for its bucket; NULL where there is none. */
const wlmi_pin *wlmi_pin_find(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem_key,
                              int64_t n);

#endif
