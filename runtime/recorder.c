/* Records the problems that are worth tuning. If little like it was tuned, a plan runs the choice of a rule or of a
 * distant model. With the option `record`, plan creation then keeps the problem and the stats of the matrix in memory,
 * once. They are written to the user database in one transaction when the context is destroyed; plan creation never
 * waits for it. */
#include <string.h>

#include "core/base/memory.h"
#include "runtime/context_state.h"

enum { MOST = 4096 };
static const double near = 1; /* distance of a case above which tuning is worth it: about where the best kernel begins
                               * to change */

/* Whether tuning could improve the decision. A kernel that the caller named or pinned is final. */
static int is_untuned(const wlmi_decision *decision) {
  switch (decision->step) {
    case WLMI_STEP_RULE: return 1;
    case WLMI_STEP_MODEL: return !decision->similar_count || decision->similar[0].distance >= near;
    default: return 0;
  }
}

static int is_recorded(const wlmi_recorder *recorder, const wlmi_recorded *like) {
  for (int64_t i = 0; i < recorder->count; i++) {
    const wlmi_recorded *old = &recorder->list[i];
    if (old->n == like->n && !memcmp(old->stats.fingerprint, like->stats.fingerprint, sizeof like->stats.fingerprint) &&
        !strcmp(old->problem, like->problem))
      return 1;
  }
  return 0;
}

static wlm_status add(wlmi_recorder *recorder, const wlmi_recorded *problem) {
  if (recorder->count == MOST || is_recorded(recorder, problem)) return WLM_OK;
  WLM_CHECK(wlmi_grow((void **)&recorder->list, recorder->count, &recorder->capacity, sizeof *recorder->list,
                      "recorded problems"));
  WLM_CHECK(wlmi_recorded_copy(problem, &recorder->list[recorder->count]));
  recorder->count++;
  return WLM_OK;
}

void wlmi_context_record(wlm_context *context, const wlm_plan *plan, int64_t n) {
  wlmi_recorder *recorder = &context->recorder;
  if (!recorder->wanted || !plan->reason.stats.nnz || !n || !is_untuned(&plan->reason.decision)) return;
  const wlmi_recorded problem = {context->device_class, plan->reason.stats, (char *)plan->reason.problem_key, n};
  pthread_mutex_lock(&recorder->lock);
  const wlm_status status = add(recorder, &problem);
  pthread_mutex_unlock(&recorder->lock);
  if (status != WLM_OK) wlmi_log(WLM_LOG_WARNING, "a problem is not recorded: %s", wlm_error_detail());
}

/* Copies the entries that are not in the database yet; the recorder keeps owning their strings. *end = the list's
 * length. */
static wlm_status copy_unwritten(wlmi_recorder *recorder, wlmi_recorded **unwritten, int64_t *count, int64_t *end) {
  pthread_mutex_lock(&recorder->lock);
  *end = recorder->count;
  *count = recorder->count - recorder->written;
  wlm_status status = WLM_OK;
  if (*count) status = wlmi_alloc_array(*count, sizeof **unwritten, "recorded problems", (void **)unwritten);
  if (status == WLM_OK && *count)
    memcpy(*unwritten, recorder->list + recorder->written, (size_t)*count * sizeof **unwritten);
  pthread_mutex_unlock(&recorder->lock);
  return status;
}

/* Written entries stay in the list, so they are not recorded again. Two threads may write the same entries; the
 * database keeps each once. */
wlm_status wlmi_context_write_recorded(wlm_context *context) {
  wlmi_recorder *recorder = &context->recorder;
  wlmi_recorded *unwritten = NULL;
  wlm_store *store = NULL;
  int64_t count, end;
  wlm_status status;
  WLM_TRY(copy_unwritten(recorder, &unwritten, &count, &end));
  if (!count) goto done;
  WLM_TRY(wlmi_store_open(context->database, WLMI_STORE_WRITE, &store));
  WLM_TRY(wlmi_store_record(store, unwritten, count));
  pthread_mutex_lock(&recorder->lock);
  if (recorder->written < end) recorder->written = end;
  pthread_mutex_unlock(&recorder->lock);
done:
  wlmi_store_close(store);
  wlmi_free(unwritten);
  return status;
}

void wlmi_context_release_recorder(wlm_context *context) {
  wlmi_recorder *recorder = &context->recorder;
  wlmi_recorded_free(recorder->list, recorder->count);
  recorder->list = NULL;
  recorder->count = recorder->capacity = recorder->written = 0;
}
