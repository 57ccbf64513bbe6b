/* Computes the reference edge by edge, by the derivatives of wlmi_message_slopes. As in the kernels, one by a
 * is split into terms that are summed over the columns and an operation on the sum: where a is 0, adding infinite terms
 * one by one would give NaN. */
#include "core/reference/gradient.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/csr/shares.h"
#include "core/problem/element.h"
#include "core/problem/message.h"
#include "core/reference/evaluate.h"

/* d message(a, b) / d a: `of_sum` of the sum of the terms. */
typedef struct slope {
  wlmi_expression term, of_sum;
} slope;

static void slope_release(slope *s) {
  wlmi_expression_release(&s->term);
  wlmi_expression_release(&s->of_sum);
}

static wlm_status slope_make(wlm_message message, slope *s) {
  const unsigned int of_term = 1u << WLMI_OPERAND_A | 1u << WLMI_OPERAND_B,
                     of_sum = 1u << WLMI_OPERAND_ACC | 1u << WLMI_OPERAND_A;
  const wlmi_slopes *texts = &wlmi_message_slopes[message];
  WLM_CHECK(wlmi_expression_parse("term", texts->term, strlen(texts->term), of_term, &s->term));
  return wlmi_expression_parse("sum", texts->of_sum, strlen(texts->of_sum), of_sum, &s->of_sum);
}

/* The sum of dC times the terms over the columns of a head, and that of their absolute values. With alpha = 0 dC counts
 * as 0, so that a quotient out of range does not give 0 * inf. */
typedef struct sums {
  double value, size;
} sums;

static sums sum_terms(const wlm_problem *p, const wlm_execute_args *call, const wlmi_expression *term, int64_t x_from,
                      int64_t b_from) {
  const int reads_b = wlmi_expression_uses(term, WLMI_OPERAND_B), takes_x = wlmi_expression_uses(term, WLMI_OPERAND_A);
  const int64_t head_width = p->n / p->heads;
  const double unit = wlmi_element_unit(wlmi_accumulator_type(p->dense_type));
  const double share = call->alpha != 0;
  wlmi_column_block x, b, slope;
  const wlmi_column_block *const operands[WLMI_OPERANDS] = {[WLMI_OPERAND_A] = &x, [WLMI_OPERAND_B] = &b};
  sums of = {0, 0};
  wlmi_block_fill(&x, WLMI_BLOCK, 0);
  wlmi_block_fill(&b, WLMI_BLOCK, 0);
  for (int64_t first = 0; first < head_width; first += WLMI_BLOCK) {
    const int width = (int)(head_width - first < WLMI_BLOCK ? head_width - first : WLMI_BLOCK);
    if (reads_b) wlmi_elements_read(p->dense_type, call->b, b_from + first, width, b.value);
    for (int j = 0; j < width; j++) x.value[j] = share * wlmi_element_get(p->dense_type, call->x, x_from + first + j);
    wlmi_evaluate(term, operands, 0, width, unit, &slope);
    for (int j = 0; j < width; j++) {
      const double product = takes_x ? slope.value[j] : x.value[j] * slope.value[j];
      of.value += product;
      of.size += fabs(product);
    }
  }
  return of;
}

/* The derivatives of which these are the sums of terms. */
static sums finish(const wlmi_expression *of_sum, sums of, double a) {
  wlmi_column_block acc = {{of.value, of.size}, {0}}, value = {{a, a}, {0}};
  const wlmi_column_block *const operands[WLMI_OPERANDS] = {[WLMI_OPERAND_A] = &value, [WLMI_OPERAND_ACC] = &acc};
  wlmi_evaluate(of_sum, operands, 0, 2, 1, &acc);
  return (sums){acc.value[0], acc.value[1]};
}

/* The derivative by a value of an edge, and its scale. */
static sums value_of(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call, const slope *by_a,
                     const wlmi_edge_share *share, int64_t row, int64_t edge, int64_t head) {
  const int64_t ldb = call->ldb ? call->ldb : p->n, ldc = call->ldc ? call->ldc : p->n,
                first = head * (p->n / p->heads);
  const int64_t place = edge * p->heads + head, column = a->colind[edge];
  const double before = call->beta != 0 ? call->beta * wlmi_element_get(p->dense_type, call->dvalues, place) : 0;
  if (!share->times) return (sums){before, fabs(before)};
  const double factor = call->alpha * (double)share->times * share->factor;
  const sums terms = sum_terms(p, call, &by_a->term, row * ldc + first, column * ldb + first);
  const sums all = finish(&by_a->of_sum, terms, wlmi_csr_value(a, place));
  return (sums){call->beta != 0 ? factor * all.value + before : factor * all.value,
                fabs(factor * all.size) + fabs(before)};
}

wlm_status wlmi_reference_edges(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                                const int64_t *row_ids, int64_t row_count, const int64_t *edge_first,
                                const wlmi_reference_result *dvalues) {
  wlmi_edge_share *shares = NULL;
  slope by_a = {.term = {0}};
  wlm_status status;
  WLM_TRY(slope_make(p->message, &by_a));
  WLM_TRY(wlmi_sample_shares(a, p, call->seed, &shares));
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < row_count; i++) {
    const int64_t row = row_ids ? row_ids[i] : i, values = (edge_first[i + 1] - edge_first[i]) * p->heads;
    for (int64_t v = 0; v < values; v++) {
      const int64_t edge = a->rowptr[row] + v / p->heads, to = edge_first[i] * p->heads + v;
      const sums value = value_of(a, p, call, &by_a, &shares[edge], row, edge, v % p->heads);
      dvalues->value[to] = value.value;
      if (dvalues->scale) dvalues->scale[to] = value.size;
    }
  }
done:
  wlmi_free(shares);
  slope_release(&by_a);
  return status;
}
