/* Emits and compiles many candidates into the kernel cache, on several threads. */
#pragma once

#include "core/base/hash.h"
#include "runtime/context.h"
#include "runtime/dispatch/device.h"

typedef struct wlmi_compile_job {
  const char *variant;
  const wlmi_spec *spec;
  wlm_status status;
  char *detail; /* why it failed, else NULL */
} wlmi_compile_job;

int wlmi_compile_threads(void); /* one less than the processors, 2 to 16 */

/* Starts jobs in their order. A job that was not started before the end gets WLM_ERR_CANCELLED; a job that fails does
 * not affect the others. Release each detail with wlmi_free. Context, specs and jobs must outlive the compilation. */
typedef struct wlmi_compiling wlmi_compiling;
wlm_status wlmi_compile_begin(wlm_context *context, wlmi_compile_job *jobs, int64_t count, wlmi_compiling **compiling);
/* Waits until job i is done. The calling thread calls tick(user), which may be NULL, ten times a second; when tick
 * returns non-zero, no further job is started. */
void wlmi_compile_wait(wlmi_compiling *compiling, int64_t i, int (*tick)(void *user), void *user);
/* Starts no further job and waits for the running ones. */
void wlmi_compile_end(wlmi_compiling *compiling); /* NULL is fine */

/* Start, wait and end in one blocking call. */
wlm_status wlmi_compile_ahead(wlm_context *context, wlmi_compile_job *jobs, int64_t count, int (*tick)(void *user),
                              void *user);
/* The same without ticks and details, for callers that see failures when they create the plans. */
wlm_status wlmi_compile_all(wlm_context *context, wlmi_compile_job *jobs, int64_t count);

/* Runs work(user, i) for each i below count on several threads. After each it calls report(user, done), one call at a
 * time. None begins after the first failure of work or report, which is returned. */
wlm_status wlmi_compile_each(int64_t count, wlm_status (*work)(void *user, int64_t i),
                             wlm_status (*report)(void *user, int64_t done), void *user);

/* Decides from a compiled kernel's use of resources whether it is worth a measurement. */

/* Appends the reason if it is not worth it, otherwise nothing. The reason is that no block fits, or that its threads
 * spill so many registers that it cannot be among the best; the latter only if other candidates do not spill
 * (`spared`). */
void wlmi_kernel_refusal(const wlmi_kernel_facts *facts, unsigned int threads, int spared, wlmi_text *reason);
/* Whether its threads spill that much. */
int wlmi_kernel_spills(const wlmi_kernel_facts *facts);
