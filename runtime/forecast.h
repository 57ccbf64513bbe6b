/* What a context expects of the candidates for a problem before they are measured. */
#ifndef WLM_RUNTIME_FORECAST_H
#define WLM_RUNTIME_FORECAST_H

#include "runtime/context.h"
#include "select/forecast.h"

typedef struct wlmi_context_forecast {
  const wlmi_candidate_list *list; /* all that are valid */
  wlmi_forecast of;                /* each of them */
} wlmi_context_forecast;

/* `stats` are those of op(A). Compiles and loads nothing. */
wlm_status wlmi_context_forecast_make(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec,
                                      wlmi_context_forecast *forecast);
void wlmi_context_forecast_release(wlmi_context_forecast *forecast); /* also of a zeroed one */

/* Where the cases lie that were tuned on this class of devices for problems of the spec's class. wlmi_free the list. */
wlm_status wlmi_context_known_places(wlm_context *context, const wlmi_spec *spec, wlmi_place **places, int64_t *count);

#endif
