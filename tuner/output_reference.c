#include "tuner/output_reference.h"

#include "core/base/memory.h"
#include "core/reference/attention.h"
#include "core/reference/gradient.h"

wlm_status wlmi_references_make(const wlmi_operands *operands, int64_t rows, int64_t edges,
                                wlmi_references references) {
  for (int i = 0; i < operands->outputs; i++) {
    const wlmi_call_array *output = &operands->output[i];
    wlmi_reference_result *to = &references[output->result];
    const int64_t count = (output->of_edges ? edges : rows) * output->width; /* bounded by the caller */
    if (output->is_positions) {
      WLM_CHECK(wlmi_alloc_array(count, sizeof *to->positions, "positions", (void **)&to->positions));
      continue;
    }
    WLM_CHECK(wlmi_alloc_array(count, sizeof *to->value, "reference", (void **)&to->value));
    WLM_CHECK(wlmi_alloc_array(count, sizeof *to->scale, "scale of the reference", (void **)&to->scale));
  }
  return WLM_OK;
}

void wlmi_references_release(wlmi_references references) {
  for (int r = 0; r < WLM_MAX_RESULTS; r++) {
    wlmi_free(references[r].value);
    wlmi_free(references[r].scale);
    wlmi_free(references[r].positions);
    references[r] = (wlmi_reference_result){0};
  }
}

/* Of an SDDMM. */
static wlm_status make_edges(const wlmi_operands *o, const int64_t *rows, int64_t count, const int64_t *edge_first,
                             const wlmi_reference_result *dvalues) {
  const int64_t heads = o->spec.problem.heads;
  int64_t *values = NULL, made = 0;
  WLM_CHECK(wlmi_alloc_array(edge_first[count] * heads, sizeof *values, "values to check", (void **)&values));
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < (edge_first[i + 1] - edge_first[i]) * heads; k++)
      values[made++] = o->a.rowptr[rows[i]] * heads + k;
  wlm_status status = wlmi_reference_edges(&o->a, &o->spec.problem, &o->host, values, made, dvalues);
  wlmi_free(values);
  return status;
}

wlmi_message_walk wlmi_operands_walk(const wlmi_operands *o) {
  return (wlmi_message_walk){.a = &o->a,
                             .bias = o->host.bias,
                             .problem = &o->spec.problem,
                             .message = &o->message->message,
                             .call = &o->message->host,
                             .order = o->order,
                             .rowptr = o->message->rowptr,
                             .seed = o->host.seed};
}

wlm_status wlmi_output_reference(const wlmi_operands *o, const int64_t *row_ids, int64_t row_count,
                                 const int64_t *edge_first, const wlmi_reference_result *references) {
  const wlmi_reference_result *c = &references[0];
  wlm_problem problem = o->spec.problem;
  problem.transpose = 0; /* a is op(A) */
  if (o->message) {
    const wlmi_message_walk walk = wlmi_operands_walk(o);
    return wlmi_reference_message(&walk, row_ids, row_count, edge_first, references);
  }
  if (wlmi_is_attention(&problem)) {
    const wlmi_attention_walk walk = {&o->a, &o->spec.problem, &o->host, o->order};
    return wlmi_reference_attention(&walk, row_ids, row_count, edge_first, references);
  }
  if (problem.operation == WLM_SDDMM) return make_edges(o, row_ids, row_count, edge_first, c);
  WLM_CHECK(wlmi_reference_rows(&o->a, &problem, &o->host, row_ids, row_count, c));
  for (int64_t i = 0; c->positions && o->order && i < row_count * problem.n; i++)
    if (c->positions[i] >= 0) c->positions[i] = o->order[c->positions[i]]; /* with transpose those in A itself */
  return WLM_OK;
}
