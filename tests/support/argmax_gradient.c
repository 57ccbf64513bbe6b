#include "support/argmax_gradient.h"

#include <math.h>
#include <string.h>

#include "core/problem/element.h"

/* The derivatives of message(a, b) by a and by b. */
static double by_a(wlm_message message, double a, double b) {
  switch (message) {
    case WLM_MUL: return b;
    case WLM_COPY_B: return 0;
    case WLM_SUB: return -1;
    case WLM_DIV: return -b / a / a;
    case WLM_RDIV: return 1 / b;
    default: return 1; /* copy_a, add, rsub */
  }
}

static double by_b(wlm_message message, double a, double b) {
  switch (message) {
    case WLM_MUL: return a;
    case WLM_COPY_A: return 0;
    case WLM_RSUB: return -1;
    case WLM_DIV: return 1 / a;
    case WLM_RDIV: return -a / b / b;
    default: return 1; /* copy_b, add, sub */
  }
}

static int reads_b(wlm_message message) { return message == WLM_MUL || message == WLM_DIV || message == WLM_RDIV; }

/* The row of the edge: the last row that begins at or before it. */
static int64_t row_of(const wlmi_csr_host *a, int64_t edge) {
  int64_t low = 0;
  for (int64_t high = a->rows; high - low > 1;) {
    const int64_t middle = low + (high - low) / 2;
    *(a->rowptr[middle] <= edge ? &low : &high) = middle;
  }
  return low;
}

static void add_term(double *sums, double *scales, int64_t at, double term) {
  sums[at] += term;
  scales[at] += fabs(term);
}

void argmax_gradient(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call, const void *dc,
                     const int64_t *argmax, const void *b, gradient_sums *sums) {
  const int64_t n = p->n, ldb = call->ldb ? call->ldb : n, ldc = call->ldc ? call->ldc : n;
  const int64_t rows = p->transpose ? a->cols : a->rows, cols = p->transpose ? a->rows : a->cols;
  for (int i = 0; i < 2; i++) memset(i ? sums->db_scale : sums->db, 0, (size_t)(cols * n) * sizeof *sums->db);
  for (int i = 0; i < 2; i++)
    memset(i ? sums->dvalues_scale : sums->dvalues, 0, (size_t)(a->nnz * p->heads) * sizeof *sums->db);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < n; j++) {
      const int64_t edge = argmax[i * n + j];
      if (edge < 0) continue;
      const int64_t k = p->transpose ? row_of(a, edge) : a->colind[edge];
      const double x = call->alpha * wlmi_element_get(p->dense_type, dc, i * ldc + j);
      const int64_t place = edge * p->heads + j / (n / p->heads);
      const double value = wlmi_csr_value(a, place);
      const double y = reads_b(p->message) ? wlmi_element_get(p->dense_type, b, k * ldb + j) : 0;
      add_term(sums->db, sums->db_scale, k * n + j, x * by_b(p->message, value, y));
      add_term(sums->dvalues, sums->dvalues_scale, place, x * by_a(p->message, value, y));
    }
}
