/* The tuning database: a SQLite file with all measurements, which many processes may use at the same time.
 *
 * A store belongs to one thread at a time. Any number of processes and threads may open the same file, each with its
 * own store; writers wait up to a minute for others and say so in the log after a second. When put or merge returns
 * WLM_OK, the data is on the disk; if the process is killed before, none of it is stored. */
#pragma once

#include "core/records/content.h"
#include "core/records/record.h"
#include "db/schema.h"

typedef struct wlm_store wlm_store;

/* Errors: see wlmi_database_open. Nothing is ever deleted or overwritten. */
wlm_status wlmi_store_open(const char *path, wlmi_store_mode mode, wlm_store **store);
wlm_status wlmi_store_open_memory(wlm_store **store); /* empty, and gone when it is closed */
void wlmi_store_close(wlm_store *store);              /* NULL is allowed */

/* ---- adding ---- */

/* Stores all records or none, in one transaction. WLM_ERR_INVALID_ARGUMENT for an invalid one. */
wlm_status wlmi_store_put(wlm_store *store, const wlmi_measurement_record *records, int64_t count);

/* Adds all of the content or nothing, in one transaction. Measurements and recorded problems become a union. A pin that
 * contradicts the store's is left out; each such conflict is a line of `conflicts` (may be NULL). *added (may be NULL)
 * counts measurements that were not there before. */
wlm_status wlmi_store_add(wlm_store *store, const wlmi_content *content, wlmi_text *conflicts, int64_t *added);

/* Writes the union of several stores to a new file; pins of earlier stores win. WLM_ERR_INVALID_ARGUMENT if `path`
 * exists. The file gets this name only when it is complete. A killed process may leave the file PATH.tmp-NUMBER, which
 * nothing uses. */
wlm_status wlmi_store_merge_files(const char *const *paths, int64_t count, const char *path, wlmi_text *conflicts,
                                  int64_t *measurements);

/* ---- reading ---- */

/* All measurements of a device class (NULL = of all), ordered by id; release with wlmi_measurements_free. Recomputes
 * every id: a damaged row is WLM_ERR_DATABASE. Selection, training and tuning trust the ids and use a
 * wlmi_measurement_set instead. */
wlm_status wlmi_store_load(wlm_store *store, const char *device_class, wlmi_measurement_record **records,
                           int64_t *count);
wlm_status wlmi_content_load(wlm_store *store, wlmi_content *content); /* of all devices; release with
                                                                        * wlmi_content_release */

/* The most similar other device class with measurements (wlmi_device_unlikeness), "" if none is similar. */
wlm_status wlmi_store_nearest_class(wlm_store *store, const wlmi_device_record *device, wlmi_text *device_class);

typedef struct wlmi_store_counts {
  int64_t devices, matrices, variants, measurements, failed;
} wlmi_store_counts;
wlm_status wlmi_store_count(wlm_store *store, wlmi_store_counts *counts);

/* ---- pins ---- */

/* Between the two calls other processes see none of the changes. `end` keeps all of them if the status is WLM_OK, and
 * undoes them otherwise; it returns the status, or the error of keeping them. */
wlm_status wlmi_store_begin(wlm_store *store);
wlm_status wlmi_store_end(wlm_store *store, wlm_status status);
/* Adds the pin, or replaces the existing one for the same matrix or bucket, problem and N. */
wlm_status wlmi_store_pin(wlm_store *store, const wlmi_pin_record *pin);
/* Removes the pin for the same, whatever its variant; WLM_ERR_NOT_FOUND if there is none. */
wlm_status wlmi_store_unpin(wlm_store *store, const wlmi_pin_record *pin);
/* The pins of a class (NULL = of all) in the order of wlmi_pin_compare; release with wlmi_pins_free. */
wlm_status wlmi_store_load_pins(wlm_store *store, const char *device_class, wlmi_pin_record **pins, int64_t *count);

/* ---- recorded problems ---- */

/* Adds all of them or none, in one transaction; existing ones stay as they are. */
wlm_status wlmi_store_record(wlm_store *store, const wlmi_recorded *list, int64_t count);
/* Removes it; no error if it is not there. */
wlm_status wlmi_store_forget(wlm_store *store, const wlmi_recorded *recorded);
/* Those of a class (NULL = of all), ordered by id; release with wlmi_recorded_free. A store of an older version has
 * none. */
wlm_status wlmi_store_load_recorded(wlm_store *store, const char *device_class, wlmi_recorded **list, int64_t *count);

/* ---- cost models, as blobs that db/ does not interpret ---- */

/* There is one model for each device class and name; a new one replaces the old one. */
wlm_status wlmi_store_put_model(wlm_store *store, const char *device_class, const wlmi_model_record *record);
/* Adds the models of another store, which replace those of the same class and name, and their number to `copied`. Each
 * has a checksum that its reader verifies. */
wlm_status wlmi_store_copy_models(wlm_store *from, wlm_store *to, int64_t *copied);
/* Those of a class, ordered by name; release with wlmi_model_records_free. */
wlm_status wlmi_store_load_models(wlm_store *store, const char *device_class, wlmi_model_record **records,
                                  int64_t *count);
void wlmi_model_records_free(wlmi_model_record *records, int64_t count);

/* ---- care ---- */

/* Runs SQLite's checks, checks foreign keys and values, and recomputes every id. Adds one line per fault to the report;
 * WLM_ERR_DATABASE if there is any. */
wlm_status wlmi_store_check(wlm_store *store, wlmi_text *report);

/* Repairs what check finds: writes everything that is undamaged to a new file and replaces `path` by it. The damaged
 * file is kept under the name that is appended to `kept_as` ("" = nothing was wrong). Stop programs that tune into the
 * file before: measurements made meanwhile go to the damaged file. Errors: as wlmi_store_open, and WLM_ERR_DATABASE if
 * not even the schema can be read. */
typedef struct wlmi_store_repair_result {
  int64_t kept, lost; /* measurements; `lost` is a lower bound, because some may be lost without a trace */
  int64_t models;     /* kept */
} wlmi_store_repair_result;
wlm_status wlmi_store_repair(const char *path, wlmi_text *report, wlmi_text *kept_as, wlmi_store_repair_result *result);

/* Deletes measurements that no choice uses, because their variant was measured again on the same matrix with a newer
 * version or compiler, and shrinks the file. *removed counts them. With keep = 0 every case keeps all its candidates.
 * Otherwise each matrix, problem and N keeps the `keep` fastest unprepared and prepared candidates, those that are the
 * best for some number of calls, and at least eight, as choices trust no fewer; no cold ones, and failed ones only
 * where there are fewer. So the file becomes small, and tuned matrices get the same choices, unless a caller demands
 * what no kept candidate has. Models stay, although they cannot be trained again from the rest. */
wlm_status wlmi_store_prune(wlm_store *store, int64_t keep, int64_t *removed);
