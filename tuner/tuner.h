/* Many tunings in one go: the store is opened and read once, what it has is left out, and nothing is chosen anew until
 * the end. wlm_tune (tune.c) is one of them alone. */
#ifndef WLM_TUNER_TUNER_H
#define WLM_TUNER_TUNER_H

#include "common/hash.h"
#include "runtime/context.h"

typedef struct wlm_tuner wlm_tuner;

/* again: what the store has is measured all the same. WLM_ERR_NO_COMPILER and WLM_ERR_INVALID_ARGUMENT (no user
 * database) where nothing can be tuned. */
wlm_status wlm_tuner_create(wlm_context *context, int again, wlm_tuner **tuner);
void wlm_tuner_destroy(wlm_tuner *tuner); /* NULL is fine */

/* What came out of one tuning, and where its time went. */
typedef struct wlm_tune_summary {
  int64_t candidates, known; /* known: not measured, since the store had them */
  int64_t measured, failed, finalists;
  int64_t unlikely;                                    /* of those that were not measured: expected to be slow */
  double total, making, compiling, entering, checking; /* seconds; the rest of total is timing */
} wlm_tune_summary;
/* As wlm_tune, without refreshing the context. share_seconds is how long it may take, going by its own pace, if it is
 * to measure also what a near model takes for slow; infinite = all is measured. summary may be NULL. */
wlm_status wlm_tuner_run(wlm_tuner *tuner, const wlm_matrix *matrix, const wlm_problem *problem,
                         const wlm_tune_options *options, double share_seconds, wlm_tune_summary *summary);

/* How many candidates of the spec the store lacked, on a matrix of that name, when the tuner was made; 1 also where it
 * has all of them, but some that work and no finalists. Of how many. */
wlm_status wlm_tuner_left(wlm_tuner *tuner, const char *matrix_name, const wlm_spec *spec, int64_t *left,
                          int64_t *candidates);

/* Reads what the store has by now, so that it is left out where the same is tuned again. */
wlm_status wlm_tuner_reread(wlm_tuner *tuner);

/* ---- for tune.c ---- */

typedef struct wlm_store wlm_store;
typedef struct wlm_known wlm_known;
wlm_store *wlm_tuner_store(const wlm_tuner *tuner);
wlm_context *wlm_tuner_context(const wlm_tuner *tuner);

/* A candidate of a spec, with what the store knows of it on one matrix. */
typedef struct wlm_tuner_candidate {
  const char *variant; /* lives as long as the tuner */
  int known, prepared;
  double seconds; /* where known; infinite where it failed */
  int samples;
} wlm_tuner_candidate;
/* All of them into a new array (wlm_free). place: see known.h. */
wlm_status wlm_tuner_candidates(wlm_tuner *tuner, const wlm_spec *spec, wlm_hash place,
                                wlm_tuner_candidate **candidates, int64_t *count);

void wlm_tuner_source_hash(const wlm_tuner *tuner, const wlm_spec *spec, const char *variant, char hash[WLM_HASH_HEX]);

/* Memory to overwrite, larger than the caches; size 0 where there is none to be had. Lives as long as the tuner. */
typedef struct wlm_buffer wlm_buffer;
const wlm_buffer *wlm_tuner_flush_buffer(wlm_tuner *tuner);

#endif
