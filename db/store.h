/* The tuning database: every measurement ever made, one SQLite file, many processes at once.
 *
 * A store belongs to one thread at a time. Any number of processes and threads may have the same file open, each
 * through a store of its own; they wait for each other up to a minute. What put or merge answered with WLM_OK
 * is on the disk; a process killed in the middle of one leaves nothing of it. */
#ifndef WLM_DB_STORE_H
#define WLM_DB_STORE_H

#include "db/path.h"
#include "db/record.h"

typedef struct wlm_store wlm_store;
typedef enum wlmi_store_mode {
  WLM_STORE_READ,
  WLM_STORE_WRITE /* made where missing, folders too; an older schema is migrated */
} wlmi_store_mode;

/* Errors: see wlmi_database_open. Nothing is ever deleted or overwritten. */
wlm_status wlmi_store_open(const char *path, wlmi_store_mode mode, wlm_store **store);
void wlmi_store_close(wlm_store *store); /* NULL is allowed */

/* All of the records or none, in one transaction. WLM_ERR_INVALID_ARGUMENT for one that can't be true. */
wlm_status wlmi_store_put(wlm_store *store, const wlmi_measurement_record *records, int64_t count);
/* The same, also telling how many were not there before. */
wlm_status wlmi_store_merge(wlm_store *store, const wlmi_measurement_record *records, int64_t count, int64_t *added);

/* Calls `each` for all measurements of a device class, or of all devices where that is NULL, in the order of their
 * ids. The record's strings live during the call only (wlmi_measurement_copy keeps them). A status other than
 * WLM_OK ends the reading and is returned. Every id is recomputed: a damaged row is WLM_ERR_DATABASE.
 * Writers wait meanwhile, so keep the callback short. */
typedef wlm_status (*wlmi_store_each_fn)(void *user, const char *id, const wlmi_measurement_record *record);
wlm_status wlmi_store_each(wlm_store *store, const char *device_class, wlmi_store_each_fn each, void *user);
/* The same into an array: wlmi_measurements_free. */
wlm_status wlmi_store_load(wlm_store *store, const char *device_class, wlmi_measurement_record **records,
                           int64_t *count);

typedef struct wlmi_store_counts {
  int64_t devices, matrices, variants, measurements, failed;
} wlmi_store_counts;
wlm_status wlmi_store_count(wlm_store *store, wlmi_store_counts *counts);

/* SQLite's own checks, foreign keys, every id recomputed, every value possible. Adds one line a fault to the report;
 * WLM_ERR_DATABASE if there is any. */
wlm_status wlmi_store_check(wlm_store *store, wlmi_text *report);

/* What check finds is mended by writing all that is whole into a new file and putting that in the place of `path`. The
 * damaged one is never deleted: it stays beside it under the name that is added to `kept_as` ("" = nothing was wrong).
 * Stop what tunes into the file before: measurements that it makes meanwhile go to the damaged one.
 * Errors: as wlmi_store_open, and WLM_ERR_DATABASE where not even the schema can be read. */
typedef struct wlmi_store_repair_result {
  int64_t kept, lost; /* measurements; those lost without a trace are not counted: at least so many */
  int64_t models;     /* kept */
} wlmi_store_repair_result;
wlm_status wlmi_store_repair(const char *path, wlmi_text *report, wlmi_text *kept_as, wlmi_store_repair_result *result);

/* Deletes the measurements that no choice looks at, since their variant was measured again on the same matrix with a
 * newer source or compiler, and gives their room back. *removed counts them. keep = 0 leaves every choice with all its
 * candidates; otherwise only the `keep` quickest of each matrix, problem and N stay, as many of those that are prepared
 * too, and none that failed or is of a cold start: small enough to travel, and what tuned matrices get stays the same.
 * Models stay as they are, though nobody can train them anew from what is left. */
wlm_status wlmi_store_prune(wlm_store *store, int64_t keep, int64_t *removed);

#endif
