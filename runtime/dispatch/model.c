#include "runtime/dispatch/model.h"

#include <math.h>
#include <string.h>

#include "common/memory.h"

double wlm_trees_sum(const wlm_tree *trees, int64_t count, const float features[WLM_FEATURES]) {
  double sum = 0;
  for (int64_t t = 0; t < count; t++) {
    const wlm_tree *tree = &trees[t];
    int node = 0;
    for (int depth = 0; depth < WLM_TREE_DEPTH; depth++)
      node = 2 * node + 1 + (features[tree->feature[node]] > tree->threshold[node]);
    sum += (double)tree->leaf[node - WLM_TREE_NODES];
  }
  return sum;
}

int wlm_model_family(const wlm_model *model, const char *variant) {
  const size_t length = wlm_family_length(variant);
  for (int i = 0; i < model->family_count; i++)
    if (strlen(model->families[i]) == length && !memcmp(model->families[i], variant, length)) return i;
  return -1;
}

void wlm_model_ask(const wlm_model *model, const wlm_stats *stats, const char *problem_key, int64_t n,
                   wlm_model_case *asked) {
  const wlm_place here = wlm_place_of(stats, n);
  *asked = (wlm_model_case){model, stats, n, wlm_simple_seconds(&model->machine, stats, n), INFINITY, {0}};
  for (int64_t i = 0; i < model->place_count; i++)
    asked->distance = fmin(asked->distance, wlm_place_distance(&here, &model->places[i]));
  wlm_features_of_case(&model->machine, stats, n, wlm_problem_has_values(problem_key), asked->features);
}

double wlm_model_seconds(wlm_model_case *asked, const wlm_candidate *candidate) {
  const wlm_model *model = asked->model;
  const int family = wlm_model_family(model, candidate->variant);
  if (family < 0) return 0;
  wlm_features_of_candidate(&model->machine, asked->stats, asked->n, candidate, family, asked->features);
  return asked->seconds * exp(model->base + wlm_trees_sum(model->trees, model->tree_count, asked->features));
}

double wlm_model_spread(const wlm_model_case *asked) { return asked->model->spread * (1 + asked->distance / WLM_FAR); }

void wlm_model_release(wlm_model *model) {
  wlm_free(model->trees);
  wlm_free(model->places);
  *model = (wlm_model){0};
}
