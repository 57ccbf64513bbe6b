#include "core/problem/spec.h"

#include <float.h>
#include <string.h>

#include "core/problem/element.h"
#include "core/problem/message.h"
#include "core/problem/operator.h"
#include "core/problem/size.h"
#include "core/problem/structs.h"

static const char *const message_names[] = {"mul", "copy_b", "copy_a", "add", "sub", "rsub", "div", "rdiv", NULL};
static const char *const message_texts[] = {"a*b", "b", "a", "a+b", "b-a", "a-b", "b/a", "a/b"};
static const char *const reduce_names[] = {"sum", "mean", "max", "min", "prod", "custom", NULL};
static const char *const empty_names[] = {"zero", "identity", NULL};
static const char *const type_names[] = {"f32", "f16", "bf16", "f64", NULL};
static const char *const index_names[] = {"i32", "i64", NULL}; /* of a matrix */
static const char *const position_names[] = {"i32", "i64", "i16", NULL};
static const char *const sample_names[] = {"none", "bucket", "fastrand", "fastrand_coprime", NULL};
static const char *const norm_names[] = {"none", "kept", "unbiased", NULL};
static const char *const operation_names[] = {"spmm",    "sddmm",           "attention", "attention_rows",
                                              "message", "argmax_gradient", NULL};
static const char *const order_names[] = {"row-major", "column-major", NULL};
static const char *const score_names[] = {"gat", "edge", "gatv2", "dot", NULL};

static int count_of(const char *const *names) {
  int count = 0;
  while (names[count]) count++;
  return count;
}

static const char *name_of(const char *const *names, int value) {
  return value >= 0 && value < count_of(names) ? names[value] : NULL;
}

static int value_of(const char *const *names, const char *name) {
  for (int i = 0; names[i]; i++)
    if (!strcmp(names[i], name)) return i;
  return -1;
}

const char *wlmi_message_name(wlm_message message) { return name_of(message_names, (int)message); }
const char *wlmi_message_text(wlm_message message) { return message_texts[message]; }
const char *wlmi_reduce_name(wlm_reduce reduce) { return name_of(reduce_names, (int)reduce); }
const char *wlmi_empty_name(wlm_empty empty) { return name_of(empty_names, (int)empty); }
const char *wlmi_type_name(wlm_type type) { return name_of(type_names, (int)type); }
const char *wlmi_index_name(wlm_index index) { return name_of(position_names, (int)index); }
const char *wlmi_sample_name(wlm_sample sample) { return name_of(sample_names, (int)sample); }
const char *wlmi_sample_norm_name(wlm_sample_norm norm) { return name_of(norm_names, (int)norm); }
const char *wlmi_operation_name(wlm_operation operation) { return name_of(operation_names, (int)operation); }
const char *wlmi_score_name(wlm_score score) { return name_of(score_names, (int)score); }
int wlmi_message_from_name(const char *name) { return value_of(message_names, name); }
int wlmi_reduce_from_name(const char *name) { return value_of(reduce_names, name); }
int wlmi_type_from_name(const char *name) { return value_of(type_names, name); }
int wlmi_index_from_name(const char *name) { return value_of(position_names, name); }
int wlmi_operation_from_name(const char *name) { return value_of(operation_names, name); }
int wlmi_score_from_name(const char *name) { return value_of(score_names, name); }
int wlmi_sample_from_name(const char *name) { return value_of(sample_names, name); }
int wlmi_sample_norm_from_name(const char *name) { return value_of(norm_names, name); }

size_t wlmi_type_size(wlm_type type) { return type == WLM_F64 ? 8 : type == WLM_F32 ? 4 : 2; }
size_t wlmi_index_size(wlm_index index) { return index == WLM_I64 ? 8 : index == WLM_I16 ? 2 : 4; }

typedef struct enum_field {
  const char *name;
  int value;
  const char *const *names;
} enum_field;

static wlm_status check_enums(const enum_field *fields, int count) {
  for (const enum_field *f = fields; f < fields + count; f++)
    if (!name_of(f->names, f->value))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s is %d, which is not in its enum", f->name, f->value);
  return WLM_OK;
}

