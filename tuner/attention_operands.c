#include "tuner/attention_operands.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"
#include "core/reference/attention.h"

enum { LEFT, RIGHT, LSE, DELTA, ATT, TERMS, Q = TERMS, K, DVALUES, DRIGHT, DATT, DK };

static int is_gradient(const wlmi_operands *operands) { return operands->spec.problem.transpose; }

static double draw(uint64_t seed, int64_t i) { return (double)(wlmi_sample_hash(seed, i) >> 40) * 0x1p-23 - 1; }

static wlm_status make_buffer(wlmi_operands *operands, int which, wlm_type type, int64_t count) {
  wlmi_buffer *buffer = &operands->attention[which];
  buffer->size = (size_t)(count ? count : 1) * wlmi_type_size(type);
  return operands->device->ops->allocate(operands->device, buffer->size, &buffer->memory);
}

/* An output besides C or db, with a line for each row of the result or each edge. */
static wlm_status make_output(wlmi_operands *operands, int which, const char *name, wlm_type type, int of_edges,
                              int64_t width, void **call) {
  const wlm_problem *p = &operands->spec.problem;
  wlmi_buffer *buffer = &operands->attention[which];
  const int64_t lines = of_edges ? operands->a.nnz : operands->result_rows;
  const wlm_status status = wlmi_buffer_make(operands->device, wlmi_type_size(type), lines, width, name, NULL, buffer);
  if (status != WLM_OK) return status;
  wlmi_operands_add_output(operands, (wlmi_output){.name = name,
                                                   .result = operands->outputs,
                                                   .of_edges = of_edges,
                                                   .type = type,
                                                   .lines = lines,
                                                   .width = width,
                                                   .ld = width,
                                                   .more_terms = p->n / p->heads,
                                                   .buffer = *buffer});
  *call = buffer->memory;
  return WLM_OK;
}

static wlm_status make_term(wlmi_operands *operands, int which, int64_t count, uint64_t seed) {
  wlmi_device *device = operands->device;
  const wlm_type type = wlmi_accumulator_type(operands->spec.problem.dense_type);
  void *narrow = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(count, sizeof(double), "terms of scores", (void **)&operands->terms[which]));
  WLM_TRY(wlmi_alloc_array(count, wlmi_type_size(type), "terms of scores", &narrow));
  for (int64_t i = 0; i < count; i++) {
    const double value = draw(seed + (uint64_t)which, i);
    wlmi_element_put(type, narrow, i, which == LSE ? value + 2 : value);
    operands->terms[which][i] = wlmi_element_get(type, narrow, i);
  }
  WLM_TRY(make_buffer(operands, which, type, count));
  if (count)
    WLM_TRY(
        device->ops->copy_in(device, operands->attention[which].memory, narrow, (size_t)count * wlmi_type_size(type)));
done:
  wlmi_free(narrow);
  return status;
}

/* One side of scores that are sums: q or k. */
static wlm_status make_side(wlmi_operands *operands, int which, int64_t rows, uint64_t seed) {
  const wlm_problem *p = &operands->spec.problem;
  const int64_t count = rows * p->n;
  const size_t size = wlmi_type_size(p->dense_type);
  void **host = &operands->sides_host[which - Q];
  wlmi_device *device = operands->device;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(count, size, "terms of scores", host));
  for (int64_t i = 0; i < count; i++) wlmi_element_put(p->dense_type, *host, i, draw(seed + (uint64_t)which, i));
  WLM_TRY(make_buffer(operands, which, p->dense_type, count));
  if (count) WLM_TRY(device->ops->copy_in(device, operands->attention[which].memory, *host, (size_t)count * size));
done:
  return status;
}

/* The operands of scores that are sums, for A with so many rows and columns. */
static wlm_status make_sides(wlmi_operands *operands, int64_t rows, int64_t cols, uint64_t seed) {
  const wlm_problem *p = &operands->spec.problem;
  const wlmi_buffer *made = operands->attention;
  wlm_execute_args *call = &operands->call;
  wlm_status status;
  WLM_TRY(make_side(operands, Q, rows, seed));
  call->q = made[Q].memory;
  if (p->score == WLM_SCORE_GATV2) {
    WLM_TRY(make_term(operands, ATT, p->n, seed));
    call->att = made[ATT].memory;
    goto done;
  }
  WLM_TRY(make_side(operands, K, cols, seed));
  call->k = made[K].memory;
  if (p->transpose) status = make_output(operands, DK, "dk", p->dense_type, 0, p->n, &call->dk);
done:
  return status;
}

