/* Finds the tuned message whose kernels are most like those of a message that was never measured. Which
 * kernel is the fastest depends on how much memory an edge and a row take, so the distance of two messages is that of
 * these bytes. Messages with and without a line for each edge are too different. */
#include <math.h>
#include <string.h>

#include "core/problem/message.h"
#include "core/problem/spec_key.h"
#include "select/state.h"

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

static double distance_of(const traffic *a, const traffic *b) {
  double sum = 0;
  for (int i = 0; i < KINDS; i++) sum += (a->octaves[i] - b->octaves[i]) * (a->octaves[i] - b->octaves[i]);
  return sqrt(sum);
}

const char *wlmi_nearest_message(wlmi_selection *s, const char *problem) {
  wlmi_class_filter class = wlmi_class_of(problem);
  traffic wanted, its;
  const char *nearest = NULL;
  double least = INFINITY, least_remote = WLMI_NEAR;
  if (!finds_traffic(s, problem, &wanted)) return NULL;
  for (int64_t i = 0; i < s->snapshot->case_count; i++) {
    const wlmi_case *c = &s->snapshot->cases[i];
    const double remote = wlmi_case_distance(s, c);
    if (!c->count || remote > least_remote) continue;
    if (!wlmi_is_of_class(&class, c->problem) || !strcmp(c->problem, problem)) continue;
    if (!finds_traffic(s, c->problem, &its) || its.has_edge_lines != wanted.has_edge_lines) continue;
    const double distance = distance_of(&wanted, &its);
    if (remote == least_remote && distance >= least) continue;
    nearest = c->problem;
    least = distance;
    least_remote = remote;
  }
  return nearest;
}
