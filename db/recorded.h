/* Recorded problems: what a program asked for where nothing near was tuned, noted down to be tuned later. They say
 * enough of the matrix to make one like it. Like measurements they are known by their content, so that merging is a
 * union. */
#ifndef WLM_DB_RECORDED_H
#define WLM_DB_RECORDED_H

#include "db/fields.h"
#include "db/store.h"

typedef struct wlmi_recorded {
  char *device_class;
  wlm_stats stats; /* of op(A) */
  char *problem;   /* wlmi_spec_key */
  int64_t n;
} wlmi_recorded;

/* The fields of a measurement that a recorded problem has as well. */
int wlmi_recorded_has(const wlmi_field *field);

/* WLM_ERR_INVALID_ARGUMENT naming what can't be. */
wlm_status wlmi_recorded_check(const wlmi_recorded *recorded);
/* {"recorded":CLASS,"fingerprint":...,"rows":...,...,"problem":...,"n":32} without a line end. */
void wlmi_recorded_json(const wlmi_recorded *recorded, wlmi_text *out);
wlm_status wlmi_recorded_id(const wlmi_recorded *recorded, char id[WLM_HASH_HEX]); /* of that line */
wlm_status wlmi_recorded_copy(const wlmi_recorded *recorded, wlmi_recorded *copy); /* owns its strings */
void wlmi_recorded_release(wlmi_recorded *recorded);                               /* also of a zeroed one */
void wlmi_recorded_free(wlmi_recorded *list, int64_t count);

/* All of them or none, in one transaction; those that are there already stay as they are. */
wlm_status wlmi_store_record(wlm_store *store, const wlmi_recorded *list, int64_t count);
/* One within the caller's transaction. */
wlm_status wlmi_store_record_one(wlm_store *store, const wlmi_recorded *recorded);
/* Takes it away; no error where it is not there. */
wlm_status wlmi_store_forget(wlm_store *store, const wlmi_recorded *recorded);
/* Those of a class, or of all where that is NULL, by id: wlmi_recorded_free. A store of before there were any has none.
 */
wlm_status wlmi_store_load_recorded(wlm_store *store, const char *device_class, wlmi_recorded **list, int64_t *count);
/* All that are whole, in a store that is damaged. */
wlm_status wlmi_store_salvage_recorded(wlm_store *store, wlmi_recorded **list, int64_t *count);

#endif
