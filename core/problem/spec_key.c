/* A key consists of NAME=VALUE parts, separated by commas. Only the first, the operator, may contain commas; it ends at
 * ",dense=", behind its braces if it has them. The reader is lenient: at the end the spec's key is written and
 * compared, which finds every error. */
#include "core/problem/spec_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 64 };

/* "mul.sum" or "custom{message=...}". 0 where it is neither. */
static int read_operator(char *text, wlm_problem *problem) {
  char *brace = strchr(text, '{'), *end = text + strlen(text);
  if (brace) {
    if (end[-1] != '}') return 0;
    end[-1] = 0;
    *brace = 0;
    problem->custom = brace + 1;
  }
  char *dot = strchr(text, '.'), *reduce = dot ? dot + 1 : text;
  if (dot) *dot = 0;
  const int message_value = dot ? wlmi_message_from_name(text) : WLM_MUL, reduce_value = wlmi_reduce_from_name(reduce);
  problem->message = (wlm_message)message_value;
  problem->reduce = (wlm_reduce)reduce_value;
  return message_value >= 0 && reduce_value >= 0;
}

/* "none" or "fastrand:64:kept". */
static int read_sampling(char *text, wlm_problem *problem) {
  char *width = strchr(text, ':'), *norm = width ? strchr(width + 1, ':') : NULL;
  if (width) *width = 0;
  if (norm) *norm = 0;
  const int sample = wlmi_sample_from_name(text), norm_value = norm ? wlmi_sample_norm_from_name(norm + 1) : 0;
  problem->sampling.sample = (wlm_sample)sample;
  problem->sampling.norm = (wlm_sample_norm)norm_value;
  problem->sampling.width = width ? atoll(width + 1) : 0;
  return sample >= 0 && norm_value >= 0;
}

/* Reads one of the parts behind the operator. */
static int read_part(const char *name, char *value, wlm_problem *problem, wlm_csr *csr) {
  const int type = wlmi_type_from_name(value);
  const int named = wlmi_index_from_name(value);
  const wlm_index index = named < 0 ? WLM_I32 : (wlm_index)named;
  if (!strcmp(name, "dense"))
    problem->dense_type = (wlm_type)type;
  else if (!strcmp(name, "rowptr"))
    csr->rowptr_type = index;
  else if (!strcmp(name, "colind"))
    csr->colind_type = index;
  else if (!strcmp(name, "values"))
    csr->value_type = type < 0 ? WLM_F32 : (wlm_type)type;
  else if (!strcmp(name, "sample"))
    return read_sampling(value, problem);
  else if (!strcmp(name, "empty"))
    problem->empty = strcmp(value, wlmi_empty_name(WLM_EMPTY_IDENTITY)) ? WLM_EMPTY_ZERO : WLM_EMPTY_IDENTITY;
  else if (!strcmp(name, "operation"))
    problem->operation = (wlm_operation)wlmi_operation_from_name(value);
  else if (!strcmp(name, "score"))
    problem->score = (wlm_score)wlmi_score_from_name(value);
  else if (!strcmp(name, "dropout"))
    problem->dropout = 1;
  else if (!strcmp(name, "arg"))
    problem->want_argmax = 1, problem->argmax_type = index;
  else if (!strcmp(name, "wins"))
    problem->argmax_type = index;
  else if (!strcmp(name, "transpose"))
    problem->transpose = 1;
  else if (!strcmp(name, "heads"))
    problem->heads = atoll(value);
  return strcmp(name, "dense") || type >= 0;
}

static int read_parts(const char *at, wlm_problem *problem, wlm_csr *csr) {
  while (*at) {
    char name[PART] = "", value[PART] = "";
    int used = 0;
    if (sscanf(at, ",%63[a-z_]=%63[^,]%n", name, value, &used) != 2) return 0;
    if (!strcmp(name, "values") && strcmp(value, "none")) csr->has_values = 1;
    if (!read_part(name, value, problem, csr)) return 0;
    at += used;
  }
  return 1;
}

/* A message may contain ",dense=", but no brace. */
const char *wlmi_key_types(const char *key) {
  const char *end = strrchr(key, '}');
  return strstr(end ? end : key, ",dense=");
}

wlm_status wlmi_spec_from_key(const char *key, int64_t n, wlmi_spec *spec) {
  char operator_text[WLMI_SPEC_KEY], again[WLMI_SPEC_KEY];
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_csr csr = WLM_CSR_INIT;
  const char *rest = wlmi_key_types(key);
  problem.n = n;
  int fine = rest && !strncmp(key, "op=", 3) && (size_t)(rest - key) < sizeof operator_text;
  if (fine) {
    snprintf(operator_text, sizeof operator_text, "%.*s", (int)(rest - key - 3), key + 3);
    fine = read_operator(operator_text, &problem) && read_parts(rest, &problem, &csr);
  }
  const wlm_status status = fine ? wlmi_spec_make(&problem, &csr, spec) : WLM_ERR_UNSUPPORTED;
  if (status == WLM_ERR_OUT_OF_MEMORY) return status;
  fine = status == WLM_OK;
  if (fine) {
    spec->problem.custom = NULL; /* its text stands in the spec */
    wlmi_spec_key(spec, again);
    fine = !strcmp(key, again);
  }
  return fine ? WLM_OK : wlmi_fail(WLM_ERR_UNSUPPORTED, "the problem '%s' is of another version", key);
}

/* ---- ids within a process ---- */

/* No padding: it is hashed as bytes. */
typedef struct problem_id {
  int64_t n, heads, sample_width, expected_calls, batch;
  wlmi_hash custom, activation;
  int32_t operation, message, reduce, empty, dense_type, transpose, want_argmax, argmax_type, bias, sample, norm,
      deterministic, rowptr_type, colind_type, value_type, has_values, score, dropout, base, orders;
} problem_id;

static wlmi_hash hash_text(const char *text) { return text ? wlmi_hash_text(text) : (wlmi_hash){0, 0}; }

wlmi_hash wlmi_problem_id(const wlm_problem *p, const wlm_csr *csr) {
  const problem_id id = {
      .n = p->n,
      .heads = p->heads,
      .sample_width = p->sampling.width,
      .expected_calls = p->policy.expected_calls,
      .batch = p->batch,
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
      .base = (int32_t)csr->base,
      .orders = (int32_t)p->b_order + 2 * (int32_t)p->c_order,
  };
  return wlmi_hash_bytes(&id, sizeof id);
}

wlmi_hash wlmi_spec_id(const wlmi_spec *spec) {
  wlm_problem problem = spec->problem;
  wlm_csr types = WLM_CSR_INIT;
  problem.policy.expected_calls = 1;
  problem.b_order = WLM_ROW_MAJOR; /* kernels take both arrays in any order, and a batch of any size */
  problem.c_order = spec->has_steps ? WLM_COLUMN_MAJOR : WLM_ROW_MAJOR;
  problem.batch = spec->is_batched ? 2 : 1;
  problem.custom = *spec->custom ? spec->custom : NULL;
  types.rowptr_type = spec->rowptr_type;
  types.colind_type = spec->colind_type;
  types.value_type = spec->value_type;
  types.has_values = spec->has_values;
  types.base = spec->base;
  return wlmi_problem_id(&problem, &types);
}
