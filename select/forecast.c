/* Runs the selection twice, with the snapshot and with an empty one, instead of repeating its steps here. */
#include "select/forecast.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"

wlmi_variant_set wlmi_variants_of_list(const wlmi_candidate_list *list) {
  return (wlmi_variant_set){.families = list->families, .list = list};
}

/* Choosing nothing is no error here. */
static wlm_status select_variant(const wlmi_snapshot *snapshot, const wlmi_request *request,
                                 char variant[WLMI_VARIANT_NAME]) {
  wlmi_decision decision;
  const wlm_status status = wlmi_select(snapshot, request, &decision);
  if (status == WLM_ERR_OUT_OF_MEMORY) return status;
  if (status == WLM_OK) memcpy(variant, decision.variant, sizeof decision.variant);
  wlmi_clear_error();
  return WLM_OK;
}

static void predict(const wlmi_snapshot *snapshot, const wlmi_request *request, const wlmi_candidate_list *list,
                    wlmi_forecast *f) {
  char class[WLMI_PROBLEM_CLASS];
  wlmi_model_case nearest = {.distance = INFINITY}, c;
  wlmi_model_class(request->problem, request->spec->problem.n, request->spec->has_edge_lines, class);
  for (int64_t i = 0; i < snapshot->model_count; i++) {
    if (strcmp(snapshot->models[i].problems, class)) continue;
    wlmi_model_case_make(&snapshot->models[i], request->limits, request->stats, request->problem,
                         request->spec->problem.n, &c);
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