wlm_status wlmi_check_base(const char *name, int64_t base) {
  if (base == 0 || base == 1) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s is %lld, must be 0 or 1", name, (long long)base);
}

wlm_status wlmi_check_types(const wlm_csr *csr) {
  const enum_field fields[] = {
      {"wlm_csr.rowptr_type", (int)csr->rowptr_type, index_names},
      {"wlm_csr.colind_type", (int)csr->colind_type, index_names},
      {"wlm_csr.value_type", (int)csr->value_type, type_names},
  };
  WLM_CHECK(check_enums(fields, sizeof fields / sizeof *fields));
  return wlmi_check_base("wlm_csr.base", csr->base);
}

static wlm_status check_problem_enums(const wlm_problem *p) {
  const enum_field fields[] = {
      {"wlm_problem.operation", (int)p->operation, operation_names},
      {"wlm_problem.score", (int)p->score, score_names},
      {"wlm_problem.message", (int)p->message, message_names},
      {"wlm_problem.reduce", (int)p->reduce, reduce_names},
      {"wlm_problem.empty", (int)p->empty, empty_names},
      {"wlm_problem.dense_type", (int)p->dense_type, type_names},
      {"wlm_problem.argmax_type", (int)p->argmax_type, position_names},
      {"wlm_problem.sampling.sample", (int)p->sampling.sample, sample_names},
      {"wlm_problem.sampling.norm", (int)p->sampling.norm, norm_names},
      {"wlm_problem.b_order", (int)p->b_order, order_names},
      {"wlm_problem.c_order", (int)p->c_order, order_names},
  };
  return check_enums(fields, sizeof fields / sizeof *fields);
}

static wlm_status check_values(const wlm_problem *p, const wlm_csr *csr) {
  WLM_CHECK(check_problem_enums(p));
  WLM_CHECK(wlmi_check_types(csr));
  if (p->n == -1)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_problem.n is not given; set it to the columns of B and C");
  if (!wlmi_is_size(p->n))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_problem.n is %lld, must be 0 to " WLMI_MOST_SIZE_TEXT,
                     (long long)p->n);
  if (p->sampling.sample != WLM_SAMPLE_NONE && (p->sampling.width < 8 || p->sampling.width > 2304))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_problem.sampling.width is %lld, must be 8 to 2304",
                     (long long)p->sampling.width);
  if (p->sampling.sample == WLM_SAMPLE_NONE && p->sampling.norm != WLM_NORM_NONE)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_problem.sampling.norm is %s, but nothing is sampled",
                     wlmi_sample_norm_name(p->sampling.norm));
  if (p->heads < 1 || p->n % p->heads)
    return wlmi_fail(
        WLM_ERR_INVALID_ARGUMENT,
        "wlm_problem.heads is %lld, must be 1 or more and divide n = %lld: each head has n / heads columns",
        (long long)p->heads, (long long)p->n);
  if (p->policy.expected_calls < 1)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_problem.policy.expected_calls is %lld, must be 1 or more",
                     (long long)p->policy.expected_calls);
  if ((p->reduce == WLM_CUSTOM) != (p->custom != NULL))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     p->custom ? "wlm_problem.custom is given, but reduce is not WLM_CUSTOM"
                               : "wlm_problem.reduce is WLM_CUSTOM, but custom is NULL; give 'init=0;reduce=acc+x'");
  if (!wlmi_is_size(p->batch))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_problem.batch is %lld, must be 0 to " WLMI_MOST_SIZE_TEXT,
                     (long long)p->batch);
  if (p->operation == WLM_SDDMM && p->n == 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_problem.n is 0, and an sddmm sums over n columns");
  return WLM_OK;
}

