/* Predicts the candidates' times before they are measured; the tuner derives its order from that. */
#pragma once

#include <stdint.h>

#include "select/select.h"

wlmi_variant_set wlmi_variants_of_list(const wlmi_candidate_list *list); /* which must outlive it */

typedef struct wlmi_forecast {
  char present[WLMI_VARIANT_NAME]; /* what a plan would run now, */
  char rule[WLMI_VARIANT_NAME];    /* and what it would run if nothing had been tuned; "" = nothing */
  /* Of the model that was trained on the most similar cases, of this device class or a similar one. */
  double distance; /* to the nearest case of its training; infinite = there is no model */
  double spread;   /* standard deviation of log(time) around the prediction */
  int borrowed;    /* it was trained on another device class */
  double *seconds; /* predicted for each candidate; 0 = not known */
} wlmi_forecast;

/* The request's variants must come from the list (wlmi_variants_of_list). */
wlm_status wlmi_forecast_make(const wlmi_snapshot *snapshot, const wlmi_request *request,
                              const wlmi_candidate_list *list, wlmi_forecast *forecast);
void wlmi_forecast_release(wlmi_forecast *forecast); /* also of a zeroed one */
