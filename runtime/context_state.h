/* The parts of a context, only for the files of runtime/. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/fork.h"
#include "db/kernel_cache.h"
#include "db/store.h"
#include "runtime/archived.h"
#include "runtime/background.h"
#include "runtime/context.h"
#include "runtime/decisions.h"
#include "runtime/layers.h"
#include "runtime/transpose.h"
#include "runtime/workspaces.h"

/* Where the image of a compiled program is from. */
typedef enum wlmi_origin { WLMI_ORIGIN_ARCHIVE, WLMI_ORIGIN_CACHE, WLMI_ORIGIN_COMPILER } wlmi_origin;

/* A compiled program. It lives as long as the context, so plans can share it; its kernels may be unloaded while nothing
 * uses them. */
typedef struct wlmi_kernel_entry {
  char key[33];
  void *image; /* NULL once it is loaded */
  size_t size;
  wlmi_origin origin;
  int loaded;
  atomic_int users;
  wlmi_module *module;
  void *kernels[WLMI_MAX_PASSES];
  const struct wlmi_exported_kernel *linked; /* it is linked in (linked.c), and stays loaded; NULL = it is not */
  struct wlmi_kernel_entry *next;
} wlmi_kernel_entry;

/* A variant that was emitted for a spec. Emitting is done once; the source is not kept. */
typedef struct wlmi_emitted {
  wlmi_hash key;
  wlmi_program program;     /* its source is NULL */
  wlmi_kernel_entry *entry; /* NULL = not compiled */
  struct wlmi_emitted *next;
} wlmi_emitted;
enum { WLMI_EMITTED_SLOTS = 256 };

/* The problems that a context recorded for later tuning. The list only grows, up to 4,096 entries, and entries never
 * change until the context is destroyed. */
typedef struct wlmi_recorder {
  int wanted;
  pthread_mutex_t lock; /* of the fields below; never held during a database transaction */
  wlmi_recorded *list;
  int64_t count, capacity;
  int64_t written; /* this many entries from the start are in the user database */
} wlmi_recorder;

struct wlm_context {
  wlmi_device *device;
  wlmi_generator *generator;
  wlmi_kernel_cache *cache; /* NULL = none */
  wlmi_archives archives;
  atomic_flag told_archived; /* the log says that only kernels of archives are used */
  wlmi_layers layers;
  char *database, *system_database, *device_class;
  pthread_mutex_t snapshot_lock;
  wlmi_snapshot *snapshot;   /* never NULL; see wlmi_context_snapshot */
  atomic_ullong generations; /* number of loads that were started */
  pthread_mutex_t kernel_lock;
  wlmi_kernel_entry *kernels;
  wlmi_emitted *emitted[WLMI_EMITTED_SLOTS]; /* under kernel_lock, as their entries are */
  int loaded, unload_at; /* how many kernels are loaded, and how many must be before any are unloaded again */
  wlmi_decisions decisions;
  wlmi_workspaces workspaces;
  wlmi_background background;
  wlmi_recorder recorder;
  wlmi_fork_watch forks;
};

struct wlm_matrix {
  wlm_context *context;
  void *stream;
  wlm_csr csr;
  pthread_mutex_t lock; /* of the fields below, which are completed when they are first needed */
  wlm_stats_grade grade;
  wlm_stats stats;
  wlmi_transpose *transpose;
  int half_changed; /* a child of fork, whose parent had a thread that held the lock */
  wlmi_fork_watch forks;
};

/* matrix.c: refuses a matrix that no kernel can read. */
wlm_status wlmi_matrix_check(const wlm_csr *csr);
/* Copies the stats of a view under a lock, because another thread may be adding the fingerprint. Returns the grade of
 * A's own stats, which rises with the fingerprint. */
wlm_stats_grade wlmi_matrix_read_stats(const wlm_matrix *matrix, const wlm_stats *from, wlm_stats *to);
int wlmi_matrix_has_transpose(const wlm_matrix *matrix);

/* stats_device.c: make_stats measures everything but the fingerprint, the other adds the fingerprint; both wait for the
 * stream. */
wlm_status wlmi_matrix_make_stats(wlm_context *context, const wlm_csr *csr, void *stream, wlm_stats *stats);
wlm_status wlmi_matrix_add_fingerprint(wlm_context *context, const wlm_csr *csr, void *stream, wlm_stats *stats);

/* ---- where kernels come from: kernels.c with a compiler, exported/library/kernels.c with tables; and
 * generator/generator.h, whose candidates say which kernels there are ---- */

/* The kernels that are wanted: those of a variant, the built-in one, which needs no compiler, or those of a helper. */
typedef struct wlmi_wanted {
  const wlmi_spec *spec; /* for WLMI_HELPER_COO colind_type is that of the coordinates */
  wlmi_variant variant;  /* zeroed = the built-in one, or a helper */
  wlmi_helper helper;
  int any_width; /* of WLMI_HELPER_GRADIENT: in the form for any number of columns */
} wlmi_wanted;

/* Finds them in memory, in archives or in the kernel cache, or emits and compiles them. The caller is one of their
 * users afterwards. WLM_ERR_NO_COMPILER without a compiler. */
wlm_status wlmi_context_load(wlm_context *context, const wlmi_wanted *wanted, wlmi_loaded *loaded);
/* Whether that needs no compiling: they are loaded already, or in the archive. */
int wlmi_context_has(wlm_context *context, const wlmi_wanted *wanted);

/* linked.c */
wlm_status wlmi_linked_load(wlm_context *context, const struct wlmi_exported_kernel *kernel, wlmi_loaded *loaded);
void wlmi_context_release_kernels(wlm_context *context);

/* ---- where choices come from: stores.c with databases, exported/library/choices.c with tables ---- */

/* Opens what the options name besides the device, which is open; also the generator. */
wlm_status wlmi_context_open_stores(wlm_context *context, const wlm_context_options *options);
void wlmi_context_close_stores(wlm_context *context); /* also of a context that failed to open */
/* Loads everything that was learned for the context's device into an empty snapshot. A damaged database is logged and
 * left out. One that cannot be read now, for example because it is locked, is an error with must_read, and is otherwise
 * left out as well. */
wlm_status wlmi_context_load_learned(const wlm_context *context, int must_read, wlmi_snapshot *snapshot);
/* Records the plan's problem if `record` is on and nothing similar was tuned. A failure is logged. */
void wlmi_context_record(wlm_context *context, const wlm_plan *plan, int64_t n);

/* ---- parts of a context ---- */

/* recorder.c */
void wlmi_context_release_recorder(wlm_context *context);

/* context.c: the present snapshot, with one user more; release it with wlmi_snapshot_release. */
wlmi_snapshot *wlmi_context_snapshot(wlm_context *context);
/* Takes ownership of the snapshot. It replaces the present one if its generation is later. */
void wlmi_context_install(wlm_context *context, wlmi_snapshot *snapshot);