/* Why no kernel serves this gradient: it is not implemented, or two fields exclude each other. NULL = it is served. */
static const char *refusal_of_gradient(const wlm_problem *p) {
  if (p->reduce == WLM_MAX || p->reduce == WLM_MIN)
    return "wlm_problem: sddmm with a reduce of max or min: use WLM_ARGMAX_GRADIENT, see "
           "wlm_execute_args.argmax_db";
  if (p->reduce != WLM_SUM && p->reduce != WLM_MEAN)
    return "wlm_problem: sddmm supports only the reductions sum and mean";
  if (p->transpose) return "wlm_problem: sddmm with transpose is not supported; the sddmm of A has the same edges";
  if (p->epilogue.bias || p->epilogue.activation)
    return "wlm_problem: sddmm with an epilogue is not supported; pass the gradient before the epilogue as x";
  return NULL;
}

int wlmi_is_attention(const wlm_problem *problem) {
  return problem->operation == WLM_ATTENTION || problem->operation == WLM_ATTENTION_ROWS;
}

int wlmi_score_is_sum(wlm_score score) { return score == WLM_SCORE_GATV2 || score == WLM_SCORE_DOT; }

/* Of WLM_ATTENTION_ROWS. */
static const char *refusal_of_rows(const wlm_problem *p) {
  if (!wlmi_score_is_sum(p->score))
    return "wlm_problem: attention_rows has gradients of WLM_SCORE_GATV2 and WLM_SCORE_DOT; other scores have no such "
           "sums";
  if (p->transpose || p->epilogue.bias || p->epilogue.activation)
    return "wlm_problem: attention_rows has no transpose or epilogue";
  return NULL;
}

static const char *refusal_of_attention(const wlm_problem *p, const wlm_csr *csr) {
  if (p->score == WLM_SCORE_EDGE && !wlmi_has_values(csr))
    return "wlm_problem.score is WLM_SCORE_EDGE, whose scores are the values of A, and A has none";
  if (p->message != WLM_MUL || p->reduce != WLM_SUM)
    return "wlm_problem: attention with a message or reduce of its own has no meaning; leave them at WLM_MUL and "
           "WLM_SUM";
  if (p->sampling.sample != WLM_SAMPLE_NONE) return "wlm_problem: attention with sampling is not built yet";
  if (p->transpose && (p->epilogue.bias || p->epilogue.activation))
    return "wlm_problem: the gradient of attention has no epilogue; give dC as it is before it";
  return p->operation == WLM_ATTENTION_ROWS ? refusal_of_rows(p) : NULL;
}

static const char *refusal_of_sample(const wlm_problem *p) {
  if (p->sampling.norm == WLM_NORM_NONE || p->reduce == WLM_SUM) return NULL;
  if (p->reduce == WLM_MEAN)
    return "wlm_problem.sampling.norm with a mean, which divides by the edges kept by itself; leave it at "
           "WLM_NORM_NONE";
  return "wlm_problem.sampling.norm with a reduce other than sum has no meaning; leave it at WLM_NORM_NONE";
}

static const char *refusal_of_batch(const wlm_problem *p) {
  if (p->operation == WLM_SPMM || p->operation == WLM_SDDMM || p->operation == WLM_ARGMAX_GRADIENT) return NULL;
  return "wlm_problem.batch is for WLM_SPMM, WLM_SDDMM and WLM_ARGMAX_GRADIENT; call other operations once for each of "
         "a batch, with batch = 1";
}

static const char *refusal(const wlm_problem *p, const wlm_csr *csr) {
  const int is_half = p->dense_type == WLM_F16 || p->dense_type == WLM_BF16;
  if (wlmi_has_values(csr) && csr->value_type != p->dense_type && !(csr->value_type == WLM_F32 && is_half))
    return "wlm_csr: value_type other than dense_type (or f32 beside f16 and bf16) is not supported";
  const int is_extreme = p->reduce == WLM_MAX || p->reduce == WLM_MIN;
  if (p->operation == WLM_ARGMAX_GRADIENT && !is_extreme)
    return "wlm_problem: argmax_gradient needs the reduction max or min of its product";
  if (p->want_argmax && !is_extreme && p->operation != WLM_MESSAGE)
    return "wlm_problem: want_argmax needs the reduction max or min; other results come from no one edge";
  if (p->operation == WLM_ARGMAX_GRADIENT && (p->epilogue.bias || p->epilogue.activation))
    return "wlm_problem: argmax_gradient with an epilogue is not supported; pass the gradient before the epilogue as x";
  if (p->operation == WLM_MESSAGE && p->reduce != WLM_CUSTOM)
    return "wlm_problem: a message needs its text: reduce = WLM_CUSTOM and custom";
  if ((p->b_order || p->c_order) && (wlmi_is_attention(p) || p->operation == WLM_MESSAGE))
    return "wlm_problem: column-major arrays of attention and of messages are not supported; leave b_order and c_order "
           "at WLM_ROW_MAJOR";
  const char *why = p->batch != 1 ? refusal_of_batch(p) : NULL;
  if (!why)
    why = p->operation == WLM_SDDMM ? refusal_of_gradient(p)
          : wlmi_is_attention(p)    ? refusal_of_attention(p, csr)
                                    : NULL;
  return why || p->sampling.sample == WLM_SAMPLE_NONE || p->operation == WLM_MESSAGE ? why : refusal_of_sample(p);
}

