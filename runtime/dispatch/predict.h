/* The candidates that the model expects most of. */
#ifndef WLM_RUNTIME_DISPATCH_PREDICT_H
#define WLM_RUNTIME_DISPATCH_PREDICT_H

#include "runtime/dispatch/model.h"

typedef struct wlm_prediction {
  const wlm_candidate *candidate;
  double seconds, prepare; /* of one call; of preparing once */
  double price;            /* seconds + prepare / calls */
} wlm_prediction;

/* The `most` with the least price, the best first; equal ones keep the order of the list. What must be prepared is
 * left out for a single call, and so is what the model knows nothing of, which *untrained counts. Returns how many. */
int wlm_predict(wlm_model_case *asked, const wlm_candidate *candidates, int64_t count, int64_t calls,
                wlm_prediction *best, int most, int *untrained);

#endif