wlm_status wlmi_attention_operands_make(wlmi_operands *operands, const wlm_csr *csr, uint64_t seed) {
  const wlm_type sums = wlmi_accumulator_type(operands->spec.problem.dense_type);
  const wlm_score score = operands->spec.problem.score;
  const int64_t heads = operands->spec.problem.heads;
  const int64_t a_rows = is_gradient(operands) ? csr->cols : csr->rows, rows = a_rows * heads;
  const int64_t a_cols = is_gradient(operands) ? csr->rows : csr->cols, cols = a_cols * heads;
  const wlmi_buffer *made = operands->attention;
  wlm_execute_args *call = &operands->call;
  wlm_status status = WLM_OK;
  if (wlmi_score_is_sum(score)) WLM_TRY(make_sides(operands, a_rows, a_cols, seed + 16));
  if (operands->spec.problem.operation == WLM_ATTENTION_ROWS)
    return make_output(operands, DATT, "datt", sums, 0, operands->spec.problem.n, &call->datt);
  WLM_TRY(make_term(operands, LEFT, rows, seed + 16));
  WLM_TRY(make_term(operands, RIGHT, cols, seed + 16));
  call->left = made[LEFT].memory;
  call->right = made[RIGHT].memory;
  if (!is_gradient(operands)) return make_output(operands, LSE, "lse", sums, 0, heads, &call->lse);
  WLM_TRY(make_term(operands, LSE, rows, seed + 16));
  WLM_TRY(make_term(operands, DELTA, rows, seed + 16));
  call->lse = made[LSE].memory;
  call->delta = made[DELTA].memory;
  WLM_TRY(make_output(operands, DVALUES, "dvalues", sums, 1, heads, &call->dvalues));
  if (score != WLM_SCORE_DOT) status = make_output(operands, DRIGHT, "dright", sums, 0, heads, &call->dright);
done:
  return status;
}

void wlmi_attention_operands_release(wlmi_operands *operands) {
  for (size_t i = 0; i < sizeof operands->attention / sizeof *operands->attention; i++)
    operands->device->ops->release(operands->device, operands->attention[i].memory);
  for (size_t i = 0; i < sizeof operands->terms / sizeof *operands->terms; i++) wlmi_free(operands->terms[i]);
  for (int i = 0; i < 2; i++) wlmi_free(operands->sides_host[i]);
}

/* The result with this name; of one that the call does not write all is NULL. */
static const wlmi_message_reference *reference_of(const wlmi_operands *operands, const char *name,
                                                  const wlmi_message_reference *references) {
  static const wlmi_message_reference none;
  for (int i = 0; i < operands->outputs; i++)
    if (!strcmp(operands->output[i].name, name)) return &references[operands->output[i].result];
  return &none;
}

wlm_status wlmi_attention_operands_reference(const wlmi_operands *operands, const int64_t *row_ids, int64_t row_count,
                                             const int64_t *edge_first, const wlmi_message_reference *references) {
  const wlm_problem *p = &operands->spec.problem;
  const wlmi_attention_terms terms = {.left = operands->terms[LEFT],
                                      .right = operands->terms[RIGHT],
                                      .lse = operands->terms[LSE],
                                      .delta = operands->terms[DELTA],
                                      .order = operands->order,
                                      .q = operands->sides_host[0],
                                      .att = operands->terms[ATT],
                                      .k = operands->sides_host[1],
                                      .edge_first = edge_first};
  const wlmi_message_reference *c = &references[0], *lse = reference_of(operands, "lse", references),
                               *dright = reference_of(operands, "dright", references),
                               *dvalues = reference_of(operands, "dvalues", references),
                               *dk = reference_of(operands, "dk", references),
                               *datt = reference_of(operands, "datt", references);
  wlm_execute_args call = operands->call;
  call.bias = operands->bias_host;
  if (p->operation == WLM_ATTENTION_ROWS)
    return wlmi_reference_attention_rows(&operands->a, p, &call, &terms, operands->b_host, row_ids, row_count, c->value,
                                         c->scale, datt->value, datt->scale);
  if (is_gradient(operands))
    return wlmi_reference_attention_gradient(&operands->a, p, &call, &terms, operands->x_host, operands->b_host,
                                             row_ids, row_count, c->value, c->scale, dright->value, dright->scale,
                                             dvalues->value, dvalues->scale, dk->value, dk->scale);
  return wlmi_reference_attention(&operands->a, p, &call, &terms, operands->b_host, operands->c_old, row_ids, row_count,
                                  c->value, c->scale, lse->value, lse->scale);
}