/* Refuses numbers that the accumulator's type cannot hold. */
static wlm_status check_numbers(const char *part, const wlmi_expression *expression, wlm_type type) {
  const double largest = wlmi_expression_largest(expression);
  if (wlmi_accumulator_type(type) == WLM_F64 || largest <= (double)FLT_MAX) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                   "op:%s: %g is beyond the range of float, the accumulator type of %s; infinity is written inf", part,
                   largest, wlmi_type_name(type));
}

static wlm_status keep_normal(const wlmi_text *text, char normal[WLMI_CUSTOM_TEXT]) {
  if (text->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "wlm_problem.custom");
  if (text->size >= WLMI_CUSTOM_TEXT)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_problem.custom has %zu characters, at most %d are allowed",
                     text->size, WLMI_CUSTOM_TEXT - 1);
  memcpy(normal, text->data, text->size + 1);
  return WLM_OK;
}

/* Sets *has_positions where it reads positions. */
static wlm_status normalise_message(const wlm_problem *p, wlmi_spec *spec, int *has_positions) {
  wlmi_message message;
  wlmi_text text = {0};
  const char *other = NULL; /* a reduction that is no sum */
  int extremes = 0, of_edges = 0;
  wlm_status status;
  WLM_TRY(wlmi_message_parse(p->custom, &message));
  for (int r = 0; r < message.results; r++) {
    const wlmi_message_result *result = &message.result[r];
    WLM_TRY(check_numbers(wlmi_result_kind_names[result->kind], &result->value, p->dense_type));
    extremes += wlmi_result_is_extreme(result->kind);
    of_edges += !wlmi_result_is_of_row(result->kind);
    if (wlmi_result_is_of_row(result->kind) && result->kind != WLMI_RESULT_SUM)
      other = wlmi_result_kind_names[result->kind];
  }
  for (int i = 0; i < message.sums; i++) WLM_TRY(check_numbers("edge_sum", &message.sum[i], p->dense_type));
  if (p->want_argmax && !extremes)
    WLM_TRY(wlmi_fail(WLM_ERR_UNSUPPORTED, "wlm_problem: want_argmax needs a result max or min"));
  if (of_edges && (p->epilogue.bias || p->epilogue.activation))
    WLM_TRY(wlmi_fail(WLM_ERR_UNSUPPORTED, "wlm_problem: a message with an epilogue has results of rows alone"));
  if (other && p->sampling.norm != WLM_NORM_NONE)
    WLM_TRY(wlmi_fail(WLM_ERR_UNSUPPORTED,
                      "wlm_problem.sampling.norm with the result %s has no meaning; leave it at WLM_NORM_NONE", other));
  for (int i = 0; i < message.operands; i++) *has_positions |= message.operand[i].width == WLM_WIDTH_WINS;
  spec->has_edge_lines = wlmi_message_has_edge_lines(&message);
  wlmi_message_print(&message, &text);
  status = keep_normal(&text, spec->custom);
done:
  wlmi_message_release(&message);
  wlmi_text_release(&text);
  return status;
}

