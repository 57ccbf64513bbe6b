/* Measurements on their way to the store and to whoever listens. A put waits for the disk, and so some go in one: after
 * a fifth of a second, or when it is asked for. Nobody is told of a measurement before it is on the disk. */
#ifndef WLM_TUNER_LEDGER_H
#define WLM_TUNER_LEDGER_H

#include "db/store.h"

typedef struct wlm_ledger {
  wlm_store *store;
  /* After each hot measurement that was stored; cold_seconds is 0 where there is none. */
  wlm_status (*tell)(void *user, const wlm_measurement_record *record, double cold_seconds);
  void *user;
  wlm_measurement_record *records; /* not yet stored; a cold one comes after its hot one */
  int64_t count, capacity;
  double flushed;
} wlm_ledger;

/* Copies the record. */
wlm_status wlm_ledger_add(wlm_ledger *ledger, const wlm_measurement_record *record);
wlm_status wlm_ledger_flush_in_time(wlm_ledger *ledger);
/* All that were stored are told; the first status of `tell` that is not WLM_OK is returned. */
wlm_status wlm_ledger_flush(wlm_ledger *ledger);
void wlm_ledger_release(wlm_ledger *ledger); /* what was not flushed is lost */

#endif
