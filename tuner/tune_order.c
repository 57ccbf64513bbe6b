/* Orders the candidates by the present decision, the rules' choice and the model's predictions. Without predictions a
 * budget leaves out random candidates, the same ones for the same seed. */
#include <math.h>
#include <string.h>

#include "core/problem/sampling.h"
#include "runtime/forecast.h"
#include "tuner/tune_state.h"

static const double slow = 2, spreads = 2;

static int is_before(const wlmi_timed *a, const wlmi_timed *b) {
  if (a->rank != b->rank) return a->rank < b->rank;
  return (a->rank == WLMI_RANK_PREDICTED || a->rank == WLMI_RANK_DOUBTFUL) && a->expected < b->expected;
}

int64_t wlmi_timed_doubt(wlmi_timed *list, int64_t count, const wlmi_doubt *doubt, int64_t most) {
  for (int64_t marked = 0; marked < most; marked++) {
    wlmi_timed *slowest = NULL;
    double worst = 1; /* the predicted time divided by the limit */
    for (int64_t i = 0; i < count; i++) {
      const double excess = list[i].expected / (slow * exp(spreads * doubt->spread) * doubt->best[list[i].kind]);
      if (list[i].rank != WLMI_RANK_PREDICTED || !(excess > worst)) continue;
      slowest = &list[i];
      worst = excess;
    }
    if (!slowest) return marked;
    slowest->rank = WLMI_RANK_DOUBTFUL;
  }
  return most;
}

/* Insertion sort of a shuffled list: there are a few hundred candidates, and equal ones must keep their places. */
void wlmi_timed_order(wlmi_timed *list, int64_t count, uint64_t seed) {
  for (int64_t i = count - 1; i > 0; i--) {
    const int64_t j = (int64_t)(wlmi_sample_hash(seed + 1, i) % (uint64_t)(i + 1));
    const wlmi_timed moved = list[i];
    list[i] = list[j];
    list[j] = moved;
  }
  for (int64_t i = 1; i < count; i++) {
    const wlmi_timed candidate = list[i];
    int64_t at = i;
    for (; at > 0 && is_before(&candidate, &list[at - 1]); at--) list[at] = list[at - 1];
    list[at] = candidate;
  }
}

/* Only a near model of this device class may mark candidates as doubtful. */
static int is_trusted(const wlmi_forecast *f) { return f->distance <= WLMI_FAR && !f->borrowed && f->spread > 0; }

static wlmi_doubt doubt_of(const wlmi_context_forecast *forecast) {
  wlmi_doubt doubt = {{INFINITY, INFINITY}, forecast->of.spread};
  for (int64_t i = 0; i < forecast->list->count; i++) {
    const double seconds = forecast->of.seconds[i];
    if (!(seconds > 0)) continue;
    doubt.best[WLMI_PREPARED] = fmin(doubt.best[WLMI_PREPARED], seconds);
    if (!forecast->list->candidates[i].prepares) doubt.best[WLMI_PLAIN] = fmin(doubt.best[WLMI_PLAIN], seconds);
  }
  return doubt;
}

/* For the order a distant model is better than none. */
static void expect(const wlmi_context_forecast *forecast, wlmi_timed *c) {
  const wlmi_forecast *f = &forecast->of;
  const wlmi_candidate *candidate = wlmi_candidate_named(forecast->list, c->variant);
  if (candidate && f->distance <= WLMI_MODEL_FAR) c->expected = f->seconds[candidate - forecast->list->candidates];
  if (candidate) c->kind = candidate->prepares ? WLMI_PREPARED : WLMI_PLAIN;
  c->rank = !strcmp(c->variant, f->present) ? WLMI_RANK_PRESENT
            : !strcmp(c->variant, f->rule)  ? WLMI_RANK_RULE
            : c->expected > 0               ? WLMI_RANK_PREDICTED
                                            : WLMI_RANK_UNKNOWN;
}

/* Puts the likely best first. At least half of the candidates are measured, whatever a model predicts. */
wlm_status wlmi_tuning_order(wlmi_tuning *t) {
  wlmi_context_forecast forecast;
  WLM_CHECK(wlmi_context_forecast_make(t->context, t->stats, &t->operands.spec, &forecast));
  const int trusted = is_trusted(&forecast.of);
  const wlmi_doubt doubt = doubt_of(&forecast);
  for (int64_t i = 0; i < t->fresh; i++) expect(&forecast, &t->candidates[i]);
  if (trusted) t->doubtful = wlmi_timed_doubt(t->candidates, t->fresh, &doubt, t->count / 2);
  wlmi_timed_order(t->candidates, t->fresh, t->options->seed);
  for (int64_t i = 0; i < t->fresh && !trusted; i++) t->candidates[i].expected = 0;
  wlmi_context_forecast_release(&forecast);
  return WLM_OK;
}
