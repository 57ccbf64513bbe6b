/* The rows of the tables device, matrix and variant by their ids. Many measurements refer to few of them, so reading
 * them once takes less time than joining each measurement with them. */
#pragma once

#include "core/base/strings.h"
#include "db/store_state.h"

typedef struct wlmi_parts {
  char (*ids)[WLMI_HASH_HEX];       /* in their order */
  wlmi_measurement_record *records; /* with the fields of the table alone */
  int64_t count, capacity, id_capacity;
} wlmi_parts;

/* Keeps valid rows only, their texts in `texts`. The struct must be empty; release it also after an error. */
wlm_status wlmi_parts_read(const wlm_store *store, wlmi_field_table table, wlmi_strings *texts, wlmi_parts *parts);
int64_t wlmi_parts_find(const wlmi_parts *parts, const char *id); /* -1 = there is none */
void wlmi_parts_release(wlmi_parts *parts);

/* Reads fields of a row and keeps their texts. *whole becomes 0 if a value is impossible. Texts that equal those of
 * `last` (may be NULL) are shared without a look-up. */
wlm_status wlmi_fields_keep(wlmi_strings *texts, sqlite3_stmt *row, int column, unsigned of,
                            const wlmi_measurement_record *last, wlmi_measurement_record *out, int *whole);

/* For bsearch in an array of ids. */
int wlmi_ids_compare(const void *left, const void *right);
