/* What is known without a matrix: a context whose database has all measurements but those of the matrix and its
 * siblings, and what can be learned from these. */
#ifndef WLM_BENCH_UNSEEN_H
#define WLM_BENCH_UNSEEN_H

#include "db/record.h"

typedef struct wlmi_unseen {
  const char *device; /* as of wlm_context_options */
  const wlmi_measurement_record *records;
  int64_t count;
  char group[128]; /* that the context knows nothing of */
  wlm_context *context;
} wlmi_unseen;

/* Opens the context for the group of a matrix, unless it is the one that is open. */
wlm_status wlmi_unseen_without(wlmi_unseen *unseen, const char *matrix);
void wlmi_unseen_close(wlmi_unseen *unseen); /* also of a zeroed one */

#endif
