/* Runs several tunings: opens and reads the store once, skips what it has, and refreshes choices only at the end.
 * wlm_tune (tune.c) runs a single one. */
#pragma once

#include "core/base/hash.h"
#include "runtime/context.h"
#include "tuner/known.h"
#include "warploom/warploom_tune.h"

typedef struct wlmi_tuner wlmi_tuner;

/* again: also measure what the store has. WLM_ERR_NO_COMPILER, or WLM_ERR_INVALID_ARGUMENT without a user database. */
wlm_status wlmi_tuner_create(wlm_context *context, int again, wlmi_tuner **tuner);
void wlmi_tuner_destroy(wlmi_tuner *tuner); /* NULL is fine */

/* The result of one tuning, and how its time was spent. */
typedef struct wlmi_tune_summary {
  int64_t candidates, known; /* known: skipped, because the store has them */
  int64_t measured, failed, finalists;
  int64_t put_off;  /* candidates with temporary failures, which the next tuning tries again */
  int repeats;      /* of the last round, because the machine was busy */
  double lost;      /* the share of the calmest round in which the calling thread did not run; 0 = it was calm */
  int nothing;      /* A has no non-zeros or B no columns: nothing to tune */
  int64_t unlikely; /* candidates that were not measured because they are expected to be slow */
  double waited;    /* seconds of waiting for another tuning */
  double total, making, compiling, entering, checking; /* seconds; the rest of total is timing */
} wlmi_tune_summary;
/* As wlm_tune, without refreshing the context; args, options and summary may be NULL. Candidates that a near model
 * expects to be slow are measured only if, at the present pace, the tuning ends within share_seconds; infinite = all
 * are measured. */
wlm_status wlmi_tuner_run(wlmi_tuner *tuner, const wlm_matrix *matrix, const wlm_problem *problem,
                          const wlm_execute_args *args, const wlm_tune_options *options, double share_seconds,
                          wlmi_tune_summary *summary);

/* How many candidates of the spec the store lacked for a matrix of that name when the tuner was created, and of how
 * many. 1 also if it has all of them but no finalists although some work. */
wlm_status wlmi_tuner_left(wlmi_tuner *tuner, const char *matrix_name, const wlmi_spec *spec, int64_t *left,
                           int64_t *candidates);

/* Reads the store again, so that later tunings skip what was measured meanwhile. */
wlm_status wlmi_tuner_reread(wlmi_tuner *tuner);

/* ---- for tune.c ---- */

wlm_store *wlmi_tuner_store(const wlmi_tuner *tuner);
wlm_context *wlmi_tuner_context(const wlmi_tuner *tuner);

/* All candidates of a spec in a new array (wlmi_free), with the times that the store has. known_key: see known.h. */
wlm_status wlmi_tuner_candidates(wlmi_tuner *tuner, const wlmi_spec *spec, wlmi_hash known_key, wlmi_timed **candidates,
                                 int64_t *count);

/* A buffer larger than the caches, to be overwritten; size 0 if it could not be allocated. Lives as long as the tuner.
 */
typedef struct wlmi_buffer wlmi_buffer;
const wlmi_buffer *wlmi_tuner_flush_buffer(wlmi_tuner *tuner);
