/* All that a store holds of what can't be derived: measurements, pins and recorded problems, as plain arrays. */
#ifndef WLM_DB_CONTENT_H
#define WLM_DB_CONTENT_H

#include "db/pin.h"
#include "db/recorded.h"

typedef struct wlmi_content {
  wlmi_measurement_record *records; /* by id where they were loaded */
  int64_t count, capacity;
  wlmi_pin_record *pins;
  int64_t pin_count, pin_capacity;
  wlmi_recorded *recorded; /* by id where they were loaded */
  int64_t recorded_count, recorded_capacity;
} wlmi_content;

wlm_status wlmi_content_load(wlm_store *store, wlmi_content *content);
void wlmi_content_release(wlmi_content *content); /* also of a zeroed one */

/* All of it or nothing, in one transaction. Measurements and recorded problems are a union. A pin for what the store
 * has pinned to another variant is left out; each such conflict is a line of `conflicts` (may be NULL). *added (may be
 * NULL) counts measurements that were not there before. */
wlm_status wlmi_store_add(wlm_store *store, const wlmi_content *content, wlmi_text *conflicts, int64_t *added);

/* Writes the union of some stores into a new file; an earlier one's pins win. WLM_ERR_INVALID_ARGUMENT where `path`
 * exists. The file has that name once it is whole: whatever goes wrong, and should the process be killed, there is
 * none. A kill may leave PATH.tmp-PID behind, which nobody reads. */
wlm_status wlmi_store_merge_files(const char *const *sources, int64_t source_count, const char *path,
                                  wlmi_text *conflicts, int64_t *measurements);

#endif
