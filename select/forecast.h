/* Predicts the candidates' times before they are measured; the tuner derives its order from that. */
#pragma once

#include <stdint.h>

#include "select/select.h"

wlmi_variant_set wlmi_variants_of_list(const wlmi_candidate_list *list); /* which must outlive it */

typedef struct wlmi_forecast {
  char present[WLM_VARIANT_NAME]; /* what a plan would run now, */
  char rule[WLM_VARIANT_NAME];    /* and what it would run if nothing had been tuned; "" = nothing */
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

/* The order in which the tuner measures candidates: the likely best ones first, in case the budget ends the tuning. */

/* What is expected of a candidate before it is measured. */
typedef struct wlmi_expectation {
  int present, rule; /* a plan would choose it now; a plan would choose it if nothing had been tuned */
  int prepares;
  int doubtful;   /* predicted to be slow: measured last, and not at all if time is short */
  double seconds; /* predicted by a model; 0 = not known */
} wlmi_expectation;

/* The predictions of a model that is near enough to be trusted. */
typedef struct wlmi_doubt {
  double plain, best; /* seconds of the best unprepared candidate, and of the best of all */
  double spread;      /* standard deviation of log(time) around them */
} wlmi_doubt;

/* Marks as doubtful the candidates that are predicted to take more than twice the time of the best of their kind
 * (prepared or unprepared) and lie two spreads above it. Marks at most the `most` slowest, and neither the present
 * choice nor the rule's. Returns how many. */
int64_t wlmi_candidates_doubt(wlmi_expectation *expected, int64_t count, const wlmi_doubt *doubt, int64_t most);

/* order[k] is the index of the candidate that is measured k-th. First come the present choice and the rule's, with
 * which the others compare; then the candidates with a prediction, the fastest first; then the others, shuffled by the
 * seed; then the doubtful ones. */
void wlmi_candidate_order(const wlmi_expectation *expected, int64_t count, uint64_t seed, int64_t *order);
