#include "runtime/dispatch/neighbours.h"

#include <stdio.h>
#include <string.h>

static void describe(const wlmi_snapshot *s, const wlmi_case *c, double distance, wlmi_neighbour *out) {
  *out = (wlmi_neighbour){.rows = c->rows, .nnz = c->nnz, .n = c->n, .distance = distance};
  snprintf(out->matrix, sizeof out->matrix, "%s", c->matrix ? c->matrix : "");
  snprintf(out->variant, sizeof out->variant, "%s", s->ranked[c->first].variant);
  out->seconds = s->ranked[c->first].cost;
  out->stale = s->ranked[c->first].stale != NULL;
}

/* Problems repeat from one case to the next, so the last one's answer is kept. */
typedef struct alike {
  char problems[WLM_PROBLEM_CLASS];
  const char *last;
  int answer;
} alike;

static int is_alike(alike *a, const char *problem) {
  char its[WLM_PROBLEM_CLASS];
  if (problem == a->last) return a->answer;
  wlmi_problem_class(problem, its);
  a->last = problem;
  return a->answer = !strcmp(its, a->problems);
}

int wlmi_neighbours_find(const wlmi_snapshot *s, const wlm_stats *stats, const char *problem_key, int64_t n,
                         wlmi_neighbour neighbours[WLM_NEIGHBOURS]) {
  const wlmi_place here = wlmi_place_of(stats, n);
  const wlmi_case *nearest[WLM_NEIGHBOURS];
  double distances[WLM_NEIGHBOURS];
  int count = 0;
  alike like = {.last = NULL};
  wlmi_problem_class(problem_key, like.problems);
  for (int64_t i = 0; i < s->case_count; i++) {
    const wlmi_case *c = &s->cases[i];
    if (!c->exact || !c->count || !is_alike(&like, c->problem)) continue;
    const double distance = wlmi_place_distance(&here, &c->place);
    int at = count < WLM_NEIGHBOURS ? count++ : WLM_NEIGHBOURS;
    for (; at > 0 && distance < distances[at - 1]; at--)
      if (at < WLM_NEIGHBOURS) {
        distances[at] = distances[at - 1];
        nearest[at] = nearest[at - 1];
      }
    if (at == WLM_NEIGHBOURS) continue;
    distances[at] = distance;
    nearest[at] = c;
  }
  for (int i = 0; i < count; i++) describe(s, nearest[i], distances[i], &neighbours[i]);
  return count;
}
