/* The tuning database: every measurement ever made, one SQLite file, many processes at once.
 *
 * A store belongs to one thread at a time. Any number of processes and threads may have the same file open, each
 * through a store of its own; they wait for each other up to a minute. What put or merge answered with WLM_OK
 * is on the disk; a process killed in the middle of one leaves nothing of it. */
#ifndef WLM_DB_STORE_H
#define WLM_DB_STORE_H

#include "records/content.h"
#include "records/record.h"

typedef struct wlm_store wlm_store;
typedef enum wlmi_store_mode {
  WLM_STORE_READ,
  WLM_STORE_READ_SHIPPED, /* the system database, as WLM_DATABASE_READ_SHIPPED */
  WLM_STORE_WRITE         /* made where missing, folders too; an older schema is migrated */
} wlmi_store_mode;

/* Errors: see wlmi_database_open. Nothing is ever deleted or overwritten. */
wlm_status wlmi_store_open(const char *path, wlmi_store_mode mode, wlm_store **store);
void wlmi_store_close(wlm_store *store); /* NULL is allowed */

/* ---- adding ---- */

/* All of the records or none, in one transaction. WLM_ERR_INVALID_ARGUMENT for one that can't be true. */
wlm_status wlmi_store_put(wlm_store *store, const wlmi_measurement_record *records, int64_t count);

/* All of it or nothing, in one transaction. Measurements and recorded problems are a union. A pin for what the store
 * has pinned to another variant is left out; each such conflict is a line of `conflicts` (may be NULL). *added (may be
 * NULL) counts measurements that were not there before. */
wlm_status wlmi_store_add(wlm_store *store, const wlmi_content *content, wlmi_text *conflicts, int64_t *added);

/* Writes the union of some stores into a new file; an earlier one's pins win. WLM_ERR_INVALID_ARGUMENT where `path`
 * exists. The file has that name once it is whole: whatever goes wrong, and should the process be killed, there is
 * none. A kill may leave an unused file PATH.tmp-NUMBER behind. */
wlm_status wlmi_store_merge_files(const char *const *sources, int64_t source_count, const char *path,
                                  wlmi_text *conflicts, int64_t *measurements);

/* ---- reading ---- */

/* All measurements of a device class, or of all devices where that is NULL, in the order of their ids:
 * wlmi_measurements_free. Every id is recomputed: a damaged row is WLM_ERR_DATABASE. What only chooses, trains or tunes
 * trusts the ids and reads a wlmi_measurement_set. */
wlm_status wlmi_store_load(wlm_store *store, const char *device_class, wlmi_measurement_record **records,
                           int64_t *count);
wlm_status wlmi_content_load(wlm_store *store, wlmi_content *content); /* of all devices: wlmi_content_release */

/* Of the store's other device classes with measurements the nearest one, "" where none is near: the same chip (kind and
 * arch) with up to twice or half the processors; the same name before another, then the nearest number of processors.
 */
wlm_status wlmi_store_nearest_class(wlm_store *store, const wlmi_device_record *device, wlmi_text *device_class);

typedef struct wlmi_store_counts {
  int64_t devices, matrices, variants, measurements, failed;
} wlmi_store_counts;
wlm_status wlmi_store_count(wlm_store *store, wlmi_store_counts *counts);

/* ---- pins ---- */

/* Replaces a pin for the same. */
wlm_status wlmi_store_pin(wlm_store *store, const wlmi_pin_record *pin);
/* Takes the pin for the same away, whatever its variant; WLM_ERR_NOT_FOUND where there is none. */
wlm_status wlmi_store_unpin(wlm_store *store, const wlmi_pin_record *pin);
/* The pins of a class, or of all where that is NULL, in the order of wlmi_pin_compare: wlmi_pins_free. */
wlm_status wlmi_store_load_pins(wlm_store *store, const char *device_class, wlmi_pin_record **pins, int64_t *count);

/* ---- recorded problems ---- */

/* All of them or none, in one transaction; those that are there already stay as they are. */
wlm_status wlmi_store_record(wlm_store *store, const wlmi_recorded *list, int64_t count);
/* Takes it away; no error where it is not there. */
wlm_status wlmi_store_forget(wlm_store *store, const wlmi_recorded *recorded);
/* Those of a class, or of all where that is NULL, by id: wlmi_recorded_free. A store of before there were any has none.
 */
wlm_status wlmi_store_load_recorded(wlm_store *store, const char *device_class, wlmi_recorded **list, int64_t *count);

/* ---- models: what was learned from the measurements, as bytes that this room does not look into ---- */

typedef struct wlmi_model_record {
  char *name;
  int64_t made_at; /* seconds since 1970 */
  void *data;
  size_t size;
} wlmi_model_record;

/* One for each device class and name: a newer one replaces an older one, because it can always be learned again. */
wlm_status wlmi_store_put_model(wlm_store *store, const char *device_class, const wlmi_model_record *record);
/* Those of a class, by name: wlmi_model_records_free. */
wlm_status wlmi_store_load_models(wlm_store *store, const char *device_class, wlmi_model_record **records,
                                  int64_t *count);
void wlmi_model_records_free(wlmi_model_record *records, int64_t count);

/* ---- care ---- */

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
