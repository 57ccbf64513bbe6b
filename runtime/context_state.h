/* The context's parts, for the files of runtime/ alone. */
#ifndef WLM_RUNTIME_CONTEXT_STATE_H
#define WLM_RUNTIME_CONTEXT_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "db/kernel_cache.h"
#include "db/recorded.h"
#include "runtime/context.h"
#include "runtime/dispatch/plan.h"
#include "runtime/transpose.h"

/* A compiled program; lives as long as the context, so that plans may share it. */
typedef struct wlmi_kernel_entry {
  char key[33];
  void *image;
  size_t size;
  int loaded;
  wlmi_module *module;
  void *kernels[WLM_MAX_PASSES];
  wlmi_program builtin; /* where the library carries it: what was loaded; its source is NULL */
  struct wlmi_kernel_entry *next;
} wlmi_kernel_entry;

/* What nothing near was tuned for, on its way to the user database. */
typedef struct wlmi_notes {
  int wanted;
  pthread_mutex_t lock;
  wlmi_recorded *list;
  int64_t count, capacity;
  int64_t written; /* of them, from the first on */
} wlmi_notes;

struct wlm_context {
  wlmi_device *device;
  wlmi_generator *generator;
  wlmi_kernel_cache *cache; /* NULL = none */
  char *database, *system_database;
  pthread_mutex_t snapshot_lock;
  wlmi_snapshot *snapshot;   /* never NULL; see wlmi_context_snapshot */
  atomic_ullong generations; /* loads that were begun */
  pthread_mutex_t kernel_lock;
  wlmi_kernel_entry *kernels;
  wlmi_notes notes;
};

struct wlm_matrix {
  wlm_csr csr;
  wlm_stats stats;
  wlmi_transpose *transpose; /* made when it is first asked for */
};

/* matrix.c: from device memory. */
wlm_status wlmi_matrix_make_stats(wlmi_device *device, const wlm_csr *csr, wlm_stats *stats);

/* kernels.c: from a program to loaded kernels; compiles, or finds it in memory or in the cache. */
wlm_status wlmi_context_load(wlm_context *context, const wlmi_program *program, void *kernels[WLM_MAX_PASSES]);
/* What works without a compiler; fills the program too. */
wlm_status wlmi_context_load_builtin(wlm_context *context, const wlmi_spec *spec, wlmi_program *program,
                                     void *kernels[WLM_MAX_PASSES]);
void wlmi_context_release_kernels(wlm_context *context);

/* notes.c: of a problem that was just chosen for. Failing to is logged. */
void wlmi_context_note(wlm_context *context, const wlm_plan *plan, int64_t n);
void wlmi_context_release_notes(wlm_context *context);

/* context.c: what was learned, with a user more: wlmi_snapshot_release. */
wlmi_snapshot *wlmi_context_snapshot(wlm_context *context);
/* Takes the snapshot over, in the place of the present one if it is of a later generation. */
void wlmi_context_install(wlm_context *context, wlmi_snapshot *snapshot);

/* learned.c: the system and the user database into an empty snapshot. What is damaged is logged and left out; what
 * cannot be read for now, since it is locked for one, is an error where it must be read. */
wlm_status wlmi_context_load_learned(const wlm_context *context, int must_read, wlmi_snapshot *snapshot);

#endif
