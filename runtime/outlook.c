/* The chooser is asked twice, with all that was learned and with nothing, so that its steps are spelled in one place.
 */
#include "runtime/outlook.h"

#include <math.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "runtime/context_state.h"

int64_t wlm_outlook_find(const wlm_outlook *o, const char *variant) {
  for (int64_t i = 0; i < o->count; i++)
    if (!strcmp(o->candidates[i].variant, variant)) return i;
  return -1;
}

static int usable(void *user, const char *variant, int may_prepare) {
  const wlm_outlook *o = user;
  const int64_t i = wlm_outlook_find(o, variant);
  return i >= 0 && (may_prepare || !o->candidates[i].prepares);
}

static int64_t describe(void *user, const wlm_candidate **candidates) {
  const wlm_outlook *o = user;
  *candidates = o->candidates;
  return o->count;
}

/* Nothing chosen is no error here. */
static void choose(const wlm_context *context, const wlm_snapshot *snapshot, const wlm_stats *stats,
                   const wlm_spec *spec, wlm_outlook *outlook, char variant[WLM_VARIANT_NAME]) {
  const wlm_judge judge = {.usable = usable, .describe = describe, .user = outlook};
  char key[WLM_SPEC_KEY];
  wlm_decision decision;
  wlm_spec_key(spec, key);
  if (wlm_choose(snapshot, stats, key, spec, &context->device->info.limits, &judge, &decision) == WLM_OK)
    memcpy(variant, decision.variant, sizeof decision.variant);
  wlm_clear_error();
}

static void predict(const wlm_snapshot *snapshot, const wlm_stats *stats, const wlm_spec *spec, wlm_outlook *o) {
  char key[WLM_SPEC_KEY], problems[WLM_PROBLEM_CLASS];
  wlm_model_case nearest = {.distance = INFINITY}, asked;
  wlm_spec_key(spec, key);
  wlm_problem_class(key, problems);
  for (int64_t i = 0; i < snapshot->model_count; i++) {
    if (strcmp(snapshot->models[i].problems, problems)) continue;
    wlm_model_ask(&snapshot->models[i], stats, key, spec->problem.n, &asked);
    if (asked.distance < nearest.distance) nearest = asked;
  }
  o->distance = nearest.distance;
  if (!isfinite(o->distance)) return;
  o->spread = wlm_model_spread(&nearest);
  o->borrowed = nearest.model->borrowed != NULL;
  for (int64_t i = 0; i < o->count; i++) o->seconds[i] = wlm_model_seconds(&nearest, &o->candidates[i]);
}

wlm_status wlm_context_outlook(wlm_context *context, const wlm_stats *stats, const wlm_spec *spec,
                               wlm_outlook *outlook) {
  const wlm_snapshot nothing = {.case_count = 0};
  wlm_status status;
  *outlook = (wlm_outlook){.distance = INFINITY};
  WLM_TRY(wlm_generator_describe(context->generator, spec, &context->device->info.limits, &outlook->candidates,
                                 &outlook->count));
  outlook->seconds = wlm_alloc_zero((size_t)outlook->count, sizeof *outlook->seconds);
  if (!outlook->seconds) WLM_TRY(wlm_fail(WLM_ERR_OUT_OF_MEMORY, "predictions"));
  choose(context, &nothing, stats, spec, outlook, outlook->rule);
  pthread_rwlock_rdlock(&context->snapshot_lock);
  choose(context, &context->snapshot, stats, spec, outlook, outlook->present);
  predict(&context->snapshot, stats, spec, outlook);
  pthread_rwlock_unlock(&context->snapshot_lock);
done:
  if (status != WLM_OK) wlm_outlook_release(outlook);
  return status;
}

void wlm_outlook_release(wlm_outlook *outlook) {
  wlm_free(outlook->candidates);
  wlm_free(outlook->seconds);
  *outlook = (wlm_outlook){.distance = INFINITY};
}

wlm_status wlm_context_known_places(wlm_context *context, const wlm_spec *spec, wlm_place **places, int64_t *count) {
  const wlm_snapshot *snapshot = &context->snapshot;
  char key[WLM_SPEC_KEY], problems[WLM_PROBLEM_CLASS], its[WLM_PROBLEM_CLASS];
  *count = 0;
  wlm_spec_key(spec, key);
  wlm_problem_class(key, problems);
  pthread_rwlock_rdlock(&context->snapshot_lock);
  wlm_status status = wlm_alloc_array(snapshot->case_count, sizeof **places, "tuned cases", (void **)places);
  for (int64_t i = 0; status == WLM_OK && i < snapshot->case_count; i++) {
    const wlm_case *c = &snapshot->cases[i];
    if (!c->exact || c->borrowed || !c->count) continue;
    wlm_problem_class(c->problem, its);
    if (!strcmp(its, problems)) (*places)[(*count)++] = c->place;
  }
  pthread_rwlock_unlock(&context->snapshot_lock);
  return status;
}
