/* Pins: a user's explicit choice overrides all measurements. */
#include <string.h>

#include "select/state.h"

static int fits(const wlmi_pin *pin, const wlm_stats *stats, const wlmi_bucket *here) {
  if (pin->exact) return !memcmp(pin->fingerprint, stats->fingerprint, sizeof pin->fingerprint);
  return pin->bucket.version == here->version && pin->bucket.log2_rows == here->log2_rows &&
         pin->bucket.half_log2_mean == here->half_log2_mean && pin->bucket.cv_class == here->cv_class;
}

const wlmi_pin *wlmi_pin_find(const wlmi_snapshot *s, const wlm_stats *stats, const char *problem, int64_t n) {
  const wlmi_pin *found = NULL;
  wlmi_bucket here;
  wlmi_bucket_of(stats, &here);
  for (int64_t i = 0; i < s->pin_count; i++) {
    const wlmi_pin *pin = &s->pins[i];
    if (pin->n != n || (found && (found->exact || !pin->exact)) || strcmp(pin->problem, problem) ||
        !fits(pin, stats, &here))
      continue;
    found = pin;
  }
  return found;
}
