/* Orders the candidates by the present decision, the rules' choice and the model's predictions. */
#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "runtime/forecast.h"
#include "select/forecast.h"
#include "tuner/tune_state.h"

/* Only a near model of this device class may mark candidates as doubtful. */
static int is_trusted(const wlmi_forecast *f) { return f->distance <= WLM_FAR && !f->borrowed && f->spread > 0; }

static wlmi_doubt doubt_of(const wlmi_context_forecast *forecast) {
  wlmi_doubt doubt = {INFINITY, INFINITY, forecast->of.spread};
  for (int64_t i = 0; i < forecast->list->count; i++) {
    const double seconds = forecast->of.seconds[i];
    if (!(seconds > 0)) continue;
    doubt.best = fmin(doubt.best, seconds);
    if (!forecast->list->candidates[i].prepares) doubt.plain = fmin(doubt.plain, seconds);
  }
  return doubt;
}

/* For the order a distant model is better than none. */
static void expect(const wlmi_context_forecast *forecast, const char *variant, wlmi_expectation *expected) {
  const wlmi_forecast *f = &forecast->of;
  const wlmi_candidate *candidate = wlmi_candidate_named(forecast->list, variant);
  *expected = (wlmi_expectation){.present = !strcmp(variant, f->present), .rule = !strcmp(variant, f->rule)};
  if (!candidate) return;
  expected->prepares = candidate->prepares;
  expected->seconds = f->distance <= WLM_MODEL_FAR ? f->seconds[candidate - forecast->list->candidates] : 0;
}

/* Puts the likely best first. At least half of the candidates are measured, whatever a model predicts. */
wlm_status wlmi_tuning_order(wlmi_tuning *t) {
  wlm_status status;
  wlmi_context_forecast forecast = {.list = NULL};
  wlmi_expectation *expected = NULL;
  wlmi_timed *sorted = NULL;
  int64_t *order = NULL;
  WLM_TRY(wlmi_context_forecast_make(t->context, t->stats, &t->operands.spec, &forecast));
  WLM_TRY(wlmi_alloc_array(t->fresh, sizeof *expected, "candidates", (void **)&expected));
  WLM_TRY(wlmi_alloc_array(t->fresh, sizeof *sorted, "candidates", (void **)&sorted));
  WLM_TRY(wlmi_alloc_array(t->fresh, sizeof *order, "candidates", (void **)&order));
  for (int64_t i = 0; i < t->fresh; i++) expect(&forecast, t->candidates[i].variant, &expected[i]);
  const wlmi_doubt doubt = doubt_of(&forecast);
  if (is_trusted(&forecast.of)) t->doubtful = wlmi_candidates_doubt(expected, t->fresh, &doubt, t->count / 2);
  wlmi_candidate_order(expected, t->fresh, t->options->seed, order);
  for (int64_t i = 0; i < t->fresh; i++) {
    sorted[i] = t->candidates[order[i]];
    sorted[i].expected = is_trusted(&forecast.of) ? expected[order[i]].seconds : 0;
  }
  memcpy(t->candidates, sorted, (size_t)t->fresh * sizeof *sorted);
done:
  wlmi_context_forecast_release(&forecast);
  wlmi_free(expected);
  wlmi_free(sorted);
  wlmi_free(order);
  return status;
}