/* Adds the problem's message if the operator has none, so that equal operators get one text. */
static wlm_status normalise_custom(const wlm_problem *p, char normal[WLMI_CUSTOM_TEXT]) {
  wlmi_operator op;
  wlmi_text text = {0};
  wlm_status status;
  WLM_TRY(wlmi_operator_parse(p->custom, &op));
  if (!wlmi_operator_part(&op, WLMI_PART_MESSAGE))
    WLM_TRY(wlmi_operator_parse_part(WLMI_PART_MESSAGE, wlmi_message_text(p->message), &op));
  for (int i = 0; i < WLMI_PARTS; i++) WLM_TRY(check_numbers(wlmi_part_names[i], &op.parts[i], p->dense_type));
  wlmi_operator_print(&op, &text);
  status = keep_normal(&text, normal);
done:
  wlmi_operator_release(&op);
  wlmi_text_release(&text);
  return status;
}

static wlm_status check_activation(const wlm_problem *p) {
  wlmi_expression activation;
  WLM_CHECK(wlmi_activation_parse(p->epilogue.activation, &activation));
  wlm_status status = check_numbers("activation", &activation, p->dense_type);
  wlmi_expression_release(&activation);
  return status;
}

static wlm_status check_positions(const wlm_problem *p, const wlm_csr *csr) {
  const int is_product = p->operation == WLM_SPMM || p->operation == WLM_ARGMAX_GRADIENT;
  if (p->argmax_type == WLM_I16 && (p->transpose || !is_product))
    return wlmi_fail(WLM_ERR_UNSUPPORTED,
                     "wlm_problem.argmax_type is i16, which is for products without transpose; use i32 or i64");
  if (p->argmax_type != WLM_I32 || csr->nnz <= INT32_MAX) return WLM_OK;
  return wlmi_fail(WLM_ERR_OVERFLOW, "wlm_problem.argmax_type is i32, and %lld non-zeros have more positions; use i64",
                   (long long)csr->nnz);
}

/* The positions say which edges there are and what was done with them. */
static void normalise_gradient(wlm_problem *p) {
  p->operation = WLM_ARGMAX_GRADIENT;
  p->reduce = WLM_MAX;
  p->empty = WLM_EMPTY_ZERO;
  p->want_argmax = 1;
  p->sampling = (wlm_sampling){WLM_SAMPLE_NONE, WLM_NORM_NONE, 0};
  p->epilogue = (wlm_epilogue){0, NULL};
}

wlmi_spec wlmi_spec_gradient(const wlmi_spec *product) {
  wlmi_spec gradient = *product;
  gradient.is_batched = gradient.has_steps = 0; /* its kernels clear dvalues in the place of the workspace */
  normalise_gradient(&gradient.problem);
  return gradient;
}

wlm_status wlmi_spec_make(const wlm_problem *given, const wlm_csr *given_csr, wlmi_spec *spec) {
  wlm_problem problem_copy;
  wlm_csr csr_copy;
  const void *seen_problem, *seen_csr;
  WLM_CHECK(wlmi_struct_see(&wlmi_struct_problem, given, &problem_copy, &seen_problem));
  WLM_CHECK(wlmi_struct_see(&wlmi_struct_csr, given_csr, &csr_copy, &seen_csr));
  const wlm_problem *problem = seen_problem;
  const wlm_csr *csr = seen_csr;
  WLM_CHECK(check_values(problem, csr));
  const char *why = refusal(problem, csr);
  const int is_gradient = problem->operation == WLM_ARGMAX_GRADIENT;
  int has_positions = problem->want_argmax || is_gradient; /* written or read */
  if (why) return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s", why);
  *spec = (wlmi_spec){*problem,
                      csr->rowptr_type,
                      csr->colind_type,
                      wlmi_has_values(csr) ? csr->value_type : problem->dense_type,
                      wlmi_has_values(csr),
                      (int)csr->base,
                      problem->batch != 1 && !is_gradient,
                      (problem->b_order || problem->c_order) && problem->operation == WLM_SPMM && problem->n > 1,
                      0,
                      ""};
  if (problem->custom) {
    spec->problem.empty = WLM_EMPTY_ZERO; /* an empty row gives init in either case */
    WLM_CHECK(problem->operation == WLM_MESSAGE ? normalise_message(problem, spec, &has_positions)
                                                : normalise_custom(problem, spec->custom));
  }
  if (problem->epilogue.activation) WLM_CHECK(check_activation(problem));
  if (problem->operation != WLM_SPMM) spec->problem.empty = WLM_EMPTY_ZERO; /* an empty row has no edge */
  if (problem->operation == WLM_MESSAGE) spec->problem.message = WLM_MUL;   /* its text says all */
  if (!wlmi_is_attention(problem)) spec->problem.score = WLM_SCORE_GAT;
  spec->problem.dropout = wlmi_is_attention(problem) && problem->dropout;
  /* Without values every head has the value 1, so heads make no difference to the product. */
  if (!spec->has_values && problem->operation == WLM_SPMM && !problem->want_argmax) spec->problem.heads = 1;
  if (has_positions) WLM_CHECK(check_positions(problem, csr));
  spec->problem.want_argmax = problem->want_argmax != 0;
  if (!has_positions) spec->problem.argmax_type = WLM_I32;
  spec->problem.transpose = problem->transpose != 0;
  spec->problem.epilogue.bias = problem->epilogue.bias != 0;
  spec->problem.policy.deterministic = problem->policy.deterministic != 0;
  if (is_gradient) normalise_gradient(&spec->problem);
  return WLM_OK;
}

