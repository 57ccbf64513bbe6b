#include "support/put_times.h"

#include "core/problem/spec_key.h"
#include "db/store.h"
#include "runtime/context.h"
#include "runtime/devices.h"
#include "support/asserts.h"
#include "support/defaults.h"

void put_times(wlm_context *context, const char *database, const wlmi_spec *spec, const wlm_stats *stats,
               const char *const *variants, int count, const char *prepared) {
  char key[WLMI_SPEC_KEY];
  wlmi_spec_key(spec, key);
  GET(wlm_store *, store, wlmi_store_open(database, WLMI_STORE_WRITE, &store));
  for (int i = 0; i < count; i++) {
    wlmi_measurement_record record =
        MEASUREMENT(.stats = *stats, .variant = (char *)(uintptr_t)variants[i], .problem = key, .n = spec->problem.n,
                    .compiler = wlmi_context_device(context)->info.compiler, .time_ps = 1000 * (i + 1),
                    .prepare_ps = prepared && !strcmp(variants[i], prepared));
    record.device = wlmi_device_record_of(wlmi_context_device(context));
    assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
  }
  wlmi_store_close(store);
}
