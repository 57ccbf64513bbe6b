/* Computes attention in two passes over a row and head: first the largest score, then the sums. It is not the online
 * algorithm of the kernels. */
#include "core/reference/attention.h"

#include <math.h>

#include "core/problem/element.h"
#include "core/problem/sampling.h"
#include "core/problem/spec.h"

typedef struct score {
  double value, slope; /* of leaky_relu at z */
  double size;         /* the magnitude of the terms that were added and rounded */
} score;

static score score_of(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call, double row_term,
                      double column_term, int64_t place) {
  const int has_values = a->values || a->wide;
  const double edge = has_values ? wlmi_csr_value(a, place) : 0;
  if (p->score == WLM_SCORE_EDGE) return (score){edge, 1, fabs(edge)};
  const double z = row_term + column_term + edge, slope = z > 0 ? 1 : call->slope;
  const double size = fabs(row_term) + fabs(column_term) + fabs(edge);
  return (score){slope * z, slope, size};
}

static int64_t ld(int64_t given, const wlm_problem *p) { return given ? given : p->n; }

/* The rows of q and of B or k that a score is the sum of. */
typedef struct sides {
  const void *b;
  int64_t q_row, b_row, head;
} sides;

static double q_at(const wlm_problem *p, const wlm_execute_args *call, const wlmi_attention_terms *terms,
                   const sides *at, int64_t j) {
  return wlmi_element_get(p->dense_type, terms->q, at->q_row * ld(call->ldt, p) + j);
}

/* q + b in a column. */
static double side_sum(const wlm_problem *p, const wlm_execute_args *call, const wlmi_attention_terms *terms,
                       const sides *at, int64_t j) {
  return q_at(p, call, terms, at, j) + wlmi_element_get(p->dense_type, at->b, at->b_row * ld(call->ldb, p) + j);
}

static double incline(const wlm_execute_args *call, double z) { return z > 0 ? 1 : call->slope; }

/* What a column adds to a score. */
static double part_of(const wlm_problem *p, const wlm_execute_args *call, const wlmi_attention_terms *terms,
                      const sides *at, int64_t j) {
  if (p->score == WLM_SCORE_DOT)
    return call->scale * q_at(p, call, terms, at, j) *
           wlmi_element_get(p->dense_type, terms->k, at->b_row * ld(call->ldt, p) + j);
  const double z = side_sum(p, call, terms, at, j);
  return terms->att[j] * incline(call, z) * z;
}

/* A score that is the sum of its head's columns. */
static score sum_of(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                    const wlmi_attention_terms *terms, const sides *at, int64_t place) {
  const int64_t width = p->n / p->heads;
  const double edge = a->values || a->wide ? wlmi_csr_value(a, place) : 0;
  score sum = {edge, 1, fabs(edge)};
  for (int64_t j = at->head * width; j < (at->head + 1) * width; j++) {
    const double part = part_of(p, call, terms, at, j);
    sum.value += part;
    sum.size += fabs(part);
  }
  return sum;
}

static double term(const double *terms, int64_t index, const wlm_problem *p, int64_t head) {
  return terms && p->score == WLM_SCORE_GAT ? terms[index * p->heads + head] : 0;
}

/* The score of an edge that has a place in a->values, of row i and column k of A. */
static score score_at(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                      const wlmi_attention_terms *terms, const void *b, int64_t i, int64_t k, int64_t place) {
  const int64_t head = place % p->heads;
  if (wlmi_score_is_sum(p->score)) return sum_of(a, p, call, terms, &(sides){b, i, k, head}, place);
  return score_of(a, p, call, term(terms->left, i, p, head), term(terms->right, k, p, head), place);
}

/* The possible error of an exponent, in units of rounding. */
static double looseness(const score *s, double other) { return isfinite(s->size) ? 4 + 2 * s->size + fabs(other) : 4; }

/* What dropout multiplies a weight by. */
static double kept_of(const wlm_problem *p, const wlm_execute_args *call, const wlmi_attention_terms *terms,
                      int64_t edge, int64_t head) {
  if (!p->dropout) return 1;
  const uint64_t hash = wlmi_sample_hash(call->seed, (terms->order ? terms->order[edge] : edge) * p->heads + head);
  return (float)(hash >> 40) * 0x1p-24f < (float)call->dropout ? 0 : 1 / (1 - call->dropout);
}

