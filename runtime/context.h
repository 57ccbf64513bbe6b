/* The context's functions for the tuner and the command. */
#pragma once

#include "core/records/record.h"
#include "generator/generator.h"
#include "runtime/dispatch/device.h"
#include "select/select.h"

/* wlm_context_create on a device that is open already. The context owns the device from here on, also after an error.
 */
wlm_status wlmi_context_create_on(wlmi_device *device, const wlm_context_options *options, wlm_context **context);

wlmi_device *wlmi_context_device(const wlm_context *context);
wlmi_generator *wlmi_context_generator(const wlm_context *context);
/* "" where the context has no user database. */
const char *wlmi_context_database_path(const wlm_context *context);

/* Its device's class (wlmi_device_class). */
const char *wlmi_context_device_class(const wlm_context *context);

/* The problem joined with the matrix's types, checked. */
wlm_status wlmi_context_spec(const wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                             wlmi_spec *spec);
/* Adds the fingerprint to the matrix's stats if it is missing, by one blocking copy of rowptr and a sample of colind.
 */
wlm_status wlmi_matrix_fingerprint(const wlm_matrix *matrix);
const wlm_csr *wlmi_matrix_csr(const wlm_matrix *matrix);
/* WLM_ERR_INVALID_ARGUMENT where the matrix was created in another context; `call` is the function that was called. */
wlm_status wlmi_matrix_of(const wlm_matrix *matrix, const wlm_context *context, const char *call);
/* Refuses a matrix besides of which only the size is known. */
wlm_status wlmi_matrix_with_arrays(const wlm_matrix *matrix, const wlm_context *context, const char *call);

/* op(A) as kernels see it: A, or its transpose. */
typedef struct wlmi_matrix_view {
  wlm_csr csr; /* `values` are those of A, in A's order */
  const wlm_stats *stats;
  const void *order; /* the index of each entry's value, of rowptr's type; NULL = its own position */
  /* The time that building A^T took and the memory that it occupies; 0 for A itself. */
  double made_seconds;
  size_t made_bytes;
} wlmi_matrix_view;
/* Builds A^T at the first call that needs it, which blocks. The view is valid as long as the matrix. */
wlm_status wlmi_matrix_see(const wlm_matrix *matrix, const wlm_problem *problem, wlmi_matrix_view *view);

/* Runs the selection on a snapshot (NULL = the context's own) for the context's device. `stats` are those of op(A). */
wlm_status wlmi_context_select(wlm_context *context, const wlmi_snapshot *snapshot, const wlm_stats *stats,
                               wlmi_use use, const wlmi_spec *spec, wlmi_decision *decision);
/* The decision that a plan would get, without compiling or loading anything. The matrix may belong to another context
 * of the same device. */
wlm_status wlmi_context_choose(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                               wlmi_decision *decision);

/* Writes the problems that were recorded since the last call to the user database, in one transaction. If that fails,
 * the next call tries again. Does nothing if `record` is off. Any thread; plan creation does not wait for it. */
wlm_status wlmi_context_write_recorded(wlm_context *context);

/* Emits a variant for a spec once and compiles it into the kernel cache, unless it is there, so a later plan loads it
 * without a compiler. Any thread, several at once. */
wlm_status wlmi_context_compile(wlm_context *context, const char *variant, const wlmi_spec *spec);
