/* Computes the reference edge by edge. As in the kernels, a derivative by a is a sum of terms over the columns and an
 * operation on the sum: where a is 0, adding infinite terms one by one would give NaN. */
#include "core/reference/gradient.h"

#include <math.h>

#include "core/base/memory.h"
#include "core/csr/shares.h"
#include "core/problem/element.h"
#include "core/reference/evaluate.h"

/* A derivative, and the size that its errors are relative to. */
typedef struct sums {
  double value, size;
} sums;

static double term_of(wlm_message message, double x, double b) {
  switch (message) {
    case WLM_MUL:
    case WLM_DIV: return x * b;
    case WLM_RDIV: return x / b;
    default: return x;
  }
}

static double finish(wlm_message message, double sum, double a) {
  switch (message) {
    case WLM_COPY_B: return 0;
    case WLM_SUB: return -sum;
    case WLM_DIV: return -sum / a / a;
    default: return sum;
  }
}

/* The sum over the columns of a head, and that of absolute values. With alpha = 0 dC counts as 0, so that a quotient
 * out of range does not give 0 * inf. */
static sums sum_terms(const wlm_problem *p, const wlm_execute_args *call, int64_t x_from, int64_t b_from) {
  const int reads_b = p->message == WLM_MUL || p->message == WLM_DIV || p->message == WLM_RDIV;
  const int64_t head_width = p->n / p->heads;
  double x[WLMI_BLOCK], b[WLMI_BLOCK] = {0};
  sums of = {0, 0};
  for (int64_t first = 0; first < head_width; first += WLMI_BLOCK) {
    const int64_t width = head_width - first < WLMI_BLOCK ? head_width - first : WLMI_BLOCK;
    wlmi_elements_read(p->dense_type, call->x, x_from + first, width, x);
    if (reads_b) wlmi_elements_read(p->dense_type, call->b, b_from + first, width, b);
    for (int64_t j = 0; j < width; j++) {
      const double term = term_of(p->message, (call->alpha != 0) * x[j], b[j]);
      of.value += term;
      of.size += fabs(term);
    }
  }
  return of;
}

/* The derivative by a value of an edge, and its scale. */
static sums value_of(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                     const wlmi_edge_share *share, int64_t row, int64_t edge, int64_t head) {
  const int64_t ldb = call->ldb ? call->ldb : p->n, ldc = call->ldc ? call->ldc : p->n,
                first = head * (p->n / p->heads);
  const int64_t place = edge * p->heads + head, column = a->colind[edge];
  const double before = call->beta != 0 ? call->beta * wlmi_element_get(p->dense_type, call->dvalues, place) : 0;
  if (!share->times) return (sums){before, fabs(before)};
  const double factor = call->alpha * (double)share->times * share->factor;
  const sums terms = sum_terms(p, call, row * ldc + first, column * ldb + first);
  const double value = wlmi_csr_value(a, place);
  return (sums){factor * finish(p->message, terms.value, value) + before,
                fabs(factor * finish(p->message, terms.size, value)) + fabs(before)};
}

wlm_status wlmi_reference_edges(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                                const int64_t *row_ids, int64_t row_count, const int64_t *edge_first,
                                const wlmi_reference_result *dvalues) {
  wlmi_edge_share *shares = NULL;
  WLM_CHECK(wlmi_sample_shares(a, p, call->seed, &shares));
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < row_count; i++) {
    const int64_t row = row_ids ? row_ids[i] : i, values = (edge_first[i + 1] - edge_first[i]) * p->heads;
    for (int64_t v = 0; v < values; v++) {
      const int64_t edge = a->rowptr[row] + v / p->heads, to = edge_first[i] * p->heads + v;
      const sums value = value_of(a, p, call, &shares[edge], row, edge, v % p->heads);
      dvalues->value[to] = value.value;
      if (dvalues->scale) dvalues->scale[to] = value.size;
    }
  }
  wlmi_free(shares);
  return WLM_OK;
}
