/* What is expected of the candidates for a problem before they are measured; the tuner's order follows from it. */
#ifndef WLM_SELECT_FORECAST_H
#define WLM_SELECT_FORECAST_H

#include "select/select.h"

wlmi_variant_set wlmi_variants_of_list(const wlmi_candidate_list *list); /* which must outlive it */

typedef struct wlmi_forecast {
  char present[WLM_VARIANT_NAME]; /* what a plan would be given now, */
  char rule[WLM_VARIANT_NAME];    /* and what it would be if nothing had ever been tuned; "" = nothing */
  /* By the model that was trained on the nearest cases, of this class of devices or a borrowed one. */
  double distance; /* to the nearest case of its training; infinite = there is no model */
  double spread;   /* of log(time) around what it predicts */
  int borrowed;    /* it was trained on another class of devices */
  double *seconds; /* predicted for each candidate; 0 = not known */
} wlmi_forecast;

/* The request's variants are made from the list. */
wlm_status wlmi_forecast_make(const wlmi_snapshot *snapshot, const wlmi_request *request,
                              const wlmi_candidate_list *list, wlmi_forecast *forecast);
void wlmi_forecast_release(wlmi_forecast *forecast); /* also of a zeroed one */

#endif
