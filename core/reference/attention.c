/* Computes attention in two passes over a row and head: first the largest score, then the sums. It is not the online
 * algorithm of the kernels. */
#include "core/reference/attention.h"

#include <math.h>

#include "core/problem/element.h"
#include "core/problem/sampling.h"
#include "core/problem/spec.h"

/* A row of op(A) and a head. */
typedef struct part {
  const wlmi_attention_walk *walk;
  int64_t row, head, width;
} part;

/* An edge of it: row i and column k of A, and its value's place. */
typedef struct edge {
  int64_t i, k, place;
} edge;

typedef struct score {
  double value, slope; /* of leaky_relu at z */
  double size;         /* the magnitude of the terms that were added and rounded */
} score;

static edge edge_of(const part *at, int64_t e) {
  const int64_t other = at->walk->a->colind[e], place = e * at->walk->problem->heads + at->head;
  return at->walk->problem->transpose ? (edge){other, at->row, place} : (edge){at->row, other, place};
}

static const wlm_attention_operands *terms_of(const wlmi_attention_walk *w) { return w->call->attention; }

/* ---- operands ------------------------------------------------------------------------------------------- */

static double dense(const wlmi_attention_walk *w, const void *from, int64_t ld, int64_t line, int64_t j) {
  return wlmi_element_get(w->problem->dense_type, from, line * (ld ? ld : w->problem->n) + j);
}

/* A number of the accumulator's type for each line and head. */
static double of_head(const part *at, const void *from, int64_t ld, int64_t line) {
  const wlm_problem *p = at->walk->problem;
  return wlmi_element_get(wlmi_accumulator_type(p->dense_type), from, line * (ld ? ld : p->heads) + at->head);
}

static double att(const wlmi_attention_walk *w, int64_t j) {
  return wlmi_element_get(wlmi_accumulator_type(w->problem->dense_type), terms_of(w)->att, j);
}

static double b_at(const wlmi_attention_walk *w, int64_t k, int64_t j) {
  return dense(w, w->call->b, w->call->ldb, k, j);
}
static double q_at(const wlmi_attention_walk *w, int64_t i, int64_t j) {
  return dense(w, terms_of(w)->q, terms_of(w)->ldt, i, j);
}

static double value_at(const wlmi_attention_walk *w, int64_t place) {
  return w->a->values || w->a->wide ? wlmi_csr_value(w->a, place) : 0;
}

/* ---- scores --------------------------------------------------------------------------------------------- */

static double incline(const wlmi_attention_walk *w, double z) { return z > 0 ? 1 : terms_of(w)->slope; }

/* What a column adds to a score. */
static double part_of(const wlmi_attention_walk *w, const edge *e, int64_t j) {
  if (w->problem->score == WLM_SCORE_DOT)
    return terms_of(w)->scale * q_at(w, e->i, j) * dense(w, terms_of(w)->k, terms_of(w)->ldt, e->k, j);
  const double z = q_at(w, e->i, j) + b_at(w, e->k, j);
  return att(w, j) * incline(w, z) * z;
}

static score score_of(const part *at, const edge *e) {
  const wlmi_attention_walk *w = at->walk;
  const double value = value_at(w, e->place);
  score sum = {value, 1, fabs(value)};
  if (w->problem->score == WLM_SCORE_GAT) {
    const double left = of_head(at, terms_of(w)->left, terms_of(w)->ldt, e->i),
                 right = of_head(at, terms_of(w)->right, terms_of(w)->ldt, e->k), z = left + right + value;
    sum = (score){incline(w, z) * z, incline(w, z), fabs(left) + fabs(right) + fabs(value)};
  } else if (wlmi_score_is_sum(w->problem->score)) {
    for (int64_t j = at->head * at->width; j < (at->head + 1) * at->width; j++) {
      const double more = part_of(w, e, j);
      sum.value += more;
      sum.size += fabs(more);
    }
  }
  return sum;
}

/* The possible error of an exponent, in units of rounding. */
static double looseness(const score *s, double other) { return isfinite(s->size) ? 4 + 2 * s->size + fabs(other) : 4; }

/* What dropout multiplies a weight by. */
static double kept_of(const part *at, int64_t e) {
  const wlmi_attention_walk *w = at->walk;
  if (!w->problem->dropout) return 1;
  const int64_t in_a = w->order ? w->order[e] : e;
  return wlmi_dropout_factor(terms_of(w)->dropout, w->call->seed, in_a * w->problem->heads + at->head);
}

