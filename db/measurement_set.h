/* What selection reads of the measurements of one device class: the union of one or two databases, as a merge of them
 * would have it. Every context loads one, so it is made for speed: only the columns that wlmi_cases_make needs are
 * read, equal texts share one copy, and ids are trusted. Import, merge and `db check` verify the ids. */
#ifndef WLM_DB_MEASUREMENT_SET_H
#define WLM_DB_MEASUREMENT_SET_H

#include "common/strings.h"
#include "db/store.h"

typedef struct wlmi_measurement_set {
  /* Without device, calls_per_sample and max_rel_err; reason is NULL where nothing failed. Runs from a cold start are
   * left out. The texts belong to the set. */
  wlmi_measurement_record *records;
  char (*ids)[WLM_HASH_HEX]; /* of the records */
  int64_t count, capacity, id_capacity;
  int64_t before; /* records of the first database, where there are two */
  wlmi_strings texts;
} wlmi_measurement_set;

/* Adds all that the store has of the class and the set does not have. Rows that make no sense are left out, with one
 * warning. WLM_ERR_DATABASE where SQLite cannot read the file; then the set is as it was. */
wlm_status wlmi_measurement_set_add(wlmi_measurement_set *set, wlm_store *store, const char *device_class);
void wlmi_measurement_set_release(wlmi_measurement_set *set); /* also of a zeroed one */

#endif
