#include "runtime/dispatch/predict.h"

/* In calls; 0 = it needs none, negative = nobody knows. */
static double prepare_calls(const wlm_model *model, const wlm_candidate *candidate) {
  const int family = wlm_model_family(model, candidate->variant);
  if (!candidate->prepares) return 0;
  return family >= 0 && model->prepare[family] > 0 ? model->prepare[family] : -1;
}

/* Into its place among the best so far; the last falls out where they are full. */
static int insert(wlm_prediction *best, int count, int most, const wlm_prediction *fresh) {
  int at = count < most ? count : most - 1;
  if (count == most && !(fresh->price < best[at].price)) return count;
  for (; at > 0 && fresh->price < best[at - 1].price; at--) best[at] = best[at - 1];
  best[at] = *fresh;
  return count < most ? count + 1 : most;
}

int wlm_predict(wlm_model_case *asked, const wlm_candidate *candidates, int64_t count, int64_t calls,
                wlm_prediction *best, int most, int *untrained) {
  int found = 0;
  *untrained = 0;
  for (int64_t i = 0; i < count; i++) {
    if (candidates[i].prepares && calls <= 1) continue;
    wlm_prediction fresh = {.candidate = &candidates[i], .seconds = wlm_model_seconds(asked, &candidates[i])};
    const double prepare = prepare_calls(asked->model, &candidates[i]);
    if (!(fresh.seconds > 0) || prepare < 0) {
      ++*untrained;
      continue;
    }
    fresh.prepare = prepare * fresh.seconds;
    fresh.price = fresh.seconds + fresh.prepare / (double)calls;
    found = insert(best, found, most, &fresh);
  }
  return found;
}
