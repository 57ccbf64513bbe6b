#include "tuner/output_reference.h"

#include "core/base/memory.h"
#include "core/reference/gradient.h"
#include "core/reference/reference.h"
#include "tuner/attention_operands.h"
#include "tuner/message_operands.h"

wlm_status wlmi_references_make(const wlmi_operands *operands, int64_t rows, int64_t edges,
                                wlmi_references references) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < operands->outputs; i++) {
    const wlmi_output *output = &operands->output[i];
    wlmi_message_reference *to = &references[output->result];
    const int64_t count = (output->of_edges ? edges : rows) * output->width; /* bounded by the caller */
    if (output->is_positions) {
      WLM_TRY(wlmi_alloc_array(count, sizeof *to->positions, "positions", (void **)&to->positions));
      continue;
    }
    WLM_TRY(wlmi_alloc_array(count, sizeof *to->value, "reference", (void **)&to->value));
    WLM_TRY(wlmi_alloc_array(count, sizeof *to->scale, "scale of the reference", (void **)&to->scale));
  }
done:
  return status;
}

void wlmi_references_release(wlmi_references references) {
  for (int r = 0; r < WLM_MAX_RESULTS; r++) {
    wlmi_free(references[r].value);
    wlmi_free(references[r].scale);
    wlmi_free(references[r].positions);
    references[r] = (wlmi_message_reference){0};
  }
}

/* With transpose they are positions in A itself. */
static wlm_status make_positions(const wlmi_operands *o, const int64_t *rows, int64_t count, int64_t *positions) {
  if (!positions) return WLM_OK;
  const wlm_status status =
      wlmi_reference_positions(&o->a, &o->spec.problem, &o->call, o->b_host, rows, count, positions);
  for (int64_t i = 0; o->order && i < count * o->result_columns; i++)
    if (positions[i] >= 0) positions[i] = o->order[positions[i]];
  return status;
}

wlm_status wlmi_output_reference(const wlmi_operands *o, const int64_t *row_ids, int64_t row_count,
                                 const int64_t *edge_first, const wlmi_message_reference *references) {
  const wlmi_message_reference *c = &references[0];
  wlm_problem problem = o->spec.problem;
  wlm_execute_args call = o->call;
  call.bias = o->bias_host;
  problem.transpose = 0; /* a is op(A) */
  if (o->message) {
    const wlmi_message_walk walk = wlmi_message_operands_walk(o);
    return wlmi_reference_message(&walk, row_ids, row_count, edge_first, references);
  }
  if (wlmi_is_attention(&problem))
    return wlmi_attention_operands_reference(o, row_ids, row_count, edge_first, references);
  if (problem.operation == WLM_SDDMM)
    return wlmi_reference_edges(&o->a, &problem, &call, o->x_host, o->b_host, o->c_old, row_ids, row_count, c->value,
                                c->scale);
  const wlm_status status =
      wlmi_reference_rows(&o->a, &problem, &call, o->b_host, o->c_old, row_ids, row_count, c->value, c->scale);
  return status == WLM_OK ? make_positions(o, row_ids, row_count, c->positions) : status;
}
