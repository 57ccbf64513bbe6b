/* Background compilation: a thread of the context compiles and loads the kernels that decisions chose, while plans run
 * other kernels. */
#pragma once

#include <pthread.h>

#include "runtime/decisions.h"

typedef struct wlmi_background_job wlmi_background_job;

typedef struct wlmi_background {
  int wanted;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t thread;
  int running, stopping;
  int helpers_queued[WLMI_HELPERS][2][2]; /* by types of rowptr and colind: 1 once they were queued */
  wlmi_background_job *first, *last;
} wlmi_background;

/* Also in a child of fork, which has neither the thread nor its jobs. */
void wlmi_background_open(wlmi_background *background, int wanted);
/* Waits for the running compiler and drops the jobs behind it. */
void wlmi_background_close(wlmi_background *background);

/* Queues a decision whose kernels are not loaded. The caller must drop the upgrade (wlmi_upgrade_drop). */
wlm_status wlmi_background_add(wlm_context *context, const wlmi_spec *spec, const wlmi_decision *decision,
                               const wlmi_hash *key, uint64_t generation, wlmi_upgrade **upgrade);
/* Whether the host is to do the work of these kernels, for matrices with the csr's index types: 1 if they are not at
 * hand and are compiled in the background, which this queues. */
wlm_status wlmi_background_helps(wlm_context *context, wlmi_helper helper, const wlm_csr *csr, int *on_host);
