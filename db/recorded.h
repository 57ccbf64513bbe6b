/* Recorded problems: what a program asked for where nothing near was tuned, noted down to be tuned later. They say
 * enough of the matrix to make one like it. Like measurements they are known by their content, so that merging is a
 * union. */
#ifndef WLM_DB_RECORDED_H
#define WLM_DB_RECORDED_H

#include "db/fields.h"
#include "db/store.h"

typedef struct wlm_recorded {
  char *device_class;
  wlm_stats stats; /* of op(A) */
  char *problem;   /* wlm_spec_key */
  int64_t n;
} wlm_recorded;

/* The fields of a measurement that a recorded problem has as well. */
int wlm_recorded_has(const wlm_field *field);

/* WLM_ERR_INVALID_ARGUMENT naming what can't be. */
wlm_status wlm_recorded_check(const wlm_recorded *recorded);
/* {"recorded":CLASS,"fingerprint":...,"rows":...,...,"problem":...,"n":32} without a line end. */
void wlm_recorded_json(const wlm_recorded *recorded, wlm_text *out);
wlm_status wlm_recorded_id(const wlm_recorded *recorded, char id[WLM_HASH_HEX]); /* of that line */
wlm_status wlm_recorded_copy(const wlm_recorded *recorded, wlm_recorded *copy);  /* owns its strings */
void wlm_recorded_release(wlm_recorded *recorded);                               /* also of a zeroed one */
void wlm_recorded_free(wlm_recorded *list, int64_t count);

/* All of them or none, in one transaction; those that are there already stay as they are. */
wlm_status wlm_store_record(wlm_store *store, const wlm_recorded *list, int64_t count);
/* One within the caller's transaction. */
wlm_status wlm_store_record_one(wlm_store *store, const wlm_recorded *recorded);
/* Takes it away; no error where it is not there. */
wlm_status wlm_store_forget(wlm_store *store, const wlm_recorded *recorded);
/* Those of a class, or of all where that is NULL, by id: wlm_recorded_free. A store of before there were any has none.
 */
wlm_status wlm_store_load_recorded(wlm_store *store, const char *device_class, wlm_recorded **list, int64_t *count);
/* All that are whole, in a store that is damaged. */
wlm_status wlm_store_salvage_recorded(wlm_store *store, wlm_recorded **list, int64_t *count);

#endif
