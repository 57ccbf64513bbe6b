/* The candidates that the model expects most of. */
#ifndef WLM_SELECT_PREDICT_H
#define WLM_SELECT_PREDICT_H

#include "select/model.h"

typedef struct wlmi_prediction {
  const wlmi_candidate *candidate;
  double seconds, prepare; /* of one call; of preparing once */
  double price;            /* seconds + prepare / calls */
} wlmi_prediction;

/* The `most` with the least price, the best first; equal ones keep the order of the list. What must be prepared is
 * left out for a single call, and so is what the model knows nothing of, which *untrained counts. Returns how many. */
int wlmi_predict(wlmi_model_case *c, const wlmi_candidate *candidates, int64_t count, int64_t calls,
                 wlmi_prediction *best, int most, int *untrained);

/* 0 where the model knows nothing of the candidate. */
int wlmi_predict_one(wlmi_model_case *c, const wlmi_candidate *candidate, int64_t calls, wlmi_prediction *out);

/* The fewest calls from which a candidate that must be prepared beats one that need not be: 0 where it needs no
 * preparing or there is no other, infinite where it never does, and never 1, for which nothing is prepared. */
double wlmi_break_even(double seconds, double prepare, double plain);
/* The one whose preparing pays after the fewest calls; 0 where there is none. Its price is that of so many calls. */
int wlmi_predict_soonest(wlmi_model_case *c, const wlmi_candidate *candidates, int64_t count, int64_t calls,
                         double plain, wlmi_prediction *soonest);

#endif
