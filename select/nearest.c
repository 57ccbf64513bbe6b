/* The nearest tuned case. Its matrix counts first, of which it is at most WLMI_NEAR away, then its problem. Two
 * messages are as far apart as the bytes that an edge and a row take, on which depends which kernel is the fastest;
 * those with and without a line for each edge are too different. Other problems are the same or not (select/select.c
 * has the simpler ones, in order). Explain shows the nearest cases of any problem of the class, whatever decided. */
#include <math.h>
#include <string.h>

#include "core/problem/message.h"
#include "core/problem/spec_key.h"
#include "select/state.h"

double wlmi_case_distance(const wlmi_selection *s, const wlmi_case *c) {
  if (c->n != s->n) return INFINITY;
  if (wlmi_same_fingerprint(c->stats, s->stats)) return 0;
  const wlmi_point here = wlmi_point_of(s->stats, s->n);
  return wlmi_point_distance(&here, &c->point);
}

/* Which problems are of the same class (wlmi_problem_class) as one. Neighbouring cases often have the same problem, so
 * the answer for the last problem is kept. */
typedef struct class_filter {
  char name[WLMI_PROBLEM_CLASS];
  const char *last;
  int last_is_same;
} class_filter;

static class_filter class_of(const char *problem) {
  class_filter class = {.last = NULL};
  wlmi_problem_class(problem, class.name);
  return class;
}

static int is_of_class(class_filter *class, const char *problem) {
  char its[WLMI_PROBLEM_CLASS];
  if (problem == class->last) return class->last_is_same;
  wlmi_problem_class(problem, its);
  class->last = problem;
  return class->last_is_same = !strcmp(its, class->name);
}

const wlmi_case *wlmi_nearest_case(wlmi_selection *s, wlmi_problem_distance_fn distance_of, void *user) {
  const wlmi_case *nearest = NULL;
  double least = INFINITY, least_remote = WLMI_NEAR;
  for (int64_t i = 0; i < s->snapshot->case_count; i++) {
    const wlmi_case *c = &s->snapshot->cases[i];
    const double remote = wlmi_case_distance(s, c);
    if (remote > least_remote) continue;
    const double distance = distance_of(s, c, user);
    if (!isfinite(distance) || (remote == least_remote && distance >= least)) continue;
    nearest = c;
    least = distance;
    least_remote = remote;
  }
  return nearest;
}

/* ---- messages --------------------------------------------------------------------------------------------- */

enum { OF_EDGES, GATHERED, OF_ROWS, KINDS };

/* A sum of a row is written. Where rows are split, a part of it is written and read before. */
static const double sum_moves = 3;

/* Octaves of the bytes of a message: those with a line for each edge, those of the lines that an edge names, and those
 * with a line for each walked row. */
typedef struct traffic {
  double octaves[KINDS];
  int has_edge_lines;
} traffic;

static int kind_of(const wlm_problem *p, wlm_place place) {
  if (place == WLM_PLACE_EDGE) return OF_EDGES;
  return place == (p->transpose ? WLM_PLACE_COLUMN : WLM_PLACE_ROW) ? OF_ROWS : GATHERED;
}

static void add_up(const wlm_problem *p, const wlmi_message *message, traffic *t) {
  const double element = (double)wlmi_type_size(p->dense_type);
  double bytes[KINDS] = {0};
  for (int i = 0; i < message->operands; i++) {
    const wlmi_message_operand *o = &message->operand[i];
    if (o->place != WLM_PLACE_ALL) bytes[kind_of(p, o->place)] += element * (double)wlmi_width_columns(p, o->width);
  }
  for (int r = 0; r < message->results; r++) {
    const wlmi_result_kind kind = message->result[r].kind;
    const wlm_width width = wlmi_result_width(kind);
    const int of_row = wlmi_result_is_of_row(kind);
    bytes[of_row ? OF_ROWS : OF_EDGES] += (of_row ? sum_moves : 1) * element * (double)wlmi_width_columns(p, width);
  }
  const double index = (double)sizeof(int32_t); /* of an edge and of a row */
  for (int i = 0; i < KINDS; i++) t->octaves[i] = log2(bytes[i] + index);
}

/* WLM_ERR_UNSUPPORTED where the text is none of this version. */
static wlm_status traffic_of(const char *problem, int64_t n, traffic *t) {
  wlmi_spec spec;
  wlmi_message message;
  WLM_CHECK(wlmi_spec_from_key(problem, n, &spec));
  WLM_CHECK(wlmi_message_parse(spec.custom, &message));
  add_up(&spec.problem, &message, t);
  t->has_edge_lines = spec.has_edge_lines;
  wlmi_message_release(&message);
  return WLM_OK;
}

static int finds_traffic(wlmi_selection *s, const char *problem, traffic *t) {
  const wlm_status status = traffic_of(problem, s->n, t);
  s->out_of_memory |= status == WLM_ERR_OUT_OF_MEMORY;
  return status == WLM_OK;
}

static double traffic_distance(const traffic *a, const traffic *b) {
  double sum = 0;
  for (int i = 0; i < KINDS; i++) sum += (a->octaves[i] - b->octaves[i]) * (a->octaves[i] - b->octaves[i]);
  return sqrt(sum);
}

typedef struct wanted {
  const char *problem;
  traffic traffic;
  class_filter class;
} wanted;

static double message_distance(wlmi_selection *s, const wlmi_case *c, void *user) {
  wanted *w = user;
  traffic its;
  if (!c->count || !is_of_class(&w->class, c->problem) || !strcmp(c->problem, w->problem)) return INFINITY;
  if (!finds_traffic(s, c->problem, &its) || its.has_edge_lines != w->traffic.has_edge_lines) return INFINITY;
  return traffic_distance(&w->traffic, &its);
}

const char *wlmi_nearest_message(wlmi_selection *s, const char *problem) {
  wanted w = {.problem = problem, .class = class_of(problem)};
  const wlmi_case *nearest = finds_traffic(s, problem, &w.traffic) ? wlmi_nearest_case(s, message_distance, &w) : NULL;
  return nearest ? nearest->problem : NULL;
}

/* ---- what explain shows ------------------------------------------------------------------------------------ */

static void describe(const wlmi_snapshot *s, const wlmi_case *c, double distance, wlmi_similar *out) {
  const wlmi_measured *best = &c->candidates[0];
  *out = (wlmi_similar){.rows = c->stats->rows, .nnz = c->stats->nnz, .n = c->n, .distance = distance};
  wlmi_copy_name(out->matrix, sizeof out->matrix, c->matrix);
  wlmi_copy_name(out->variant, sizeof out->variant, best->variant);
  out->seconds = best->cost / WLMI_PICOSECONDS;
  out->stale = wlmi_snapshot_is_stale(s, best->compiler, best->driver);
}

void wlmi_describe_similar(const wlmi_selection *s, wlmi_decision *decision) {
  const wlmi_point here = wlmi_point_of(s->stats, s->n);
  const wlmi_case *nearest[WLMI_SIMILAR];
  double distances[WLMI_SIMILAR];
  int count = 0;
  class_filter class = class_of(s->lookup.problem);
  for (int64_t i = 0; i < s->snapshot->case_count; i++) {
    const wlmi_case *c = &s->snapshot->cases[i];
    if (!c->count || !is_of_class(&class, c->problem)) continue;
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
