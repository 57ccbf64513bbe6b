#include "support/whole_check.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/synth/input.h"
#include "support/defaults.h"
#include "support/emit_fixture.h"
#include "support/own.h"
#include "support/verified.h"
#include "tuner/upload.h"
#include "tuner/whole_check.h"

enum { N = 8, HEADS = 2 };
static const char input[] = "synth:rows=90,cols=70,d=10,cv=1";

static wlm_context *context;
static wlmi_csr_host csr;

int whole_check_begin(const char *device) {
  wlm_context_options options = CONTEXT_OPTIONS(.device = device, .database = "", .system_database = "");
  if (wlm_context_create(&options, &context) != WLM_OK || wlmi_input_read(input, &csr) != WLM_OK) return 1;
  if (!csr.values) csr.values = wlmi_alloc((size_t)csr.nnz * sizeof *csr.values);
  for (int64_t p = 0; csr.values && p < csr.nnz; p++) csr.values[p] = 0.5f + (float)(p * 37 % 101) / 100;
  return !csr.values;
}

void whole_check_end(void) {
  wlmi_csr_host_release(&csr);
  wlm_context_destroy(context);
}

static const struct {
  const char *outputs; /* in the order of the table */
  wlm_operation operation;
  wlm_score score;
  wlm_message message;
  wlm_reduce reduce;
  const char *custom;
  int64_t heads;
  int transpose, argmax, bias, padding;
  wlm_type type;
  double beta;
  wlm_sample sample;
} cases[] = {
    {.outputs = "c", .beta = -0.5, .padding = 1},
    {.outputs = "c", .message = WLM_COPY_B, .reduce = WLM_MEAN, .transpose = 1, .type = WLM_F16},
    {.outputs = "c", .message = WLM_DIV, .sample = WLM_SAMPLE_FASTRAND},
    {.outputs = "c", .message = WLM_ADD, .reduce = WLM_MAX, .beta = 0.5, .padding = 2},
    {.outputs = "c", .reduce = WLM_PROD, .type = WLM_F64, .transpose = 1},
    {.outputs = "c", .bias = 1, .heads = HEADS, .type = WLM_BF16},
    {.outputs = "c", .bias = 1, .sample = WLM_SAMPLE_BUCKET, .transpose = 1},
    {.outputs = "c argmax", .reduce = WLM_MAX, .argmax = 1, .padding = 1},
    {.outputs = "c argmax", .message = WLM_ADD, .reduce = WLM_MIN, .argmax = 1, .transpose = 1},
    {.outputs = "dvalues", .operation = WLM_SDDMM, .heads = HEADS, .beta = -0.5},
    {.outputs = "dvalues", .operation = WLM_SDDMM, .type = WLM_F16},
    {.outputs = "c softmax", .operation = WLM_ATTENTION, .heads = HEADS, .padding = 3},
    {.outputs = "c softmax", .operation = WLM_ATTENTION, .score = WLM_SCORE_GATV2, .bias = 1, .beta = 0.5},
    {.outputs = "c softmax", .operation = WLM_ATTENTION, .score = WLM_SCORE_DOT, .type = WLM_BF16},
    {.outputs = "db dscores dright", .operation = WLM_ATTENTION, .heads = HEADS, .transpose = 1, .padding = 1},
    {.outputs = "db dscores dright", .operation = WLM_ATTENTION, .score = WLM_SCORE_GATV2, .transpose = 1},
    {.outputs = "db dk dscores", .operation = WLM_ATTENTION, .score = WLM_SCORE_DOT, .heads = HEADS, .transpose = 1},
    {.outputs = "c datt", .operation = WLM_ATTENTION_ROWS, .score = WLM_SCORE_GATV2, .heads = HEADS},
    {.outputs = "c", .operation = WLM_ATTENTION_ROWS, .score = WLM_SCORE_DOT},
    {.outputs = "results[0] results[1] results[2] results[3] positions[3]",
     .custom = "edge=x*b;sum=b*a;edge_sum=x*b;max=a*b",
     .argmax = 1,
     .heads = HEADS,
     .padding = 2},
    {.outputs = "results[0] positions[0] results[1] results[2]",
     .custom = "min=leaky_relu(b+e,0.2);edge=tanh(x+b);prod=1+b/8",
     .argmax = 1,
     .transpose = 1,
     .type = WLM_BF16},
    {.outputs = "results[0] results[1]", .custom = "sum=a*b;mean=b", .bias = 1, .padding = 1},
    {.outputs = "results[0]", .custom = "d0:row;w0:row:wins;sum=d0*w0*a"},
    {.outputs = "results[0]", .custom = "sum=relu(x+b)", .sample = WLM_SAMPLE_BUCKET},
    {.outputs = "results[0] positions[0] results[1]",
     .custom = "max=x*b;edge=b*e",
     .argmax = 1,
     .sample = WLM_SAMPLE_FASTRAND_COPRIME},
    {.outputs = "results[0]", .custom = "mean=x*b*a", .transpose = 1, .sample = WLM_SAMPLE_BUCKET},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- a call of one of the cases ---------------------------------------------------------------------------- */

typedef struct verified {
  wlmi_upload upload;
  wlmi_operands operands;
  wlmi_verifier *verifier;
} verified;

static void assert_outputs(const wlmi_operands *operands, const char *wanted) {
  char names[128] = "";
  for (int i = 0; i < operands->outputs; i++) {
    const size_t length = strlen(names);
    snprintf(names + length, sizeof names - length, "%s%s", i ? " " : "", operands->output[i].name);
  }
  assert_string_equal(names, wanted);
}

/* Compares few rows with float64, and without a second reference all if there are at most so many elements. */
static void make_verifier(int number, double elements, verified *v) {
  const wlmi_verify_limits few = {.products = 1, .elements = elements, .rows = 3, .host_products = 1e9};
  wlm_problem problem =
      PROBLEM(.n = N, .operation = cases[number].custom ? WLM_MESSAGE : cases[number].operation,
              .score = cases[number].score, .message = cases[number].message,
              .reduce = cases[number].custom ? WLM_CUSTOM : cases[number].reduce, .custom = cases[number].custom,
              .heads = cases[number].heads ? cases[number].heads : 1, .transpose = cases[number].transpose,
              .want_argmax = cases[number].argmax, .epilogue.bias = cases[number].bias,
              .dense_type = cases[number].type, .sampling.sample = cases[number].sample,
              .sampling.width = cases[number].sample ? 8 : 0);
  wlm_execute_args call =
      EXECUTE_ARGS(.beta = cases[number].beta, .ldb = N + cases[number].padding, .ldc = N + cases[number].padding);
  const int is_attention = problem.operation == WLM_ATTENTION || problem.operation == WLM_ATTENTION_ROWS;
  const wlm_type sums = problem.dense_type == WLM_F64 ? WLM_F64 : WLM_F32;
  assert_status(WLM_OK, wlmi_upload_create_typed(context, &csr, WLM_I32, WLM_I32,
                                                 is_attention ? sums : problem.dense_type, problem.heads, &v->upload));
  assert_status(WLM_OK, wlmi_operands_create(context, v->upload.matrix, &problem, &call, 3, &v->operands));
  assert_outputs(&v->operands, cases[number].outputs);
  assert_status(WLM_OK, wlmi_verifier_create_within(&v->operands, 3, &few, &v->verifier));
}

/* Of the right result. */
static void make(int number, verified *v) {
  double error = -1;
  make_verifier(number, 1, v);
  assert_in_range(wlmi_verifier_rows(v->verifier), 1, 7);
  OWN(wlm_plan, plan, wlm_plan_create(context, v->upload.matrix, &v->operands.spec.problem, &plan));
  if (verify_plan(&v->operands, v->verifier, plan, &error) != WLM_OK)
    fail_msg("case %d: %s", number, wlm_error_detail());
}

static void release(verified *v) {
  wlmi_verifier_destroy(v->verifier);
  wlmi_operands_release(&v->operands);
  wlmi_upload_release(&v->upload);
}

/* ---- wrong elements ------------------------------------------------------------------------------------------ */

/* Makes an element wrong: by something that grows with it, or NaN, or another position. */
static void spoil(const wlmi_call_array *output, void *element, int with_nan) {
  if (output->is_positions) {
    *(int32_t *)element += 1;
    return;
  }
  const double value = wlmi_element_get(output->type, element, 0);
  wlmi_element_put(output->type, element, 0, with_nan ? NAN : value + fabs(value) + 0.25);
}

static void find_in_output(int number, verified *v, int which) {
  const wlmi_call_array *output = &v->operands.output[which];
  wlmi_device *device = v->operands.device;
  char *memory = wlmi_call_array_memory(&v->operands, output);
  double error, element[1], wrong[1];
  int beyond = 0; /* elements that only the second reference leads to */
  for (int64_t line = 0; line < output->lines; line += 7) {
    char *const at = memory + (size_t)(line * output->ld + line % output->width) * output->size;
    assert_status(WLM_OK, device->ops->copy_out(device, NULL, element, at, output->size));
    memcpy(wrong, element, sizeof wrong);
    spoil(output, wrong, line % 2);
    assert_status(WLM_OK, device->ops->copy_in(device, at, wrong, output->size));
    beyond += wlmi_verify_spots(v->verifier, &error) == WLM_OK; /* so few rows that these are all that are chosen */
    if (wlmi_verify_result(v->verifier, &error) != WLM_ERR_MISMATCH)
      fail_msg("case %d: %s: line %d is wrong, and not found", number, output->name, (int)line);
    assert_contains(wlm_error_detail(), output->name);
    assert_status(WLM_OK, device->ops->copy_in(device, at, element, output->size));
  }
  assert_true(beyond > 0);
  if (wlmi_verify_result(v->verifier, &error) != WLM_OK) fail_msg("case %d: %s", number, wlm_error_detail());
}

void whole_check_finds_one_wrong_element(void) {
  for (int number = 0; number < CASES; number++) {
    verified v;
    make(number, &v);
    for (int i = 0; i < v.operands.outputs; i++) find_in_output(number, &v, i);
    release(&v);
  }
}

static void assert_poisoned(const wlmi_operands *operands, const wlmi_call_array *output) {
  const size_t bytes = wlmi_call_array_bytes(output);
  FREED unsigned char *found = malloc(bytes);
  assert_non_null(found);
  assert_status(WLM_OK, operands->device->ops->copy_out(operands->device, NULL, found,
                                                        wlmi_call_array_memory(operands, output), bytes));
  if (output->host) assert_memory_equal(found, output->host, bytes);
  for (size_t at = 0; at < bytes && !output->host; at++) assert_int_equal(found[at], output->byte);
}

/* A byte behind the output, which is one of its guard zone. */
static void assert_guarded(const wlmi_operands *operands, const wlmi_call_array *output) {
  wlmi_device *device = operands->device;
  char *end = wlmi_call_array_memory(operands, output) + wlmi_call_array_bytes(output), kept, wrong;
  assert_status(WLM_OK, wlmi_operands_intact(operands, 1));
  assert_status(WLM_OK, device->ops->copy_out(device, NULL, &kept, end, 1));
  wrong = (char)(kept + 1);
  assert_status(WLM_OK, device->ops->copy_in(device, end, &wrong, 1));
  assert_fails(WLM_ERR_MISMATCH, wlmi_operands_intact(operands, 0), output->name);
  assert_status(WLM_OK, device->ops->copy_in(device, end, &kept, 1));
}

void whole_check_guards_and_poison(void) {
  for (int number = 0; number < CASES; number++) {
    verified v;
    make(number, &v);
    for (int i = 0; i < v.operands.outputs; i++) assert_guarded(&v.operands, &v.operands.output[i]);
    assert_status(WLM_OK, wlmi_operands_poison(&v.operands));
    for (int i = 0; i < v.operands.outputs; i++) assert_poisoned(&v.operands, &v.operands.output[i]);
    release(&v);
  }
}

/* ---- the second reference ------------------------------------------------------------------------------------ */

/* Its numbers are compared with the float64 reference of all rows, with the tolerance of f64. */
void whole_check_references_agree(void) {
  for (int number = 0; number < CASES; number++) {
    verified v;
    int64_t rows[100];
    make(number, &v);
    assert_true(v.operands.a.rows <= 100);
    for (int64_t row = 0; row < v.operands.a.rows; row++) rows[row] = row;
    GET(wlmi_output_check *, all, wlmi_output_check_create(&v.operands, rows, v.operands.a.rows, INT64_MAX, &all));
    wlmi_whole_check *whole;
    if (wlmi_whole_check_create(&v.operands, all, &whole) != WLM_OK)
      fail_msg("case %d: %s", number, wlm_error_detail());
    wlmi_whole_check_destroy(whole);
    wlmi_output_check_destroy(all);
    release(&v);
  }
}

void whole_check_simple_kernels(void) {
  for (int number = 0; number < CASES; number++) {
    verified v;
    const wlmi_candidate_list *list;
    make_verifier(number, 1, &v);
    wlmi_spec spec = v.operands.spec;
    spec.problem.dense_type = spec.value_type = WLM_F64;
    assert_status(WLM_OK, wlmi_generator_describe(wlmi_context_generator(context), &spec, &emit_smallest, &list));
    if (!wlmi_simple_kernel(list)) fail_msg("case %d: no simple kernel among %d", number, (int)list->count);
    wlmi_candidates_drop(list);
    release(&v);
  }
}

static void keep_message(void *user, wlm_log_level level, const char *message) {
  char *const text = user;
  (void)level;
  if (strstr(message, "rows of results are compared")) snprintf(text, 256, "%s", message);
}

void whole_check_without_compiler(void) {
  static const struct {
    double elements;
    const char *says;
    int64_t rows;
  } limits[] = {{1, "only some rows of results are compared: ", 7}, {1e6, "with float64 all rows", 90}};
  for (int i = 0; i < 2; i++) {
    verified v;
    char text[256] = "";
    setenv("WARPLOOM_CC", "/nonexistent/cc", 1);
    wlm_set_log(keep_message, text, WLM_LOG_INFO);
    make_verifier(0, limits[i].elements, &v);
    wlm_set_log(NULL, NULL, WLM_LOG_INFO);
    unsetenv("WARPLOOM_CC");
    assert_contains(text, limits[i].says);
    assert_in_range(wlmi_verifier_rows(v.verifier), limits[i].rows - 3, limits[i].rows);
    release(&v);
  }
}
