/* Emits and compiles many candidates at once, on several threads, into the kernel cache. */
#ifndef WLM_TUNER_COMPILE_AHEAD_H
#define WLM_TUNER_COMPILE_AHEAD_H

#include "common/hash.h"
#include "runtime/context.h"

typedef struct wlm_compile_job {
  const char *variant;
  char source_hash[WLM_HASH_HEX]; /* "" where nothing was emitted */
  wlm_status status;
  char *detail; /* why it failed, else NULL */
} wlm_compile_job;

int wlm_compile_threads(void); /* one a processor, 2 to 16 */

/* Blocking. The calling thread calls tick(user) ten times a second; when that gives non-zero, jobs that were not
 * begun are left with WLM_ERR_CANCELLED. A job's failure is the job's own; release each detail with wlm_free. */
void wlm_compile_ahead(wlm_context *context, const wlm_spec *spec, wlm_compile_job *jobs, int64_t count,
                       int (*tick)(void *user), void *user);

#endif