/* ---- results -------------------------------------------------------------------------------------------- */

static void put(const wlmi_reference_result *to, int64_t i, double value, double scale) {
  if (to->value) to->value[i] = value;
  if (to->scale) to->scale[i] = scale;
}

static void add(const wlmi_reference_result *to, int64_t i, double value, double scale) {
  if (to->value) to->value[i] += value;
  if (to->scale) to->scale[i] += scale;
}

/* *size gets the largest size of a score. */
static double largest_score(const part *at, double *size) {
  const wlmi_csr_host *a = at->walk->a;
  double most = -INFINITY;
  *size = 0;
  for (int64_t e = a->rowptr[at->row]; e < a->rowptr[at->row + 1]; e++) {
    const edge where = edge_of(at, e);
    const score s = score_of(at, &where);
    if (s.value > most) most = s.value;
    if (isfinite(s.size)) *size = fmax(*size, s.size);
  }
  return most;
}

/* `i` is the place of the row among those that are listed; sums are of exp(score - most). */
static void attend(const part *at, int64_t i, const wlmi_reference_result *results) {
  const wlmi_attention_walk *w = at->walk;
  const wlmi_csr_host *a = w->a;
  double size;
  const double most = largest_score(at, &size), base = isinf(most) && most < 0 ? 0 : most;
  const int64_t first = at->head * at->width, to = i * w->problem->n + first;
  double *c = results->value + to, *scale = results->scale ? results->scale + to : NULL, total = 0, loose = 0;
  for (int64_t j = 0; j < at->width; j++) put(results, to + j, 0, 0);
  for (int64_t e = a->rowptr[at->row]; e < a->rowptr[at->row + 1]; e++) {
    const edge where = edge_of(at, e);
    const score s = score_of(at, &where);
    const double weight = exp(s.value - base), off = looseness(&s, base), kept = kept_of(at, e);
    total += weight;
    loose += weight * off;
    for (int64_t j = 0; j < at->width; j++) {
      const double x = kept * weight * b_at(w, where.k, first + j);
      add(results, to + j, x, fabs(x) * off);
    }
  }
  const double looser = total > 0 ? loose / total : 0;
  for (int64_t j = 0; j < at->width; j++) {
    c[j] = total == 0 ? 0 : c[j] / total;
    if (scale) scale[j] = total == 0 ? 0 : (scale[j] + looser * scale[j] / 4) / total;
  }
  const int64_t pair = 2 * (i * w->problem->heads + at->head);
  put(&results[WLMI_RESULT_OF_SOFTMAX], pair, total == 0 ? 0 : base, total == 0 ? 0 : size);
  put(&results[WLMI_RESULT_OF_SOFTMAX], pair + 1, total == 0 ? 0 : 1 / total, total == 0 ? 0 : looser / total);
}

/* The gradient of an edge's score, and what goes with it. */
typedef struct slope {
  double weight, off, kept; /* off: the possible error of the weight, in units of rounding */
  double dterm, dterm_scale;
} slope;

static slope slope_of(const part *at, int64_t e, const edge *where) {
  const wlmi_attention_walk *w = at->walk;
  const int64_t pair = 2 * (where->i * w->problem->heads + at->head);
  const wlm_type type = wlmi_accumulator_type(w->problem->dense_type);
  const double base = wlmi_element_get(type, terms_of(w)->softmax, pair),
               scale = wlmi_element_get(type, terms_of(w)->softmax, pair + 1),
               delta = of_head(at, terms_of(w)->delta, 0, where->i);
  const score s = score_of(at, where);
  slope to = {
      .weight = exp(s.value - base) * scale, .off = looseness(&s, isfinite(base) ? base : 0), .kept = kept_of(at, e)};
  double product = 0, size = fabs(delta);
  for (int64_t j = at->head * at->width; j < (at->head + 1) * at->width; j++) {
    const double xb = dense(w, w->call->x, w->call->ldc, where->i, j) * b_at(w, where->k, j);
    product += xb;
    size += fabs(xb);
  }
  to.dterm = to.weight * (to.kept * product - delta) * s.slope;
  to.dterm_scale = to.weight * size * (1 + to.kept) * fabs(s.slope) * to.off;
  return to;
}

