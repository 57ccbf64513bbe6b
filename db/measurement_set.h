/* The measurements of one device class, as selection needs them: the union of databases, as after a merge.
 * Every context loads one, so loading is fast: it reads only the columns that wlmi_cases_make needs, stores equal texts
 * once, and trusts ids. Import, merge and `db check` verify the ids. */
#pragma once

#include "core/base/strings.h"
#include "db/store.h"

typedef struct wlmi_measurement_set {
  /* With matrix, variant and the fields of WLMI_OF_CHOICE. Cold measurements are left out. The texts belong to the set.
   */
  wlmi_measurement_record *records;
  char (*ids)[WLMI_HASH_HEX]; /* of the records */
  int64_t count, capacity, id_capacity;
  int64_t *ends; /* how many records there are with each store that was added */
  int64_t store_count, end_capacity;
  wlmi_strings texts;
} wlmi_measurement_set;

/* Adds the store's measurements of the class that the set does not have. Rows with impossible values are left out, with
 * one warning. WLM_ERR_DATABASE if SQLite cannot read the file; the set is then unchanged. */
wlm_status wlmi_measurement_set_add(wlmi_measurement_set *set, wlm_store *store, const char *device_class);
void wlmi_measurement_set_release(wlmi_measurement_set *set); /* also of a zeroed one */
