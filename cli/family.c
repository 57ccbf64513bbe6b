#include "cli/family.h"

#include <stdio.h>
#include <string.h>

#include "runtime/forecast.h"

static int is_of(const char *variant, const char *family) {
  const size_t size = strlen(family);
  return !strncmp(variant, family, size) && variant[size] == '/';
}

static int has_parameters(const wlmi_families *families, const char *name) {
  const int id = wlmi_family_find(families, name, strlen(name));
  return id && families->list[id - 1].parameter_count;
}

/* Picks the fastest. `seconds` has each candidate's time, 0 = not known; NULL = none is known. */
static wlm_status pick(const wlmi_candidate_list *list, const double *seconds, const char *family,
                       char variant[WLMI_VARIANT_NAME]) {
  int64_t found = -1;
  for (int64_t i = 0; i < list->count; i++) {
    const wlmi_candidate *c = &list->candidates[i];
    const double time = seconds ? seconds[i] : 0, least = seconds && found >= 0 ? seconds[found] : 0;
    if (!is_of(c->variant, family)) continue;
    if (found < 0 || (list->candidates[found].prepares && !c->prepares) ||
        (list->candidates[found].prepares == c->prepares && time > 0 && (least == 0 || time < least)))
      found = i;
  }
  if (found < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: no variant of this family computes this product on this device",
                     family);
  snprintf(variant, WLMI_VARIANT_NAME, "%s", list->candidates[found].variant);
  return WLM_OK;
}

/* Takes the variant of the family that the selection ranks best by measurements; "" = none was measured. */
static wlm_status find_measured(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec, const char *family,
                                char variant[WLMI_VARIANT_NAME]) {
  wlmi_decision decision = {.ranked_count = 0};
  const wlm_status status = wlmi_context_select(context, NULL, stats, WLMI_USE_MEASURED, spec, &decision);
  *variant = 0;
  for (int i = 0; i < decision.ranked_count && !*variant; i++)
    if (decision.ranked[i].seconds > 0 && is_of(decision.ranked[i].variant, family))
      snprintf(variant, WLMI_VARIANT_NAME, "%s", decision.ranked[i].variant);
  return status == WLM_ERR_NOT_FOUND ? WLM_OK : status;
}

wlm_status wlmi_family_best(wlm_context *context, const wlm_matrix *matrix, const wlmi_spec *spec, const char *name,
                            char variant[WLMI_VARIANT_NAME]) {
  wlmi_generator *generator = wlmi_context_generator(context);
  wlmi_context_forecast forecast = {.list = NULL};
  wlmi_matrix_view view;
  if (!matrix || !has_parameters(wlmi_generator_families(generator), name))
    return wlmi_family_first(generator, spec, &wlmi_context_device(context)->info.limits, name, variant);
  WLM_CHECK(wlmi_matrix_fingerprint(matrix));
  WLM_CHECK(wlmi_matrix_see(matrix, &spec->problem, &view));
  WLM_CHECK(find_measured(context, view.stats, spec, name, variant));
  if (*variant) return WLM_OK;
  wlm_status status = wlmi_context_forecast_make(context, view.stats, spec, &forecast);
  if (status == WLM_OK) status = pick(forecast.list, forecast.of.seconds, name, variant);
  wlmi_context_forecast_release(&forecast);
  return status;
}

wlm_status wlmi_family_first(wlmi_generator *generator, const wlmi_spec *spec, const wlmi_limits *limits,
                             const char *name, char variant[WLMI_VARIANT_NAME]) {
  const wlmi_candidate_list *list = NULL;
  if (!has_parameters(wlmi_generator_families(generator), name)) {
    snprintf(variant, WLMI_VARIANT_NAME, "%s", name);
    return WLM_OK;
  }
  wlm_status status = wlmi_generator_describe(generator, spec, limits, &list);
  if (status == WLM_OK) status = pick(list, NULL, name, variant);
  wlmi_candidates_drop(list);
  return status;
}
