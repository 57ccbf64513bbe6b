/* Finds the nearest tuned cases, so that explain can show the basis of a decision. */
#include <math.h>
#include <string.h>

#include "select/state.h"

double wlmi_case_distance(const wlmi_selection *s, const wlmi_case *c) {
  if (c->n != s->n) return INFINITY;
  if (wlmi_same_fingerprint(c->stats, s->stats)) return 0;
  const wlmi_point here = wlmi_point_of(s->stats, s->n);
  return wlmi_point_distance(&here, &c->point);
}

static void describe(const wlmi_snapshot *s, const wlmi_case *c, double distance, wlmi_similar *out) {
  const wlmi_measured *best = &c->candidates[0];
  *out = (wlmi_similar){.rows = c->stats->rows, .nnz = c->stats->nnz, .n = c->n, .distance = distance};
  wlmi_copy_name(out->matrix, sizeof out->matrix, c->matrix);
  wlmi_copy_name(out->variant, sizeof out->variant, best->variant);
  out->seconds = best->cost / WLMI_PICOSECONDS;
  out->stale = wlmi_snapshot_is_stale(s, best->compiler, best->driver);
}

wlmi_class_filter wlmi_class_of(const char *problem) {
  wlmi_class_filter class = {.last = NULL};
  wlmi_problem_class(problem, class.name);
  return class;
}

int wlmi_is_of_class(wlmi_class_filter *class, const char *problem) {
  char its[WLMI_PROBLEM_CLASS];
  if (problem == class->last) return class->last_is_same;
  wlmi_problem_class(problem, its);
  class->last = problem;
  return class->last_is_same = !strcmp(its, class->name);
}

void wlmi_describe_similar(const wlmi_selection *s, wlmi_decision *decision) {
  const wlmi_point here = wlmi_point_of(s->stats, s->n);
  const wlmi_case *nearest[WLMI_SIMILAR];
  double distances[WLMI_SIMILAR];
  int count = 0;
  wlmi_class_filter class = wlmi_class_of(s->lookup.problem);
  for (int64_t i = 0; i < s->snapshot->case_count; i++) {
    const wlmi_case *c = &s->snapshot->cases[i];
    if (!c->count || !wlmi_is_of_class(&class, c->problem)) continue;
    const double distance = wlmi_point_distance(&here, &c->point);
    int at = count < WLMI_SIMILAR ? count++ : WLMI_SIMILAR;
    for (; at > 0 && distance < distances[at - 1]; at--)
      if (at < WLMI_SIMILAR) {
        distances[at] = distances[at - 1];
        nearest[at] = nearest[at - 1];
      }
    if (at == WLMI_SIMILAR) continue;
    distances[at] = distance;
    nearest[at] = c;
  }
  for (int i = 0; i < count; i++) describe(s->snapshot, nearest[i], distances[i], &decision->similar[i]);
  decision->similar_count = count;
}
