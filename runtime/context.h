/* What the tuner and the command may know of a context. */
#ifndef WLM_RUNTIME_CONTEXT_H
#define WLM_RUNTIME_CONTEXT_H

#include "generator/generator.h"
#include "records/record.h"
#include "runtime/dispatch/device.h"
#include "select/select.h"

wlmi_device *wlmi_context_device(const wlm_context *context);
wlmi_generator *wlmi_context_generator(const wlm_context *context);
/* "" where the context has no user database. */
const char *wlmi_context_database_path(const wlm_context *context);
/* Appends the path of the database that is shipped with what this is linked into; nothing where there is none. */
void wlmi_system_database_path(wlmi_text *path);

/* How the store knows this device, and its class (wlmi_device_class); the strings are the context's. */
void wlmi_context_device_record(const wlm_context *context, wlmi_device_record *record);
const char *wlmi_context_device_class(const wlm_context *context);

/* The problem joined with the matrix's types, checked. */
wlm_status wlmi_context_spec(const wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                             wlmi_spec *spec);
/* Makes the fingerprint of the matrix's stats where there is none: one blocking copy of rowptr and a sample of colind.
 */
wlm_status wlmi_matrix_fingerprint(const wlm_matrix *matrix);
const wlm_csr *wlmi_matrix_csr(const wlm_matrix *matrix);
/* WLM_ERR_INVALID_ARGUMENT where the matrix was created in another context; `call` is the function that was called. */
wlm_status wlmi_matrix_of(const wlm_matrix *matrix, const wlm_context *context, const char *call);

/* op(A) as kernels see it: A, or its transpose. */
typedef struct wlmi_matrix_view {
  wlm_csr csr; /* its values are those of A in A's order */
  const wlm_stats *stats;
  const void *order; /* where the value of each entry is, of rowptr's type; NULL = at its own position */
  /* What making the transpose took, and the memory that it keeps; 0 for A itself. */
  double made_seconds;
  size_t made_bytes;
} wlmi_matrix_view;
/* Makes the transpose where that was not done before: blocking. All of it stays good as long as the matrix. */
wlm_status wlmi_matrix_see(const wlm_matrix *matrix, const wlm_problem *problem, wlmi_matrix_view *view);

/* What would be chosen from a snapshot (NULL = the context's own) with the variants of the context's device. `stats`
 * are those of op(A). */
wlm_status wlmi_context_select(wlm_context *context, const wlmi_snapshot *snapshot, const wlm_stats *stats,
                               wlmi_grade grade, const wlmi_spec *spec, wlmi_decision *decision);
/* What a plan would be made of, without compiling or loading anything. The matrix may be another context's, if that is
 * of the same device. */
wlm_status wlmi_context_choose(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                               wlmi_decision *decision);

/* Writes the problems recorded since the last time to the user database, in one transaction; they stay to be written
 * where that fails. Does nothing where `record` is off. Any thread; plan creation does not wait for it. */
wlm_status wlmi_context_write_recorded(wlm_context *context);

/* Emits a variant for a spec and hashes its source, both once, and compiles it into the kernel cache (or finds it
 * there) where that is asked for, so that a plan made later loads it at once. source_hash is filled also where it does
 * not compile; "" where it cannot be emitted. Any thread, several at once. */
wlm_status wlmi_context_emit(wlm_context *context, const char *variant, const wlmi_spec *spec, int compiled,
                             char source_hash[WLM_HASH_HEX]);

#endif
