/* Computes the reference edge by edge. As in the kernels, a derivative by a is split into terms that are summed over
 * the columns and an operation on the sum: where a is 0, adding infinite terms one by one would give NaN. */
#include "core/reference/gradient.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/csr/presample.h"
#include "core/problem/element.h"

/* d message(a, b) / d a is of_edge(message, a, term_of(message, b)). */
static double term_of(wlm_message message, double b) {
  switch (message) {
    case WLM_MUL:
    case WLM_DIV: return b;
    case WLM_RDIV: return 1 / b;
    default: return 1;
  }
}

static double of_edge(wlm_message message, double a, double sum) {
  switch (message) {
    case WLM_COPY_B: return 0;
    case WLM_SUB: return -sum;
    case WLM_DIV: return -sum / a / a; /* a * a may overflow although the quotient does not */
    default: return sum;
  }
}

static int reads_b(wlm_message message) { return message == WLM_MUL || message == WLM_DIV || message == WLM_RDIV; }

/* The last row that begins at or before edge p. */
static int64_t row_of(const wlmi_csr_host *a, int64_t p) {
  int64_t low = 0, high = a->rows;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (a->rowptr[middle] <= p)
      low = middle;
    else
      high = middle;
  }
  return low;
}

wlm_status wlmi_reference_edges(const wlmi_csr_host *a, const wlm_problem *problem, const wlm_execute_args *call,
                                const void *dc, const void *b, const void *old, const int64_t *edges, int64_t count,
                                double *dvalues, double *scale) {
  const wlm_problem *p = problem;
  const wlm_type type = p->dense_type;
  const int64_t ldb = call->ldb ? call->ldb : p->n, ldc = call->ldc ? call->ldc : p->n, width = p->n / p->heads;
  wlmi_edge_share *shares = NULL;
  for (int64_t i = 0; i < count; i++)
    if ((edges ? edges[i] : i) < 0 || (edges ? edges[i] : i) >= a->nnz * p->heads)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "edge %lld of %lld", (long long)(edges ? edges[i] : i),
                       (long long)(a->nnz * p->heads));
  const wlm_status status = wlmi_sample_shares(a, p, call->seed, &shares);
  if (status != WLM_OK) return status;
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t i = 0; i < count; i++) {
    const int64_t place = edges ? edges[i] : i, edge = place / p->heads, first = place % p->heads * width;
    const int64_t row = row_of(a, edge), column = a->colind[edge];
    const double value = wlmi_csr_value(a, place),
                 before = call->beta != 0 ? call->beta * wlmi_element_get(type, old, place) : 0;
    double sum = 0, size = 0;
    dvalues[i] = before;
    if (scale) scale[i] = fabs(before);
    if (!shares[edge].times) continue;
    for (int64_t j = first; j < first + width; j++) {
      const double x = wlmi_element_get(type, dc, row * ldc + j);
      const double y = reads_b(p->message) ? wlmi_element_get(type, b, column * ldb + j) : 0;
      const double term = x * term_of(p->message, y);
      sum += term;
      size += fabs(term);
    }
    const double factor = call->alpha * (double)shares[edge].times * shares[edge].factor;
    dvalues[i] = factor * of_edge(p->message, value, sum);
    if (call->beta != 0) dvalues[i] += before;
    if (scale) scale[i] = fabs(factor * of_edge(p->message, value, size)) + fabs(before);
  }
  wlmi_free(shares);
  return WLM_OK;
}
