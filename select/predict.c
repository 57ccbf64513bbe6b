#include "select/predict.h"

#include <math.h>

/* Cost of preparing in calls; 0 = it needs none, negative = not known. */
static double prepare_calls(const wlmi_model *model, const wlmi_candidate *candidate) {
  const int family = wlmi_model_family(model, &candidate->value);
  if (!candidate->prepares) return 0;
  return family >= 0 && model->prepare[family] > 0 ? model->prepare[family] : -1;
}

/* Inserts `fresh` into the sorted list of the best; drops the last if the list is full. */
static int insert(wlmi_prediction *best, int count, int most, const wlmi_prediction *fresh) {
  int at = count < most ? count : most - 1;
  if (count == most && !(fresh->price < best[at].price)) return count;
  for (; at > 0 && fresh->price < best[at - 1].price; at--) best[at] = best[at - 1];
  best[at] = *fresh;
  return count < most ? count + 1 : most;
}

int wlmi_predict_one(wlmi_model_case *c, const wlmi_candidate *candidate, int64_t calls, wlmi_prediction *out) {
  const double seconds = wlmi_model_seconds(c, candidate), prepare = prepare_calls(c->model, candidate);
  if (!(seconds > 0) || prepare < 0) return 0;
  *out = (wlmi_prediction){candidate, seconds, prepare * seconds, seconds + prepare * seconds / (double)calls};
  return 1;
}

int wlmi_predict(wlmi_model_case *c, const wlmi_candidate *candidates, int64_t count, int64_t calls,
                 wlmi_prediction *best, int most, int *untrained) {
  int found = 0;
  *untrained = 0;
  for (int64_t i = 0; i < count; i++) {
    if (candidates[i].prepares && calls <= 1) continue;
    wlmi_prediction fresh;
    if (!wlmi_predict_one(c, &candidates[i], calls, &fresh)) {
      ++*untrained;
      continue;
    }
    found = insert(best, found, most, &fresh);
  }
  return found;
}

double wlmi_break_even(double seconds, double prepare, double plain) {
  if (!(plain > 0) || !(prepare > 0)) return 0;
  if (seconds >= plain) return INFINITY;
  return fmax(2, floor(prepare / (plain - seconds)) + 1);
}

int wlmi_predict_soonest(wlmi_model_case *c, const wlmi_candidate *candidates, int64_t count, int64_t calls,
                         double plain, wlmi_prediction *soonest) {
  double fewest = INFINITY;
  for (int64_t i = 0; i < count; i++) {
    wlmi_prediction fresh;
    if (!candidates[i].prepares || !wlmi_predict_one(c, &candidates[i], calls, &fresh)) continue;
    const double needed = wlmi_break_even(fresh.seconds, fresh.prepare, plain);
    if (needed == 0 || needed >= fewest) continue;
    fewest = needed;
    *soonest = fresh;
  }
  return isfinite(fewest);
}