wlm_status wlmi_spec_of_types(const wlm_csr *csr, wlmi_spec *spec) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_csr pattern = *csr;
  problem.n = 1;
  pattern.values = NULL;
  pattern.has_values = 0;
  return wlmi_spec_make(&problem, &pattern, spec);
}

void wlmi_spec_key(const wlmi_spec *spec, char key[WLMI_SPEC_KEY]) {
  const wlm_problem *p = &spec->problem;
  const int own = *spec->custom != 0; /* a user-defined operator contains its message */
  int used =
      snprintf(key, WLMI_SPEC_KEY, "op=%s%s%s%s%s%s,dense=%s,rowptr=%s,colind=%s,values=%s,sample=%s",
               own ? "" : wlmi_message_name(p->message), own ? "" : ".", wlmi_reduce_name(p->reduce), own ? "{" : "",
               spec->custom, own ? "}" : "", wlmi_type_name(p->dense_type), wlmi_index_name(spec->rowptr_type),
               wlmi_index_name(spec->colind_type), spec->has_values ? wlmi_type_name(spec->value_type) : "none",
               wlmi_sample_name(p->sampling.sample));
  if (p->sampling.sample != WLM_SAMPLE_NONE)
    used += snprintf(key + used, WLMI_SPEC_KEY - (size_t)used, ":%lld:%s", (long long)p->sampling.width,
                     wlmi_sample_norm_name(p->sampling.norm));
  if (p->empty != WLM_EMPTY_ZERO)
    used += snprintf(key + used, WLMI_SPEC_KEY - (size_t)used, ",empty=%s", wlmi_empty_name(p->empty));
  if (p->operation != WLM_SPMM)
    used += snprintf(key + used, WLMI_SPEC_KEY - (size_t)used, ",operation=%s", wlmi_operation_name(p->operation));
  if (p->score != WLM_SCORE_GAT)
    used += snprintf(key + used, WLMI_SPEC_KEY - (size_t)used, ",score=%s", wlmi_score_name(p->score));
  if (p->dropout) used += snprintf(key + used, WLMI_SPEC_KEY - (size_t)used, ",dropout=1");
  if (p->want_argmax)
    used += snprintf(key + used, WLMI_SPEC_KEY - (size_t)used, ",arg=%s", wlmi_index_name(p->argmax_type));
  else if (p->argmax_type == WLM_I64) /* positions that a message reads */
    used += snprintf(key + used, WLMI_SPEC_KEY - (size_t)used, ",wins=i64");
  if (p->transpose) used += snprintf(key + used, WLMI_SPEC_KEY - (size_t)used, ",transpose=1");
  if (p->heads > 1) snprintf(key + used, WLMI_SPEC_KEY - (size_t)used, ",heads=%lld", (long long)p->heads);
}
