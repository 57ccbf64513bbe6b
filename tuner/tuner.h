/* Many tunings in one go: the store is opened and read once, what it has is left out, and nothing is chosen anew until
 * the end. wlm_tune (tune.c) is one of them alone. */
#ifndef WLM_TUNER_TUNER_H
#define WLM_TUNER_TUNER_H

#include "common/hash.h"
#include "runtime/context.h"
#include "warploom/warploom_tune.h"

typedef struct wlmi_tuner wlmi_tuner;

/* again: what the store has is measured all the same. WLM_ERR_NO_COMPILER and WLM_ERR_INVALID_ARGUMENT (no user
 * database) where nothing can be tuned. */
wlm_status wlmi_tuner_create(wlm_context *context, int again, wlmi_tuner **tuner);
void wlmi_tuner_destroy(wlmi_tuner *tuner); /* NULL is fine */

/* What came out of one tuning, and where its time went. */
typedef struct wlmi_tune_summary {
  int64_t candidates, known; /* known: not measured, since the store had them */
  int64_t measured, failed, finalists;
  int64_t put_off;  /* failed for a reason that may pass: tried again the next time */
  int nothing;      /* A has no non-zeros or B no columns: nothing to tune */
  int64_t unlikely; /* of those that were not measured: expected to be slow */
  double waited;    /* seconds for the turn of another tuning */
  double total, making, compiling, entering, checking; /* seconds; the rest of total is timing */
} wlmi_tune_summary;
/* As wlm_tune, without refreshing the context; args and options may be NULL. share_seconds is how long it may take,
 * going by its own pace, if it is to measure also what a near model takes for slow; infinite = all is measured. summary
 * may be NULL. */
wlm_status wlmi_tuner_run(wlmi_tuner *tuner, const wlm_matrix *matrix, const wlm_problem *problem,
                          const wlm_execute_args *args, const wlm_tune_options *options, double share_seconds,
                          wlmi_tune_summary *summary);

/* How many candidates of the spec the store lacked, on a matrix of that name, when the tuner was made; 1 also where it
 * has all of them, but some that work and no finalists. Of how many. */
wlm_status wlmi_tuner_left(wlmi_tuner *tuner, const char *matrix_name, const wlmi_spec *spec, int64_t *left,
                           int64_t *candidates);

/* Reads what the store has by now, so that it is left out where the same is tuned again. */
wlm_status wlmi_tuner_reread(wlmi_tuner *tuner);

/* ---- for tune.c ---- */

typedef struct wlm_store wlm_store;
typedef struct wlmi_known wlmi_known;
wlm_store *wlmi_tuner_store(const wlmi_tuner *tuner);
wlm_context *wlmi_tuner_context(const wlmi_tuner *tuner);

/* A candidate of a spec, with what the store knows of it on one matrix. */
typedef struct wlmi_tuner_candidate {
  char variant[WLM_VARIANT_NAME];
  int known, prepared;
  double seconds; /* where known; infinite where it failed */
  int samples;
} wlmi_tuner_candidate;
/* All of them into a new array (wlmi_free). place: see known.h. */
wlm_status wlmi_tuner_candidates(wlmi_tuner *tuner, const wlmi_spec *spec, wlmi_hash place,
                                 wlmi_tuner_candidate **candidates, int64_t *count);

void wlmi_tuner_source_hash(const wlmi_tuner *tuner, const wlmi_spec *spec, const char *variant,
                            char hash[WLM_HASH_HEX]);

/* Memory to overwrite, larger than the caches; size 0 where there is none to be had. Lives as long as the tuner. */
typedef struct wlmi_buffer wlmi_buffer;
const wlmi_buffer *wlmi_tuner_flush_buffer(wlmi_tuner *tuner);

#endif
