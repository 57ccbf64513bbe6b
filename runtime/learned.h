/* Adds what was learned to a snapshot, wherever it comes from: databases or the tables of an exported library. */
#pragma once

#include "core/records/content.h"
#include "select/snapshot.h"

wlm_status wlmi_learned_add_pins(wlmi_snapshot *snapshot, const wlmi_pin_record *pins, int64_t count);
/* A damaged model is logged and left out. `borrowed` and `stale` as in wlmi_model. */
wlm_status wlmi_learned_add_model(wlmi_snapshot *snapshot, const wlmi_model_record *model, const char *borrowed,
                                  const char *stale);