/* The gradient; `line` is that of the row's first edge in dscores, -1 = left out. */
static void attend_back(const part *at, int64_t i, int64_t line, const wlmi_reference_result *results) {
  const wlmi_attention_walk *w = at->walk;
  const wlm_problem *p = w->problem;
  const wlmi_csr_host *a = w->a;
  const int64_t first = at->head * at->width, to = i * p->n + first;
  const wlmi_reference_result *db = results, *dk = &results[WLMI_RESULT_OF_DK];
  double sum = 0, sum_scale = 0;
  for (int64_t j = 0; j < at->width; j++) put(db, to + j, 0, 0), put(dk, to + j, 0, 0);
  for (int64_t e = a->rowptr[at->row]; e < a->rowptr[at->row + 1]; e++) {
    const edge where = edge_of(at, e);
    const slope s = slope_of(at, e, &where);
    for (int64_t j = 0; j < at->width; j++) {
      const double x = s.kept * s.weight * dense(w, w->call->x, w->call->ldc, where.i, first + j);
      add(db, to + j, x, fabs(x) * s.off);
    }
    for (int64_t j = 0; j < at->width && p->score == WLM_SCORE_GATV2; j++) {
      const double by = att(w, first + j) * incline(w, q_at(w, where.i, first + j) + b_at(w, where.k, first + j));
      add(db, to + j, s.dterm * by, s.dterm_scale * fabs(by));
    }
    for (int64_t j = 0; j < at->width && dk->value; j++) {
      const double by = terms_of(w)->scale * q_at(w, where.i, first + j);
      add(dk, to + j, s.dterm * by, s.dterm_scale * fabs(by));
    }
    sum += s.dterm;
    sum_scale += s.dterm_scale;
    if (line >= 0)
      put(&results[WLMI_RESULT_OF_DSCORES], (line + e - a->rowptr[at->row]) * p->heads + at->head, s.dterm,
          s.dterm_scale);
  }
  put(&results[WLMI_RESULT_OF_DRIGHT], i * p->heads + at->head, sum, sum_scale);
}

/* WLM_ATTENTION_ROWS. */
static void sum_rows(const part *at, int64_t i, const wlmi_reference_result *results) {
  const wlmi_attention_walk *w = at->walk;
  const wlmi_csr_host *a = w->a;
  const wlmi_reference_result *dq = results, *datt = &results[WLMI_RESULT_OF_DATT];
  const int64_t first = at->head * at->width, to = i * w->problem->n + first;
  const int is_dot = w->problem->score == WLM_SCORE_DOT;
  for (int64_t j = 0; j < at->width; j++) put(dq, to + j, 0, 0), put(datt, to + j, 0, 0);
  for (int64_t e = a->rowptr[at->row]; e < a->rowptr[at->row + 1]; e++) {
    const edge where = edge_of(at, e);
    const slope s = slope_of(at, e, &where);
    for (int64_t j = first; j < first + at->width; j++) {
      const double z = is_dot ? 0 : q_at(w, where.i, j) + b_at(w, where.k, j), by_att = incline(w, z) * z;
      const double by = is_dot ? terms_of(w)->scale * dense(w, terms_of(w)->k, terms_of(w)->ldt, where.k, j)
                               : att(w, j) * incline(w, z);
      add(dq, to + j - first, s.dterm * by, s.dterm_scale * fabs(by));
      add(datt, to + j - first, s.dterm * by_att, s.dterm_scale * fabs(by_att));
    }
  }
}

wlm_status wlmi_reference_attention(const wlmi_attention_walk *w, const int64_t *row_ids, int64_t row_count,
                                    const int64_t *edge_first, const wlmi_reference_result *results) {
  const wlm_problem *p = w->problem;
  if (p->epilogue.activation)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "the float64 reference of attention does not know an activation");
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < row_count; i++) {
    const int64_t line = edge_first && edge_first[i + 1] > edge_first[i] ? edge_first[i] : -1;
    part at = {w, row_ids ? row_ids[i] : i, 0, p->n / p->heads};
    for (; at.head < p->heads; at.head++)
      if (p->operation == WLM_ATTENTION_ROWS)
        sum_rows(&at, i, results);
      else if (p->transpose)
        attend_back(&at, i, line, results);
      else
        attend(&at, i, results);
    if (p->operation == WLM_ATTENTION && !p->transpose)
      wlmi_reference_finish(p, w->call, at.row, 0, p->n, results->value + i * p->n,
                            results->scale ? results->scale + i * p->n : NULL);
  }
  return WLM_OK;
}
