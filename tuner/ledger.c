#include "tuner/ledger.h"

#include "tuner/timing.h"

static const double flush_seconds = 0.2;

wlm_status wlm_ledger_add(wlm_ledger *ledger, const wlm_measurement_record *record) {
  wlm_status status = wlm_measurements_reserve(&ledger->records, ledger->count, &ledger->capacity);
  if (status == WLM_OK) status = wlm_measurement_copy(record, &ledger->records[ledger->count]);
  ledger->count += status == WLM_OK;
  return status;
}

wlm_status wlm_ledger_flush_in_time(wlm_ledger *ledger) {
  if (!ledger->flushed) ledger->flushed = wlm_seconds();
  return wlm_seconds() - ledger->flushed < flush_seconds ? WLM_OK : wlm_ledger_flush(ledger);
}

wlm_status wlm_ledger_flush(wlm_ledger *ledger) {
  const int64_t count = ledger->count;
  wlm_status status = wlm_store_put(ledger->store, ledger->records, count);
  ledger->flushed = wlm_seconds();
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < count; i++) {
    const wlm_measurement_record *record = &ledger->records[i], *next = i + 1 < count ? record + 1 : NULL;
    if (wlm_measurement_is_cold(record)) continue;
    const double cold = next && wlm_measurement_is_cold(next) ? (double)next->time_ps * 1e-12 : 0;
    const wlm_status told = ledger->tell(ledger->user, record, cold);
    if (status == WLM_OK) status = told;
  }
  for (int64_t i = 0; i < count; i++) wlm_measurement_release(&ledger->records[i]);
  ledger->count = 0;
  return status;
}

void wlm_ledger_release(wlm_ledger *ledger) {
  wlm_measurements_free(ledger->records, ledger->count);
  *ledger = (wlm_ledger){0};
}
