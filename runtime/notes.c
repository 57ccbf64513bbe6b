/* Noting what ought to be tuned. A plan for a matrix that nothing near was tuned for runs what a rule or a far-off
 * model thinks of it; where the caller asked for that, the matrix's statistics and the problem are noted down, once,
 * and reach the user database in one transaction when the context ends. Making a plan waits for no disk. */
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "runtime/context_state.h"

enum { MOST = 4096 };
static const double near = 1; /* in stats space: about where kernels begin to differ */

/* Whether tuning would tell more than what was known. What someone named or pinned is decided. */
static int is_untuned(const wlmi_decision *decision) {
  switch (decision->step) {
    case WLM_STEP_RULE: return 1;
    case WLM_STEP_BUCKET: return decision->distance >= near;
    case WLM_STEP_MODEL: return !decision->similar_count || decision->similar[0].distance >= near;
    default: return 0;
  }
}

static int is_noted(const wlmi_notes *notes, const wlmi_recorded *like) {
  for (int64_t i = 0; i < notes->count; i++) {
    const wlmi_recorded *old = &notes->list[i];
    if (old->n == like->n && !memcmp(old->stats.fingerprint, like->stats.fingerprint, sizeof like->stats.fingerprint) &&
        !strcmp(old->problem, like->problem))
      return 1;
  }
  return 0;
}

static wlm_status add(wlmi_notes *notes, const wlmi_recorded *note) {
  wlm_status status;
  if (notes->count == MOST || is_noted(notes, note)) return WLM_OK;
  WLM_TRY(wlmi_grow((void **)&notes->list, notes->count, &notes->capacity, sizeof *notes->list, "recorded problems"));
  WLM_TRY(wlmi_recorded_copy(note, &notes->list[notes->count]));
  notes->count++;
done:
  return status;
}

void wlmi_context_note(wlm_context *context, const wlm_plan *plan, int64_t n) {
  wlmi_notes *notes = &context->notes;
  wlmi_device_record device;
  wlmi_text device_class = {0};
  if (!notes->wanted || !plan->stats.nnz || !n || !is_untuned(&plan->decision)) return;
  wlmi_context_device_record(context, &device);
  wlmi_device_class(&device, &device_class);
  const wlmi_recorded note = {device_class.data, plan->stats, (char *)plan->problem_key, n};
  pthread_mutex_lock(&notes->lock);
  const wlm_status status =
      device_class.failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "class of a device") : add(notes, &note);
  pthread_mutex_unlock(&notes->lock);
  wlmi_text_release(&device_class);
  if (status != WLM_OK) wlmi_log(WLM_LOG_WARNING, "a problem is not recorded: %s", wlm_error_detail());
}

/* What was written stays noted, so that it is not noted again, but is not written again. */
wlm_status wlmi_context_write_notes(wlm_context *context) {
  wlmi_notes *notes = &context->notes;
  wlm_store *store = NULL;
  wlm_status status = WLM_OK;
  pthread_mutex_lock(&notes->lock);
  if (notes->count == notes->written) goto done;
  WLM_TRY(wlmi_store_open(context->database, WLM_STORE_WRITE, &store));
  WLM_TRY(wlmi_store_record(store, notes->list + notes->written, notes->count - notes->written));
  notes->written = notes->count;
done:
  pthread_mutex_unlock(&notes->lock);
  wlmi_store_close(store);
  return status;
}

void wlmi_context_release_notes(wlm_context *context) {
  wlmi_recorded_free(context->notes.list, context->notes.count);
  context->notes.list = NULL;
  context->notes.count = context->notes.capacity = context->notes.written = 0;
}
