/* A context's predictions for the candidates of a problem before they are measured. */
#pragma once

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

/* The coordinates of the cases that were tuned on this device class for the spec's problem class. Release the list with
 * wlmi_free. */
wlm_status wlmi_context_tuned_points(wlm_context *context, const wlmi_spec *spec, wlmi_point **points, int64_t *count);
/* Appends the widths for which the matrix of these stats, which have a fingerprint, was tuned for the spec's problem on
 * this device class: "16, 64". */
void wlmi_context_tuned_widths(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec, wlmi_text *widths);
