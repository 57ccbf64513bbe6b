/* Emits and compiles many candidates at once, on several threads, into the kernel cache. */
#ifndef WLM_TUNER_COMPILE_AHEAD_H
#define WLM_TUNER_COMPILE_AHEAD_H

#include "common/hash.h"
#include "runtime/context.h"

typedef struct wlmi_compile_job {
  const char *variant;
  const wlmi_spec *spec;
  char source_hash[WLM_HASH_HEX]; /* "" where nothing was emitted */
  wlm_status status;
  char *detail; /* why it failed, else NULL */
} wlmi_compile_job;

int wlmi_compile_threads(void); /* one a processor but one, 2 to 16 */

/* Jobs are begun in their order. One that was not begun before the end has WLM_ERR_CANCELLED; a job's failure is the
 * job's own; release each detail with wlmi_free. Context, specs and jobs outlive the compiling. */
typedef struct wlmi_compiling wlmi_compiling;
wlm_status wlmi_compile_begin(wlm_context *context, wlmi_compile_job *jobs, int64_t count, wlmi_compiling **compiling);
/* Until job i is done. The calling thread calls tick(user), which may be NULL, ten times a second; when that gives
 * non-zero, no further job is begun. */
void wlmi_compile_wait(wlmi_compiling *compiling, int64_t i, int (*tick)(void *user), void *user);
/* Begins no further job and waits for those that were. */
void wlmi_compile_end(wlmi_compiling *compiling); /* NULL is fine */

/* All of these in one: blocking. */
wlm_status wlmi_compile_ahead(wlm_context *context, wlmi_compile_job *jobs, int64_t count, int (*tick)(void *user),
                              void *user);
/* The same without ticks, for a caller to whom failures show when it makes the plans: no job keeps a detail. */
wlm_status wlmi_compile_all(wlm_context *context, wlmi_compile_job *jobs, int64_t count);

#endif
