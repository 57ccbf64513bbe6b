/* Runs the selection twice, with the snapshot and with an empty one, instead of repeating its steps here. */
#include "select/forecast.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/sampling.h"

wlmi_variant_set wlmi_variants_of_list(const wlmi_candidate_list *list) {
  return (wlmi_variant_set){.families = list->families, .list = list};
}

/* Choosing nothing is no error here. */
static wlm_status select_variant(const wlmi_snapshot *snapshot, const wlmi_request *request,
                                 char variant[WLM_VARIANT_NAME]) {
  wlmi_decision decision;
  const wlm_status status = wlmi_select(snapshot, request, &decision);
  if (status == WLM_ERR_OUT_OF_MEMORY) return status;
  if (status == WLM_OK) memcpy(variant, decision.variant, sizeof decision.variant);
  wlmi_clear_error();
  return WLM_OK;
}

static void predict(const wlmi_snapshot *snapshot, const wlmi_request *request, const wlmi_candidate_list *list,
                    wlmi_forecast *f) {
  char class[WLM_PROBLEM_CLASS];
  wlmi_model_case nearest = {.distance = INFINITY}, c;
  wlmi_model_class(request->problem, request->spec->problem.n, request->spec->has_edge_lines, class);
  for (int64_t i = 0; i < snapshot->model_count; i++) {
    if (strcmp(snapshot->models[i].problems, class)) continue;
    wlmi_model_case_make(&snapshot->models[i], request->stats, request->problem, request->spec->problem.n, &c);
    if (c.distance < nearest.distance) nearest = c;
  }
  f->distance = nearest.distance;
  if (!isfinite(f->distance)) return;
  f->spread = wlmi_model_spread(&nearest);
  f->borrowed = nearest.model->borrowed != NULL;
  for (int64_t i = 0; i < list->count; i++) f->seconds[i] = wlmi_model_seconds(&nearest, &list->candidates[i]);
}

wlm_status wlmi_forecast_make(const wlmi_snapshot *snapshot, const wlmi_request *request,
                              const wlmi_candidate_list *list, wlmi_forecast *forecast) {
  const wlmi_snapshot nothing = {.case_count = 0};
  const wlmi_variant_set variants = wlmi_variants_of_list(list);
  wlmi_request of_list = *request;
  of_list.variants = &variants;
  *forecast = (wlmi_forecast){.distance = INFINITY};
  forecast->seconds = wlmi_alloc_zero((size_t)list->count, sizeof *forecast->seconds);
  if (!forecast->seconds) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "predictions");
  wlm_status status = select_variant(&nothing, &of_list, forecast->rule);
  if (status == WLM_OK) status = select_variant(snapshot, &of_list, forecast->present);
  if (status == WLM_OK) predict(snapshot, &of_list, list, forecast);
  return status;
}

void wlmi_forecast_release(wlmi_forecast *forecast) {
  wlmi_free(forecast->seconds);
  *forecast = (wlmi_forecast){.distance = INFINITY};
}

/* ---- the order of the tuner ---- */

/* Every candidate gets a sort key: its rank, its prediction, and its position in a shuffle. So without predictions a
 * budget leaves out random candidates, the same ones for the same seed. */

enum { PRESENT, RULE, PREDICTED, UNKNOWN, DOUBTFUL };
static const double slow = 2, spreads = 2;

static int rank_of(const wlmi_expectation *e) {
  if (e->doubtful) return DOUBTFUL;
  return e->present ? PRESENT : e->rule ? RULE : e->seconds > 0 ? PREDICTED : UNKNOWN;
}

static int is_before(const wlmi_expectation *a, const wlmi_expectation *b) {
  const int left = rank_of(a), right = rank_of(b);
  return left != right ? left < right : (left == PREDICTED || left == DOUBTFUL) && a->seconds < b->seconds;
}

/* The predicted time divided by the limit; above 1 the candidate is doubtful. */
static double excess(const wlmi_expectation *e, const wlmi_doubt *doubt) {
  if (e->present || e->rule || e->doubtful) return 0;
  return e->seconds / (slow * exp(spreads * doubt->spread) * (e->prepares ? doubt->best : doubt->plain));
}

int64_t wlmi_candidates_doubt(wlmi_expectation *expected, int64_t count, const wlmi_doubt *doubt, int64_t most) {
  for (int64_t marked = 0; marked < most; marked++) {
    int64_t slowest = -1;
    double worst = 1;
    for (int64_t i = 0; i < count; i++) {
      const double its = excess(&expected[i], doubt);
      if (!(its > worst)) continue;
      slowest = i;
      worst = its;
    }
    if (slowest < 0) return marked;
    expected[slowest].doubtful = 1;
  }
  return most;
}

static void shuffle(int64_t count, uint64_t seed, int64_t *order) {
  for (int64_t i = 0; i < count; i++) order[i] = i;
  for (int64_t i = count - 1; i > 0; i--) {
    const int64_t j = (int64_t)(wlmi_sample_hash(seed + 1, i) % (uint64_t)(i + 1)), moved = order[i];
    order[i] = order[j];
    order[j] = moved;
  }
}

/* Insertion sort: there are a few hundred candidates, and equal ones must keep their shuffled order. */
void wlmi_candidate_order(const wlmi_expectation *expected, int64_t count, uint64_t seed, int64_t *order) {
  shuffle(count, seed, order);
  for (int64_t i = 1; i < count; i++) {
    const int64_t candidate = order[i];
    int64_t at = i;
    for (; at > 0 && is_before(&expected[candidate], &expected[order[at - 1]]); at--) order[at] = order[at - 1];
    order[at] = candidate;
  }
}
