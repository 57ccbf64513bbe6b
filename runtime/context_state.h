/* The context's parts, for the files of runtime/ alone. */
#ifndef WLM_RUNTIME_CONTEXT_STATE_H
#define WLM_RUNTIME_CONTEXT_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "db/kernel_cache.h"
#include "db/store.h"
#include "runtime/background.h"
#include "runtime/context.h"
#include "runtime/decisions.h"
#include "runtime/transpose.h"
#include "runtime/workspaces.h"

/* A compiled program; lives as long as the context, so that plans may share it. */
typedef struct wlmi_kernel_entry {
  char key[33];
  void *image;
  size_t size;
  int cached; /* the image is from the kernel cache */
  int loaded;
  wlmi_module *module;
  void *kernels[WLM_MAX_PASSES];
  wlmi_program builtin; /* where the library carries it: what was loaded; its source is NULL */
  struct wlmi_kernel_entry *next;
} wlmi_kernel_entry;

/* A variant that was emitted for a spec, which is done once. Its source is kept as a hash. */
typedef struct wlmi_emitted {
  wlmi_hash key;
  wlmi_program program; /* its source is NULL */
  char source_hash[WLM_HASH_HEX];
  wlmi_kernel_entry *entry; /* NULL = not compiled */
  struct wlmi_emitted *next;
} wlmi_emitted;
enum { WLM_EMITTED_SLOTS = 256 };

/* The problems that a context recorded for a later tuning. The list only grows, up to 4,096, and what it holds stays as
 * it is until the context ends. */
typedef struct wlmi_recorder {
  int wanted;
  pthread_mutex_t lock; /* of the fields below; never held during a database transaction */
  wlmi_recorded *list;
  int64_t count, capacity;
  int64_t written; /* the first of the list that are in the user database */
} wlmi_recorder;

struct wlm_context {
  wlmi_device *device;
  wlmi_generator *generator;
  wlmi_kernel_cache *cache; /* NULL = none */
  char *database, *system_database, *device_class;
  pthread_mutex_t snapshot_lock;
  wlmi_snapshot *snapshot;   /* never NULL; see wlmi_context_snapshot */
  atomic_ullong generations; /* loads that were begun */
  pthread_mutex_t kernel_lock;
  wlmi_kernel_entry *kernels;
  wlmi_emitted *emitted[WLM_EMITTED_SLOTS]; /* under kernel_lock, as their entries are */
  wlmi_decisions decisions;
  wlmi_workspaces workspaces;
  wlmi_background background;
  wlmi_recorder recorder;
};

struct wlm_matrix {
  wlm_context *context;
  void *stream;
  wlm_csr csr;
  wlm_stats_grade grade;
  pthread_mutex_t lock; /* of the fields below, which are made when they are first needed */
  wlm_stats stats;
  wlmi_transpose *transpose;
};

/* matrix.c: refuses a matrix that no kernel could read. */
wlm_status wlmi_matrix_check(const wlm_csr *csr);
/* Of a view of the matrix, whose stats another thread may just be completing. */
void wlmi_matrix_read_stats(const wlm_matrix *matrix, const wlm_stats *from, wlm_stats *to);
int wlmi_matrix_has_transpose(const wlm_matrix *matrix);
/* Everything but the fingerprint, and the fingerprint of measured stats; both wait for the stream. */
wlm_status wlmi_matrix_make_stats(wlm_context *context, const wlm_csr *csr, void *stream, wlm_stats *stats);
wlm_status wlmi_matrix_add_fingerprint(wlm_context *context, const wlm_csr *csr, void *stream, wlm_stats *stats);

/* kernels.c: from a variant to loaded kernels; emits and compiles it, or finds it in memory or in the cache. Fills the
 * program, too, but for its source. */
wlm_status wlmi_context_load_variant(wlm_context *context, const wlmi_variant *variant, const wlmi_spec *spec,
                                     wlmi_program *program, void *kernels[WLM_MAX_PASSES]);
int wlmi_context_has_variant(wlm_context *context, const wlmi_variant *variant, const wlmi_spec *spec);
/* The kernels of the gradients by argmax. */
wlm_status wlmi_context_load_backward(wlm_context *context, const wlmi_spec *spec, wlmi_program *program,
                                      void *kernels[WLM_MAX_PASSES]);
/* The kernels that measure the stats of a matrix, that validate it, and that build A^T; WLM_ERR_NO_COMPILER where there
 * is none. */
wlm_status wlmi_context_load_stats(wlm_context *context, const wlm_csr *csr, void *kernels[WLM_MAX_PASSES]);
int wlmi_context_has_stats(wlm_context *context, const wlm_csr *csr);
wlm_status wlmi_context_load_validate(wlm_context *context, const wlm_csr *csr, void *kernels[WLM_MAX_PASSES]);
wlm_status wlmi_context_load_transpose(wlm_context *context, const wlm_csr *csr, void *kernels[WLM_MAX_PASSES]);
/* What works without a compiler; fills the program too. */
wlm_status wlmi_context_load_builtin(wlm_context *context, const wlmi_spec *spec, wlmi_program *program,
                                     void *kernels[WLM_MAX_PASSES]);
int wlmi_context_has_builtin(wlm_context *context, const wlmi_spec *spec);
void wlmi_context_release_kernels(wlm_context *context);

/* recorder.c: records the plan's problem where `record` is on and nothing near it was tuned. A failure is logged. */
void wlmi_context_record(wlm_context *context, const wlm_plan *plan, int64_t n);
void wlmi_context_release_recorder(wlm_context *context);

/* context.c: what was learned, with a user more: wlmi_snapshot_release. */
wlmi_snapshot *wlmi_context_snapshot(wlm_context *context);
/* Takes the snapshot over, in the place of the present one if it is of a later generation. */
void wlmi_context_install(wlm_context *context, wlmi_snapshot *snapshot);

/* learned.c: the system and the user database into an empty snapshot. What is damaged is logged and left out; what
 * cannot be read for now, since it is locked for one, is an error where it must be read. */
wlm_status wlmi_context_load_learned(const wlm_context *context, int must_read, wlmi_snapshot *snapshot);

#endif
