/* Writes measurements to the store and reports them to the caller's progress function. Writes are grouped, because each
 * one waits for the disk: a group is written after a fifth of a second, or on request. A measurement is reported only
 * after it is on the disk. */
#pragma once

#include "db/store.h"
#include "runtime/context.h"

/* ---- from seconds to records ---- */

/* A record with what all measurements of a problem on a matrix by this device have in common, dated now. Its strings
 * belong to the caller and the context. */
void wlmi_measured_begin(const wlm_context *context, const char *matrix_name, const wlm_stats *stats,
                         const char *problem, int64_t n, wlmi_measurement_record *record);
/* spread: (third quartile - first) / median. */
void wlmi_measured_time(wlmi_measurement_record *record, double seconds, double spread, int samples, int64_t calls);

int64_t wlmi_picoseconds(double seconds); /* 1 at least */

/* ---- from records to the store ---- */

typedef struct wlmi_ledger {
  wlm_store *store;
  /* Called after each hot measurement was stored; cold_seconds = 0 if there is no cold one. */
  wlm_status (*report)(void *user, const wlmi_measurement_record *record, double cold_seconds);
  void *user;
  wlmi_measurement_record *records; /* not yet stored; a cold one comes after its hot one */
  int64_t count, capacity;
  double flushed;
} wlmi_ledger;

/* Copies the record. */
wlm_status wlmi_ledger_add(wlmi_ledger *ledger, const wlmi_measurement_record *record);
wlm_status wlmi_ledger_flush_in_time(wlmi_ledger *ledger);
/* Writes all records, then calls `report` for each hot one; returns the first status of `report` that is not WLM_OK. */
wlm_status wlmi_ledger_flush(wlmi_ledger *ledger);
void wlmi_ledger_release(wlmi_ledger *ledger); /* records that were not flushed are lost */
