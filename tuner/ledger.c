#include "tuner/ledger.h"

#include <time.h>

#include "tuner/timing.h"

static const double flush_seconds = 0.2;

void wlmi_measured_begin(const wlm_context *context, const char *matrix_name, const wlm_stats *stats,
                         const char *problem, int64_t n, wlmi_measurement_record *record) {
  const wlmi_device_info *info = &wlmi_context_device(context)->info;
  *record = (wlmi_measurement_record){
      .matrix_name = (char *)matrix_name,
      .stats = *stats,
      .problem = (char *)problem,
      .n = n,
      .compiler = (char *)info->compiler,
      .driver = (char *)info->driver,
      .made_at = (int64_t)time(NULL),
  };
  wlmi_context_device_record(context, &record->device);
}

void wlmi_measured_time(wlmi_measurement_record *record, double seconds, double spread, int samples, int64_t calls) {
  record->time_ps = wlmi_picoseconds(seconds);
  record->spread_ps = (int64_t)(seconds * spread * 1e12 + 0.5);
  record->samples = samples;
  record->calls_per_sample = calls;
}

int64_t wlmi_picoseconds(double seconds) { return seconds > 1e-12 ? (int64_t)(seconds * 1e12 + 0.5) : 1; }

wlm_status wlmi_ledger_add(wlmi_ledger *ledger, const wlmi_measurement_record *record) {
  wlm_status status = wlmi_measurements_reserve(&ledger->records, ledger->count, &ledger->capacity);
  if (status == WLM_OK) status = wlmi_measurement_copy(record, &ledger->records[ledger->count]);
  ledger->count += status == WLM_OK;
  return status;
}

wlm_status wlmi_ledger_flush_in_time(wlmi_ledger *ledger) {
  if (!ledger->flushed) ledger->flushed = wlmi_seconds();
  return wlmi_seconds() - ledger->flushed < flush_seconds ? WLM_OK : wlmi_ledger_flush(ledger);
}

wlm_status wlmi_ledger_flush(wlmi_ledger *ledger) {
  const int64_t count = ledger->count;
  wlm_status status = wlmi_store_put(ledger->store, ledger->records, count);
  ledger->flushed = wlmi_seconds();
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < count; i++) {
    const wlmi_measurement_record *record = &ledger->records[i], *next = i + 1 < count ? record + 1 : NULL;
    if (wlmi_measurement_is_cold(record)) continue;
    const double cold = next && wlmi_measurement_is_cold(next) ? (double)next->time_ps * 1e-12 : 0;
    const wlm_status reported = ledger->report(ledger->user, record, cold);
    if (status == WLM_OK) status = reported;
  }
  for (int64_t i = 0; i < count; i++) wlmi_measurement_release(&ledger->records[i]);
  ledger->count = 0;
  return status;
}

void wlmi_ledger_release(wlmi_ledger *ledger) {
  wlmi_measurements_free(ledger->records, ledger->count);
  *ledger = (wlmi_ledger){0};
}
