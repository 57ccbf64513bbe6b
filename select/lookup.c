/* Finds the model for a problem, and what it expects of a variant. */
#include <math.h>
#include <string.h>

#include "select/state.h"

/* A model of another device class counts as WLMI_FAR farther away, because its times are not this device's. */
static double remoteness(const wlmi_model_case *c) { return c->distance + (c->model->borrowed ? WLMI_FAR : 0); }

static int is_better(const wlmi_model_case *a, const wlmi_model_case *b) {
  const int within = a->distance <= WLMI_MODEL_FAR;
  if (within != (b->distance <= WLMI_MODEL_FAR)) return within;
  if (remoteness(a) != remoteness(b)) return remoteness(a) < remoteness(b);
  return a->model->measurements > b->model->measurements;
}

/* Among the models of the class uses the one trained on the most similar case; among equals the one trained on
 * more cases. So a user's model of a few matrices does not hide the shipped model of hundreds. */
wlmi_lookup wlmi_lookup_make(const wlmi_selection *s, const char *problem) {
  wlmi_lookup lookup = {.problem = problem};
  char class[WLMI_PROBLEM_CLASS];
  /* A simpler message has lines of edges where this one does. */
  wlmi_model_class(problem, s->n, s->spec->has_edge_lines, class);
  for (int64_t i = 0; i < s->snapshot->model_count && s->request->variants->list; i++) {
    const wlmi_model *model = &s->snapshot->models[i];
    wlmi_model_case c;
    if (strcmp(model->problems, class)) continue;
    wlmi_model_case_make(model, s->request->limits, s->stats, problem, s->n, &c);
    if (lookup.model && !is_better(&c, &lookup.model_case)) continue;
    lookup.model = model;
    lookup.model_case = c;
  }
  return lookup;
}

int wlmi_model_is_near(const wlmi_lookup *lookup) {
  return lookup->model && lookup->model_case.distance <= WLMI_MODEL_FAR;
}

double wlmi_predict_variant(wlmi_selection *s, const wlmi_variant *variant) {
  const wlmi_candidate *candidate =
      wlmi_model_is_near(&s->lookup) ? wlmi_candidate_find(s->request->variants->list, variant) : NULL;
  return candidate ? wlmi_model_seconds(&s->lookup.model_case, candidate) : 0;
}