/* One row and head; sum is of exp(score - most). */
static void attend(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                   const wlmi_attention_terms *terms, const void *b, int64_t row, int64_t head, double *c,
                   double *scale, double *lse, double *lse_scale) {
  const int64_t width = p->n / p->heads, ldb = ld(call->ldb, p);
  double most = -INFINITY, total = 0, loose = 0;
  for (int64_t e = a->rowptr[row]; e < a->rowptr[row + 1]; e++) {
    const score s = score_at(a, p, call, terms, b, row, a->colind[e], e * p->heads + head);
    if (s.value > most) most = s.value;
  }
  const double base = isinf(most) && most < 0 ? 0 : most;
  for (int64_t j = 0; j < width; j++) c[j] = scale[j] = 0;
  for (int64_t e = a->rowptr[row]; e < a->rowptr[row + 1]; e++) {
    const score s = score_at(a, p, call, terms, b, row, a->colind[e], e * p->heads + head);
    const double weight = exp(s.value - base), off = looseness(&s, base);
    const double kept = kept_of(p, call, terms, e, head);
    total += weight;
    loose += weight * off;
    for (int64_t j = 0; j < width; j++) {
      const double x = kept * weight * wlmi_element_get(p->dense_type, b, a->colind[e] * ldb + head * width + j);
      c[j] += x;
      scale[j] += fabs(x) * off;
    }
  }
  for (int64_t j = 0; j < width; j++) {
    scale[j] = total == 0 ? 0 : (scale[j] + (total > 0 ? loose / total : 0) * scale[j] / 4) / total;
    c[j] = total == 0 ? 0 : c[j] / total;
  }
  if (lse) *lse = base + log(total);
  if (lse && total == 0) *lse = -INFINITY;
  if (lse_scale) *lse_scale = 4 + fabs(base) + (total > 0 ? loose / total : 0);
}

static wlm_status check(const wlm_problem *p) {
  if (p->epilogue.activation)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "the float64 reference of attention does not know an activation");
  return WLM_OK;
}

wlm_status wlmi_reference_attention(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                                    const wlmi_attention_terms *terms, const void *b, const void *c_old,
                                    const int64_t *row_ids, int64_t row_count, double *c, double *scale, double *lse,
                                    double *lse_scale) {
  const int64_t width = p->n / p->heads, ldc = ld(call->ldc, p);
  const wlm_status status = check(p);
  if (status != WLM_OK) return status;
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < row_count; i++) {
    const int64_t row = row_ids ? row_ids[i] : i;
    for (int64_t head = 0; head < p->heads; head++)
      attend(a, p, call, terms, b, row, head, c + i * p->n + head * width, scale + i * p->n + head * width,
             lse ? lse + i * p->heads + head : NULL, lse_scale ? lse_scale + i * p->heads + head : NULL);
    for (int64_t j = 0; j < p->n; j++) {
      const double bias = p->epilogue.bias ? wlmi_element_get(p->dense_type, call->bias, j) : 0;
      const double old = call->beta != 0 ? wlmi_element_get(p->dense_type, c_old, row * ldc + j) : 0;
      c[i * p->n + j] = call->alpha * c[i * p->n + j] + call->beta * old + bias;
      scale[i * p->n + j] = fabs(call->alpha) * scale[i * p->n + j] + fabs(call->beta * old) + fabs(bias);
    }
  }
  return WLM_OK;
}

