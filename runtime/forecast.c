#include "runtime/forecast.h"

#include <string.h>

#include "core/base/memory.h"
#include "runtime/context_state.h"

wlm_status wlmi_context_forecast_make(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec,
                                      wlmi_context_forecast *forecast) {
  const wlmi_limits *limits = &context->device->info.limits;
  char problem[WLMI_SPEC_KEY];
  wlm_status status;
  *forecast = (wlmi_context_forecast){.list = NULL};
  wlmi_spec_key(spec, problem);
  WLM_TRY(wlmi_generator_describe(context->generator, spec, limits, &forecast->list));
  wlmi_snapshot *snapshot = wlmi_context_snapshot(context);
  const wlmi_request request = {.stats = stats, .problem = problem, .spec = spec, .limits = limits};
  status = wlmi_forecast_make(snapshot, &request, forecast->list, &forecast->of);
  wlmi_snapshot_release(snapshot);
done:
  if (status != WLM_OK) wlmi_context_forecast_release(forecast);
  return status;
}

void wlmi_context_forecast_release(wlmi_context_forecast *forecast) {
  wlmi_candidates_drop(forecast->list);
  wlmi_forecast_release(&forecast->of);
  forecast->list = NULL;
}

wlm_status wlmi_context_tuned_points(wlm_context *context, const wlmi_spec *spec, wlmi_point **points, int64_t *count) {
  wlmi_snapshot *snapshot = wlmi_context_snapshot(context);
  char key[WLMI_SPEC_KEY], problems[WLMI_PROBLEM_CLASS], its[WLMI_PROBLEM_CLASS];
  *count = 0;
  wlmi_spec_key(spec, key);
  wlmi_problem_class(key, problems);
  const wlm_status status = wlmi_alloc_array(snapshot->case_count, sizeof **points, "tuned cases", (void **)points);
  for (int64_t i = 0; status == WLM_OK && i < snapshot->case_count; i++) {
    const wlmi_case *c = &snapshot->cases[i];
    if (c->borrowed || !c->count) continue;
    wlmi_problem_class(c->problem, its);
    if (!strcmp(its, problems)) (*points)[(*count)++] = c->point;
  }
  wlmi_snapshot_release(snapshot);
  return status;
}

void wlmi_context_tuned_widths(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec, wlmi_text *widths) {
  wlmi_snapshot *snapshot = wlmi_context_snapshot(context);
  char key[WLMI_SPEC_KEY];
  wlmi_spec_key(spec, key);
  for (int64_t i = 0; i < snapshot->case_count; i++) {
    const wlmi_case *c = &snapshot->cases[i];
    if (!c->borrowed && c->count && !strcmp(c->problem, key) &&
        !memcmp(c->stats->fingerprint, stats->fingerprint, sizeof stats->fingerprint))
      wlmi_text_printf(widths, "%s%lld", widths->size ? ", " : "", (long long)c->n);
  }
  wlmi_snapshot_release(snapshot);
}
