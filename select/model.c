#include "select/model.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"

double wlmi_trees_sum(const wlmi_tree *trees, int64_t count, const float features[WLMI_FEATURES]) {
  double sum = 0;
  for (int64_t t = 0; t < count; t++) {
    const wlmi_tree *tree = &trees[t];
    int node = 0;
    for (int depth = 0; depth < WLMI_TREE_DEPTH; depth++)
      node = 2 * node + 1 + (features[tree->feature[node]] > tree->threshold[node]);
    sum += (double)tree->leaf[node - WLMI_TREE_NODES];
  }
  return sum;
}

void wlmi_model_set_families(wlmi_model *model, const wlmi_families *families) {
  for (int i = 0; i < model->family_count; i++)
    model->family_ids[i] =
        (uint8_t)(families ? wlmi_family_find(families, model->families[i], strlen(model->families[i])) : 0);
}

int wlmi_model_family(const wlmi_model *model, const wlmi_variant *variant) {
  for (int i = 0; i < model->family_count; i++)
    if (model->family_ids[i] && model->family_ids[i] == variant->family) return i;
  return -1;
}

void wlmi_model_case_make(const wlmi_model *model, const wlmi_limits *device, const wlm_stats *stats,
                          const char *problem_key, int64_t n, wlmi_model_case *c) {
  const wlmi_point here = wlmi_point_of(stats, n);
  const wlmi_limits *limits = model->borrowed ? device : &model->limits;
  *c = (wlmi_model_case){model, limits, stats, n, wlmi_simple_seconds(limits, stats, n), INFINITY, {0}};
  for (int64_t i = 0; i < model->point_count; i++)
    c->distance = fmin(c->distance, wlmi_point_distance(&here, &model->points[i]));
  wlmi_features_of_case(limits, stats, n, wlmi_problem_has_values(problem_key), c->features);
}

double wlmi_model_seconds(wlmi_model_case *c, const wlmi_candidate *candidate) {
  const wlmi_model *model = c->model;
  const int family = wlmi_model_family(model, &candidate->value);
  if (family < 0) return 0;
  wlmi_features_of_candidate(c->limits, c->stats, c->n, candidate, family, c->features);
  return c->seconds * exp(model->base + wlmi_trees_sum(model->trees, model->tree_count, c->features));
}

double wlmi_model_spread(const wlmi_model_case *c) { return c->model->spread * (1 + c->distance / WLMI_FAR); }

void wlmi_model_release(wlmi_model *model) {
  wlmi_free(model->trees);
  wlmi_free(model->points);
  *model = (wlmi_model){0};
}

/* ---- predictions ---- */

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
