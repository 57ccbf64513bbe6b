/* Measurements on their way to the store and to the caller's progress function. Writes are grouped, because each one
 * waits for the disk: a group goes out after a fifth of a second, or on request. A measurement is reported only after
 * it is on the disk. */
#ifndef WLM_TUNER_LEDGER_H
#define WLM_TUNER_LEDGER_H

#include "db/store.h"
#include "runtime/context.h"

/* What all measurements of a problem on a matrix by this device have in common, made now; its strings are the caller's
 * and the context's. */
void wlmi_measured_begin(const wlm_context *context, const char *matrix_name, const wlm_stats *stats,
                         const char *problem, int64_t n, wlmi_measurement_record *record);
/* spread: (third quartile - first) / median. */
void wlmi_measured_time(wlmi_measurement_record *record, double seconds, double spread, int samples, int64_t calls);

int64_t wlmi_picoseconds(double seconds); /* 1 at least */

typedef struct wlmi_ledger {
  wlm_store *store;
  /* After each hot measurement that was stored; cold_seconds is 0 where there is none. */
  wlm_status (*tell)(void *user, const wlmi_measurement_record *record, double cold_seconds);
  void *user;
  wlmi_measurement_record *records; /* not yet stored; a cold one comes after its hot one */
  int64_t count, capacity;
  double flushed;
} wlmi_ledger;

/* Copies the record. */
wlm_status wlmi_ledger_add(wlmi_ledger *ledger, const wlmi_measurement_record *record);
wlm_status wlmi_ledger_flush_in_time(wlmi_ledger *ledger);
/* All that were stored are told; the first status of `tell` that is not WLM_OK is returned. */
wlm_status wlmi_ledger_flush(wlmi_ledger *ledger);
void wlmi_ledger_release(wlmi_ledger *ledger); /* what was not flushed is lost */

#endif