/* The gradient for one row of A^T and one head. */
static void attend_back(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                        const wlmi_attention_terms *terms, const void *x, const void *b, int64_t row, int64_t head,
                        int64_t edge_shift, double *db, double *db_scale, double *dright, double *dright_scale,
                        double *dvalues, double *dvalues_scale, double *dk, double *dk_scale) {
  const int64_t width = p->n / p->heads, ldb = ld(call->ldb, p), ldc = ld(call->ldc, p);
  double sum = 0, sum_scale = 0;
  for (int64_t j = 0; j < width; j++) db[j] = db_scale[j] = 0;
  for (int64_t j = 0; j < width && dk; j++) dk[j] = dk_scale[j] = 0;
  for (int64_t e = a->rowptr[row]; e < a->rowptr[row + 1]; e++) {
    const int64_t i = a->colind[e], place = e * p->heads + head;
    const double lse = terms->lse[i * p->heads + head], delta = terms->delta[i * p->heads + head];
    const score s = score_at(a, p, call, terms, b, i, row, place);
    const double weight = isinf(lse) && lse < 0 ? 0 : exp(s.value - lse), off = looseness(&s, isinf(lse) ? 0 : lse);
    const double kept = kept_of(p, call, terms, e, head);
    double product = 0, size = fabs(delta);
    for (int64_t j = 0; j < width; j++) {
      const double y = wlmi_element_get(p->dense_type, x, i * ldc + head * width + j);
      const double xb = y * wlmi_element_get(p->dense_type, b, row * ldb + head * width + j);
      product += xb;
      size += fabs(xb);
      db[j] += kept * weight * y;
      db_scale[j] += fabs(kept * weight * y) * off;
    }
    const double dterm = weight * (kept * product - delta) * s.slope,
                 dterm_scale = weight * size * (1 + kept) * fabs(s.slope) * off;
    for (int64_t j = 0; j < width && p->score == WLM_SCORE_GATV2; j++) {
      const int64_t column = head * width + j;
      const double slope =
          terms->att[column] * incline(call, side_sum(p, call, terms, &(sides){b, i, row, head}, column));
      db[j] += dterm * slope;
      db_scale[j] += dterm_scale * fabs(slope);
    }
    for (int64_t j = 0; j < width && dk; j++) {
      const double slope = call->scale * q_at(p, call, terms, &(sides){b, i, row, head}, head * width + j);
      dk[j] += dterm * slope;
      dk_scale[j] += dterm_scale * fabs(slope);
    }
    sum += dterm;
    sum_scale += dterm_scale;
    if (dvalues) dvalues[place + edge_shift * p->heads] = dterm;
    if (dvalues_scale) dvalues_scale[place + edge_shift * p->heads] = dterm_scale;
  }
  if (dright) *dright = sum;
  if (dright_scale) *dright_scale = sum_scale;
}

wlm_status wlmi_reference_attention_gradient(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                                             const wlmi_attention_terms *terms, const void *x, const void *b,
                                             const int64_t *row_ids, int64_t row_count, double *db, double *db_scale,
                                             double *dright, double *dright_scale, double *dvalues,
                                             double *dvalues_scale, double *dk, double *dk_scale) {
  const int64_t width = p->n / p->heads;
  const wlm_status status = check(p);
  if (status != WLM_OK) return status;
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < row_count; i++) {
    const int64_t row = row_ids ? row_ids[i] : i, *first_edge = terms->edge_first;
    const int64_t shift = first_edge ? first_edge[i] - a->rowptr[row] : 0;
    const int has_edges = !first_edge || first_edge[i + 1] > first_edge[i];
    for (int64_t head = 0; head < p->heads; head++) {
      const int64_t first = i * p->n + head * width, sum = i * p->heads + head;
      attend_back(a, p, call, terms, x, b, row, head, shift, db + first, db_scale + first, dright ? dright + sum : NULL,
                  dright ? dright_scale + sum : NULL, has_edges ? dvalues : NULL, has_edges ? dvalues_scale : NULL,
                  dk ? dk + first : NULL, dk ? dk_scale + first : NULL);
    }
  }
  return WLM_OK;
}

wlm_status wlmi_reference_attention_rows(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                                         const wlmi_attention_terms *terms, const void *b, const int64_t *row_ids,
                                         int64_t row_count, double *c, double *scale, double *datt,
                                         double *datt_scale) {
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < row_count; i++) {
    const int64_t row = row_ids ? row_ids[i] : i;
    for (int64_t j = 0; j < p->n; j++) {
      const int64_t head = j / (p->n / p->heads);
      double sum = 0, size = 0, more = 0, more_size = 0;
      for (int64_t e = a->rowptr[row]; e < a->rowptr[row + 1]; e++) {
        const double z = side_sum(p, call, terms, &(sides){b, row, a->colind[e], head}, j);
        const double slope = wlmi_csr_value(a, e * p->heads + head) * incline(call, z);
        sum += slope;
        size += fabs(slope);
        more += slope * z;
        more_size += fabs(slope * z);
      }
      c[i * p->n + j] = sum * terms->att[j];
      scale[i * p->n + j] = size * fabs(terms->att[j]);
      if (datt) datt[i * p->n + j] = more;
      if (datt_scale) datt_scale[i * p->n + j] = more_size;
    }
  }
  return WLM_OK;
}
