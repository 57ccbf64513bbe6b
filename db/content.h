/* All that a store holds of what can't be derived: measurements, pins and recorded problems, as plain arrays. */
#ifndef WLM_DB_CONTENT_H
#define WLM_DB_CONTENT_H

#include "db/pin.h"
#include "db/recorded.h"

typedef struct wlm_content {
  wlm_measurement_record *records; /* by id where they were loaded */
  int64_t count, capacity;
  wlm_pin_record *pins;
  int64_t pin_count, pin_capacity;
  wlm_recorded *recorded; /* by id where they were loaded */
  int64_t recorded_count, recorded_capacity;
} wlm_content;

wlm_status wlm_content_load(wlm_store *store, wlm_content *content);
void wlm_content_release(wlm_content *content); /* also of a zeroed one */

/* All of it or nothing, in one transaction. Measurements and recorded problems are a union. A pin for what the store
 * has pinned to another variant is left out; each such conflict is a line of `conflicts` (may be NULL). *added (may be
 * NULL) counts measurements that were not there before. */
wlm_status wlm_store_add(wlm_store *store, const wlm_content *content, wlm_text *conflicts, int64_t *added);

/* Writes the union of some stores into a new file; an earlier one's pins win. WLM_ERR_INVALID_ARGUMENT where `path`
 * exists. The file has that name once it is whole: whatever goes wrong, and should the process be killed, there is
 * none. A kill may leave PATH.tmp-PID behind, which nobody reads. */
wlm_status wlm_store_merge_files(const char *const *sources, int64_t source_count, const char *path,
                                 wlm_text *conflicts, int64_t *measurements);

#endif
