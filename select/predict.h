/* Ranks candidates by the times that the model predicts. */
#pragma once

#include "select/model.h"

typedef struct wlmi_prediction {
  const wlmi_candidate *candidate;
  double seconds, prepare; /* of one call; of preparing once */
  double price;            /* seconds + prepare / calls */
} wlmi_prediction;

/* Finds the `most` candidates with the least price, the best first; equal ones keep the order of the list. Leaves out
 * candidates without a prediction, which *untrained counts, and for a single call those that must be prepared. Returns
 * how many. */
int wlmi_predict(wlmi_model_case *c, const wlmi_candidate *candidates, int64_t count, int64_t calls,
                 wlmi_prediction *best, int most, int *untrained);

/* 0 if the model cannot predict the candidate. */
int wlmi_predict_one(wlmi_model_case *c, const wlmi_candidate *candidate, int64_t calls, wlmi_prediction *out);

/* The fewest calls from which a prepared candidate beats the unprepared one that takes `plain` seconds. 0 if it needs
 * no preparing or there is no other, infinite if it never wins, and never 1, because nothing is prepared for one call.
 */
double wlmi_break_even(double seconds, double prepare, double plain);
/* Finds the prepared candidate that pays from the fewest calls on; 0 if there is none. Its price is for that many
 * calls. */
int wlmi_predict_soonest(wlmi_model_case *c, const wlmi_candidate *candidates, int64_t count, int64_t calls,
                         double plain, wlmi_prediction *soonest);
