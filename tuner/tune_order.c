/* What is expected of the candidates: the dispatcher's choice, the rules' and the model's predictions. */
#include <math.h>
#include <string.h>

#include "common/memory.h"
#include "runtime/outlook.h"
#include "tuner/candidate_order.h"
#include "tuner/tuning.h"

/* For whether a candidate is worth its time a model must be of this class of devices and near. */
static int is_trusted(const wlmi_outlook *outlook) {
  return outlook->distance <= WLM_FAR && !outlook->borrowed && outlook->spread > 0;
}

static wlmi_doubt doubt_of(const wlmi_outlook *outlook) {
  wlmi_doubt doubt = {INFINITY, INFINITY, outlook->spread};
  for (int64_t i = 0; i < outlook->count; i++) {
    if (!(outlook->seconds[i] > 0)) continue;
    doubt.best = fmin(doubt.best, outlook->seconds[i]);
    if (!outlook->candidates[i].prepares) doubt.plain = fmin(doubt.plain, outlook->seconds[i]);
  }
  return doubt;
}

/* For the order alone a model that is far is better than nothing. */
static void expect(const wlmi_outlook *outlook, const char *variant, wlmi_expectation *expected) {
  const int64_t i = wlmi_outlook_find(outlook, variant);
  *expected =
      (wlmi_expectation){.present = !strcmp(variant, outlook->present), .rule = !strcmp(variant, outlook->rule)};
  if (i < 0) return;
  expected->prepares = outlook->candidates[i].prepares;
  expected->seconds = outlook->distance <= WLM_MODEL_FAR ? outlook->seconds[i] : 0;
}

/* The likely best first. Half of the candidates are measured, whatever a model says. */
wlm_status wlmi_tuning_order(wlmi_tuning *t) {
  wlm_status status;
  wlmi_outlook outlook = {.count = 0};
  wlmi_expectation *expected = NULL;
  wlmi_tuner_candidate *sorted = NULL;
  int64_t *order = NULL;
  WLM_TRY(wlmi_context_outlook(t->context, t->stats, &t->operands.spec, &outlook));
  WLM_TRY(wlmi_alloc_array(t->fresh, sizeof *expected, "candidates", (void **)&expected));
  WLM_TRY(wlmi_alloc_array(t->fresh, sizeof *sorted, "candidates", (void **)&sorted));
  WLM_TRY(wlmi_alloc_array(t->fresh, sizeof *order, "candidates", (void **)&order));
  for (int64_t i = 0; i < t->fresh; i++) expect(&outlook, t->candidates[i].variant, &expected[i]);
  const wlmi_doubt doubt = doubt_of(&outlook);
  if (is_trusted(&outlook)) t->doubtful = wlmi_candidates_doubt(expected, t->fresh, &doubt, t->count / 2);
  wlmi_candidate_order(expected, t->fresh, t->options->seed, order);
  for (int64_t i = 0; i < t->fresh; i++) sorted[i] = t->candidates[order[i]];
  memcpy(t->candidates, sorted, (size_t)t->fresh * sizeof *sorted);
done:
  wlmi_outlook_release(&outlook);
  wlmi_free(expected);
  wlmi_free(sorted);
  wlmi_free(order);
  return status;
}
