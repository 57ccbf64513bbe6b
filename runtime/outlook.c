/* The chooser is asked twice, with all that was learned and with nothing, so that its steps are spelled in one place.
 */
#include "runtime/outlook.h"

#include <math.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "runtime/context_state.h"

int64_t wlmi_outlook_find(const wlmi_outlook *o, const char *variant) {
  for (int64_t i = 0; i < o->count; i++)
    if (!strcmp(o->candidates[i].variant, variant)) return i;
  return -1;
}

static int usable(void *user, const char *variant, int may_prepare) {
  const wlmi_outlook *o = user;
  const int64_t i = wlmi_outlook_find(o, variant);
  return i >= 0 && (may_prepare || !o->candidates[i].prepares);
}

static int64_t describe(void *user, const wlmi_candidate **candidates) {
  const wlmi_outlook *o = user;
  *candidates = o->candidates;
  return o->count;
}

/* Nothing chosen is no error here. */
static void choose(const wlm_context *context, const wlmi_snapshot *snapshot, const wlm_stats *stats,
                   const wlmi_spec *spec, wlmi_outlook *outlook, char variant[WLM_VARIANT_NAME]) {
  const wlmi_judge judge = {.usable = usable, .describe = describe, .user = outlook};
  char key[WLM_SPEC_KEY];
  wlmi_decision decision;
  wlmi_spec_key(spec, key);
  if (wlmi_choose(snapshot, stats, key, spec, &context->device->info.limits, &judge, &decision) == WLM_OK)
    memcpy(variant, decision.variant, sizeof decision.variant);
  wlmi_clear_error();
}

static void predict(const wlmi_snapshot *snapshot, const wlm_stats *stats, const wlmi_spec *spec, wlmi_outlook *o) {
  char key[WLM_SPEC_KEY], problems[WLM_PROBLEM_CLASS];
  wlmi_model_case nearest = {.distance = INFINITY}, asked;
  wlmi_spec_key(spec, key);
  wlmi_problem_class(key, problems);
  for (int64_t i = 0; i < snapshot->model_count; i++) {
    if (strcmp(snapshot->models[i].problems, problems)) continue;
    wlmi_model_ask(&snapshot->models[i], stats, key, spec->problem.n, &asked);
    if (asked.distance < nearest.distance) nearest = asked;
  }
  o->distance = nearest.distance;
  if (!isfinite(o->distance)) return;
  o->spread = wlmi_model_spread(&nearest);
  o->borrowed = nearest.model->borrowed != NULL;
  for (int64_t i = 0; i < o->count; i++) o->seconds[i] = wlmi_model_seconds(&nearest, &o->candidates[i]);
}

wlm_status wlmi_context_outlook(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec,
                                wlmi_outlook *outlook) {
  const wlmi_snapshot nothing = {.case_count = 0};
  wlm_status status;
  *outlook = (wlmi_outlook){.distance = INFINITY};
  WLM_TRY(wlmi_generator_describe(context->generator, spec, &context->device->info.limits, &outlook->candidates,
                                  &outlook->count));
  outlook->seconds = wlmi_alloc_zero((size_t)outlook->count, sizeof *outlook->seconds);
  if (!outlook->seconds) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "predictions"));
  choose(context, &nothing, stats, spec, outlook, outlook->rule);
  pthread_rwlock_rdlock(&context->snapshot_lock);
  choose(context, &context->snapshot, stats, spec, outlook, outlook->present);
  predict(&context->snapshot, stats, spec, outlook);
  pthread_rwlock_unlock(&context->snapshot_lock);
done:
  if (status != WLM_OK) wlmi_outlook_release(outlook);
  return status;
}

void wlmi_outlook_release(wlmi_outlook *outlook) {
  wlmi_free(outlook->candidates);
  wlmi_free(outlook->seconds);
  *outlook = (wlmi_outlook){.distance = INFINITY};
}

wlm_status wlmi_context_known_places(wlm_context *context, const wlmi_spec *spec, wlmi_place **places, int64_t *count) {
  const wlmi_snapshot *snapshot = &context->snapshot;
  char key[WLM_SPEC_KEY], problems[WLM_PROBLEM_CLASS], its[WLM_PROBLEM_CLASS];
  *count = 0;
  wlmi_spec_key(spec, key);
  wlmi_problem_class(key, problems);
  pthread_rwlock_rdlock(&context->snapshot_lock);
  wlm_status status = wlmi_alloc_array(snapshot->case_count, sizeof **places, "tuned cases", (void **)places);
  for (int64_t i = 0; status == WLM_OK && i < snapshot->case_count; i++) {
    const wlmi_case *c = &snapshot->cases[i];
    if (!c->exact || c->borrowed || !c->count) continue;
    wlmi_problem_class(c->problem, its);
    if (!strcmp(its, problems)) (*places)[(*count)++] = c->place;
  }
  pthread_rwlock_unlock(&context->snapshot_lock);
  return status;
}
