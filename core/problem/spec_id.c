#include "core/problem/spec_id.h"

#include <string.h>

/* No padding: it is hashed as bytes. */
typedef struct problem_id {
  int64_t n, heads, sample_width, expected_calls;
  wlmi_hash custom, activation;
  int32_t operation, message, reduce, empty, dense_type, transpose, want_argmax, argmax_type, bias, sample, norm,
      deterministic, rowptr_type, colind_type, value_type, has_values, score, dropout;
} problem_id;

static wlmi_hash hash_text(const char *text) { return text ? wlmi_hash_bytes(text, strlen(text)) : (wlmi_hash){0, 0}; }

wlmi_hash wlmi_problem_id(const wlm_problem *p, const wlm_csr *csr) {
  const problem_id id = {
      .n = p->n,
      .heads = p->heads,
      .sample_width = p->sampling.width,
      .expected_calls = p->policy.expected_calls,
      .custom = hash_text(p->custom),
      .activation = hash_text(p->epilogue.activation),
      .operation = (int32_t)p->operation,
      .message = (int32_t)p->message,
      .reduce = (int32_t)p->reduce,
      .empty = (int32_t)p->empty,
      .dense_type = (int32_t)p->dense_type,
      .transpose = p->transpose != 0,
      .want_argmax = p->want_argmax != 0,
      .argmax_type = (int32_t)p->argmax_type,
      .bias = p->epilogue.bias != 0,
      .sample = (int32_t)p->sampling.sample,
      .norm = (int32_t)p->sampling.norm,
      .deterministic = p->policy.deterministic != 0,
      .rowptr_type = (int32_t)csr->rowptr_type,
      .colind_type = (int32_t)csr->colind_type,
      .value_type = wlmi_has_values(csr) ? (int32_t)csr->value_type : -1,
      .has_values = wlmi_has_values(csr),
      .score = (int32_t)p->score,
      .dropout = p->dropout != 0,
  };
  return wlmi_hash_bytes(&id, sizeof id);
}

wlmi_hash wlmi_spec_id(const wlmi_spec *spec) {
  wlm_problem problem = spec->problem;
  wlm_csr types = WLM_CSR_INIT;
  problem.policy.expected_calls = 1;
  problem.custom = *spec->custom ? spec->custom : NULL;
  types.rowptr_type = spec->rowptr_type;
  types.colind_type = spec->colind_type;
  types.value_type = spec->value_type;
  types.has_values = spec->has_values;
  return wlmi_problem_id(&problem, &types);
}
