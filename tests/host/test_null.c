/* Passes NULL for each handle and required argument of every public function: the result is an error that names the
 * argument, never a crash. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/bare_host.h"
#include "support/defaults.h"
#include "support/folder.h"
#include "support/header.h"
#include "support/own.h"
#include "warploom/warploom_attention.h"
#include "warploom/warploom_message.h"
#include "warploom/warploom_tune.h"

static const int32_t rowptr[] = {0, 1, 2}, colind[] = {1, 0};
static const float values[] = {2, 3}, b[] = {5, 7};
static float c[2];

static wlm_csr csr;
static wlm_problem problem = PROBLEM(.n = 1);
static wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c);
static wlm_plan *plan;

static int begin(void **state) {
  (void)state;
  csr = (wlm_csr)CSR(.rows = 2, .cols = 2, .nnz = 2, .rowptr = rowptr, .colind = colind, .values = values);
  return bare_host_begin_with(&csr) || wlm_plan_create(bare_host, bare_matrix, &problem, &plan) != WLM_OK;
}

static int end(void **state) {
  wlm_plan_destroy(plan);
  return bare_host_end(state);
}

static void refused(wlm_status status, const char *name, int line) {
  if (status != WLM_ERR_INVALID_ARGUMENT)
    fail_msg("line %d: %s, not an invalid argument", line, wlm_status_name(status));
  if (!strstr(wlm_error_detail(), name) || !strstr(wlm_error_detail(), "NULL"))
    fail_msg("line %d: '%s' does not say that %s is NULL", line, wlm_error_detail(), name);
}
#define REFUSED(name, call) refused((call), name, __LINE__)

/* The call must return the error and set the created object to NULL. */
#define REFUSED_AND_NULL(name, call, made)             \
  do {                                                 \
    (made) = (void *)(uintptr_t)&problem;              \
    refused((call), name, __LINE__);                   \
    if (made) fail_msg("line %d: not NULL", __LINE__); \
  } while (0)

static void context_functions(void **state) {
  (void)state;
  char *json;
  REFUSED("context", wlm_context_create(NULL, NULL));
  REFUSED_AND_NULL("context", wlm_context_info(NULL, &json), json);
  REFUSED("json", wlm_context_info(bare_host, NULL));
  assert_null(wlm_context_device_name(NULL));
  assert_null(wlm_context_device_kind(NULL));
  REFUSED("context", wlm_context_refresh(NULL));
  wlm_context_destroy(NULL);
  setenv("XDG_DATA_HOME", "/nonexistent", 1); /* options may be NULL: then the device and the default paths are used */
  setenv("XDG_CACHE_HOME", "/nonexistent", 1);
  OWN(wlm_context, context, wlm_context_create(NULL, &context));
}

static void one_call_function(void **state) {
  (void)state;
  REFUSED("context", wlm_spmm(NULL, &csr, &problem, &args));
  REFUSED("csr", wlm_spmm(bare_host, NULL, &problem, &args));
  REFUSED("problem", wlm_spmm(bare_host, &csr, NULL, &args));
  REFUSED("args", wlm_spmm(bare_host, &csr, &problem, NULL));
  wlm_execute_args without = args;
  without.b = NULL;
  REFUSED("wlm_spmm: b is NULL", wlm_spmm(bare_host, &csr, &problem, &without));
  without = args;
  without.c = NULL;
  REFUSED("wlm_spmm: c is NULL", wlm_spmm(bare_host, &csr, &problem, &without));
  assert_status(WLM_OK, wlm_spmm(bare_host, &csr, &problem, &args));
  assert_true(c[0] == 14 && c[1] == 15);

  wlm_problem best = problem;
  best.reduce = WLM_MAX;
  best.want_argmax = 1;
  without.c = c;
  REFUSED("wlm_spmm: argmax is NULL", wlm_spmm(bare_host, &csr, &best, &without));
  best.operation = WLM_ARGMAX_GRADIENT;
  without.x = b;
  without.argmax_db = c;
  REFUSED("wlm_spmm: argmax is NULL", wlm_spmm(bare_host, &csr, &best, &without));
}

static void matrix_functions(void **state) {
  (void)state;
  wlm_matrix *made;
  REFUSED_AND_NULL("context", wlm_matrix_create(NULL, &csr, NULL, &made), made);
  REFUSED_AND_NULL("csr", wlm_matrix_create(bare_host, NULL, NULL, &made), made);
  REFUSED("matrix", wlm_matrix_create(bare_host, &csr, NULL, NULL));
  wlm_matrix_options options = MATRIX_OPTIONS(.grade = WLM_STATS_GIVEN);
  REFUSED_AND_NULL("stats", wlm_matrix_create(bare_host, &csr, &options, &made), made);
  wlm_csr without = csr;
  without.rowptr = NULL;
  REFUSED_AND_NULL("rowptr", wlm_matrix_create(bare_host, &without, NULL, &made), made);
  without = csr;
  without.colind = NULL;
  REFUSED_AND_NULL("colind", wlm_matrix_create(bare_host, &without, NULL, &made), made);
  assert_null(wlm_matrix_stats(NULL));
  REFUSED("matrix", wlm_matrix_validate(NULL, NULL, NULL));
  const wlm_coo coo = WLM_COO_INIT;
  REFUSED("context", wlm_csr_from_coo(NULL, &coo));
  REFUSED("coo", wlm_csr_from_coo(bare_host, NULL));
  const wlm_bsr bsr = WLM_BSR_INIT;
  REFUSED("context", wlm_csr_from_bsr(NULL, &bsr));
  REFUSED("bsr", wlm_csr_from_bsr(bare_host, NULL));
  wlm_matrix_destroy(NULL);
}

static void plan_creation(void **state) {
  (void)state;
  static const char variant[] = "host_row/rows=16,tile=16";
  wlm_plan *made;
  REFUSED_AND_NULL("context", wlm_plan_create(NULL, bare_matrix, &problem, &made), made);
  REFUSED_AND_NULL("matrix", wlm_plan_create(bare_host, NULL, &problem, &made), made);
  REFUSED_AND_NULL("problem", wlm_plan_create(bare_host, bare_matrix, NULL, &made), made);
  REFUSED("plan", wlm_plan_create(bare_host, bare_matrix, &problem, NULL));
  REFUSED_AND_NULL("context", wlm_plan_create_variant(NULL, bare_matrix, &problem, variant, &made), made);
  REFUSED_AND_NULL("matrix", wlm_plan_create_variant(bare_host, NULL, &problem, variant, &made), made);
  REFUSED_AND_NULL("problem", wlm_plan_create_variant(bare_host, bare_matrix, NULL, variant, &made), made);
  REFUSED_AND_NULL("variant", wlm_plan_create_variant(bare_host, bare_matrix, &problem, NULL, &made), made);
  REFUSED("plan", wlm_plan_create_variant(bare_host, bare_matrix, &problem, variant, NULL));
  double seconds;
  REFUSED("context", wlm_expected_seconds(NULL, bare_matrix, &problem, &seconds, NULL));
  REFUSED("matrix", wlm_expected_seconds(bare_host, NULL, &problem, &seconds, NULL));
  REFUSED("problem", wlm_expected_seconds(bare_host, bare_matrix, NULL, &seconds, NULL));
  REFUSED("seconds", wlm_expected_seconds(bare_host, bare_matrix, &problem, NULL, NULL));
  REFUSED_AND_NULL("context", wlm_plan_create_online(NULL, bare_matrix, &problem, NULL, &made), made);
  REFUSED_AND_NULL("matrix", wlm_plan_create_online(bare_host, NULL, &problem, NULL, &made), made);
  REFUSED_AND_NULL("problem", wlm_plan_create_online(bare_host, bare_matrix, NULL, NULL, &made), made);
  REFUSED("plan", wlm_plan_create_online(bare_host, bare_matrix, &problem, NULL, NULL));
}

static void plan_functions(void **state) {
  (void)state;
  wlm_online_state known = WLM_ONLINE_STATE_INIT;
  char *text;
  REFUSED("plan", wlm_plan_execute(NULL, &args));
  REFUSED("args", wlm_plan_execute(plan, NULL));
  REFUSED("plan", wlm_plan_rebind(NULL, &csr));
  REFUSED("csr", wlm_plan_rebind(plan, NULL));
  REFUSED("plan", wlm_plan_prepare(NULL, c, NULL));
  assert_status(WLM_OK, wlm_plan_prepare(plan, NULL, NULL)); /* the plan needs no preparation */
  assert_int_equal(wlm_plan_workspace_size(NULL), 0);
  assert_int_equal(wlm_plan_prepared_size(NULL), 0);
  assert_null(wlm_plan_variant(NULL));
  REFUSED_AND_NULL("plan", wlm_plan_explain(NULL, 0, &text), text);
  REFUSED("text", wlm_plan_explain(plan, 0, NULL));
  REFUSED("plan", wlm_plan_online_state(NULL, &known));
  REFUSED("plan", wlm_plan_online_close(NULL));
  wlm_plan_destroy(NULL);
  assert_status(WLM_OK, wlm_plan_execute(plan, &args)); /* the plan still works after all refused calls */
  assert_true(c[0] == 14 && c[1] == 15);

  OWN(wlm_plan, online, wlm_plan_create_online(bare_host, bare_matrix, &problem, NULL, &online));
  REFUSED("state", wlm_plan_online_state(online, NULL));
  REFUSED("args", wlm_plan_execute(online, NULL));
  assert_status(WLM_OK, wlm_plan_execute(online, &args));
}

static void tuning_functions(void **state) {
  (void)state;
  REFUSED("context", wlm_tune(NULL, bare_matrix, &problem, NULL, NULL));
  REFUSED("matrix", wlm_tune(bare_host, NULL, &problem, NULL, NULL));
  REFUSED("problem", wlm_tune(bare_host, bare_matrix, NULL, NULL, NULL));
  REFUSED("context", wlm_train(NULL));
}

static void measurement_functions(void **state) {
  (void)state;
  char *text;
  REFUSED("context", wlm_export_path(NULL, "/dev/null"));
  REFUSED("path", wlm_export_path(bare_host, NULL));
  REFUSED_AND_NULL("context", wlm_export_string(NULL, &text), text);
  REFUSED("text", wlm_export_string(bare_host, NULL));
  REFUSED("context", wlm_import_path(NULL, "/dev/null", NULL));
  REFUSED("path", wlm_import_path(bare_host, NULL, NULL));
  REFUSED("context", wlm_import_string(NULL, "", NULL));
  REFUSED("text", wlm_import_string(bare_host, NULL, NULL));
}

static void message_functions(void **state) {
  (void)state;
  wlm_problem gradient = WLM_PROBLEM_INIT;
  wlm_message_table table = WLM_MESSAGE_TABLE_INIT;
  WLM_FREED char *text = NULL;
  REFUSED("problem", wlm_message_describe(NULL, &table));
  REFUSED("table", wlm_message_describe(&problem, NULL));

  REFUSED_AND_NULL("problem", wlm_message_gradient(NULL, "b", &gradient, &text), text);
  REFUSED_AND_NULL("by", wlm_message_gradient(&problem, NULL, &gradient, &text), text);
  REFUSED_AND_NULL("gradient", wlm_message_gradient(&problem, "b", NULL, &text), text);
  REFUSED("text", wlm_message_gradient(&problem, "b", &gradient, NULL));
  wlm_problem message = PROBLEM(.operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = "sum=b", .n = 2);
  REFUSED("wlm_execute_args.operands is NULL", wlm_spmm(bare_host, &csr, &message, &args));
  message.custom = "b:edge;sum=b"; /* kernels get no operand of it as B */
  wlm_message_args without = WLM_MESSAGE_ARGS_INIT;
  wlm_execute_args call = args;
  call.operands = &without;
  without.results[0] = call.c;
  REFUSED("wlm_spmm: b is NULL", wlm_spmm(bare_host, &csr, &message, &call));
  message.custom = "sum=b";
  message.epilogue.bias = 1;
  without.operands[0] = call.c;
  call.bias = NULL;
  REFUSED("wlm_spmm: bias is NULL", wlm_spmm(bare_host, &csr, &message, &call));
  assert_status(WLM_OK, wlm_message_gradient(&message, "b", &gradient, &text));
  assert_string_equal(text, "d0:row;sum=d0");
  assert_int_equal(gradient.epilogue.bias, 0); /* d0 is the gradient before the bias */
}

static void struct_functions(void **state) {
  (void)state;
  REFUSED("wlm_attention_operands", wlm_attention_operands_init(NULL, sizeof(wlm_attention_operands)));
  REFUSED("wlm_message_args", wlm_message_args_init(NULL, sizeof(wlm_message_args)));
  REFUSED("wlm_message_table", wlm_message_table_init(NULL, sizeof(wlm_message_table)));
  REFUSED("wlm_context_options", wlm_context_options_init(NULL, sizeof(wlm_context_options)));
  REFUSED("wlm_csr", wlm_csr_init(NULL, sizeof(wlm_csr)));
  REFUSED("wlm_coo", wlm_coo_init(NULL, sizeof(wlm_coo)));
  REFUSED("wlm_bsr", wlm_bsr_init(NULL, sizeof(wlm_bsr)));
  REFUSED("wlm_problem", wlm_problem_init(NULL, sizeof(wlm_problem)));
  REFUSED("wlm_execute_args", wlm_execute_args_init(NULL, sizeof(wlm_execute_args)));
  REFUSED("wlm_matrix_options", wlm_matrix_options_init(NULL, sizeof(wlm_matrix_options)));
  REFUSED("wlm_stats", wlm_stats_init(NULL, sizeof(wlm_stats)));
  REFUSED("wlm_tune_options", wlm_tune_options_init(NULL, sizeof(wlm_tune_options)));
  REFUSED("wlm_online_options", wlm_online_options_init(NULL, sizeof(wlm_online_options)));
  REFUSED("wlm_online_state", wlm_online_state_init(NULL, sizeof(wlm_online_state)));
}

/* Objects of different contexts must not be combined. */
static void objects_of_another_context(void **state) {
  (void)state;
  static const char says[] = "created in another context";
  wlm_context_options options = BARE_OPTIONS(.device = "host");
  wlm_plan *made;
  OWN(wlm_context, other, wlm_context_create(&options, &other));
#define FOREIGN(name, call)                         \
  do {                                              \
    assert_status(WLM_ERR_INVALID_ARGUMENT, call);  \
    assert_contains(wlm_error_detail(), name ": "); \
    assert_contains(wlm_error_detail(), says);      \
  } while (0)
  FOREIGN("wlm_plan_create", wlm_plan_create(other, bare_matrix, &problem, &made));
  assert_null(made);
  FOREIGN("wlm_plan_create_variant",
          wlm_plan_create_variant(other, bare_matrix, &problem, "host_row/rows=16,tile=16", &made));
  double seconds;
  FOREIGN("wlm_expected_seconds", wlm_expected_seconds(other, bare_matrix, &problem, &seconds, NULL));
  FOREIGN("wlm_plan_create_online", wlm_plan_create_online(other, bare_matrix, &problem, NULL, &made));
  FOREIGN("wlm_tune", wlm_tune(other, bare_matrix, &problem, NULL, NULL));
}

/* Runs first, because these functions must not be called while a context exists. */
static void process_functions(void **state) {
  (void)state;
  wlm_set_allocator(NULL);
  wlm_set_device_allocator(NULL);
  wlm_set_log(NULL, NULL, WLM_LOG_ERROR);
  wlm_string_free(NULL);
  assert_int_equal(wlm_version(), WLM_VERSION_MAJOR * 10000 + WLM_VERSION_MINOR * 100 + WLM_VERSION_PATCH);
  assert_non_null(wlm_version_string());
  assert_string_equal(wlm_status_name(WLM_OK), "WLM_OK");
  assert_non_null(wlm_status_message(WLM_OK));
}

/* Every function of the headers occurs in this file. */
static void every_function_is_tested(void **state) {
  (void)state;
  header_functions functions;
  size_t size;
  FREED unsigned char *whole = read_whole(WLM_SOURCE_DIR "/tests/host/test_null.c", &size);
  char *text = calloc(1, size + 1);
  int missing = 0;
  assert_true(whole && text);
  memcpy(text, whole, size);
  header_read(WLM_SOURCE_DIR, &functions);
  for (int i = 0; i < functions.count; i++) {
    char call[HEADER_NAME + 2];
    snprintf(call, sizeof call, "%s(", functions.names[i]);
    if (strstr(text, call)) continue;
    missing++;
    print_error("%s is not called with NULL\n", functions.names[i]);
  }
  assert_int_equal(missing, 0);
  free(text);
}

int main(void) {
  const struct CMUnitTest without_objects[] = {cmocka_unit_test(process_functions)};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(context_functions),        cmocka_unit_test(one_call_function),
      cmocka_unit_test(matrix_functions),         cmocka_unit_test(plan_creation),
      cmocka_unit_test(plan_functions),           cmocka_unit_test(tuning_functions),
      cmocka_unit_test(measurement_functions),    cmocka_unit_test(message_functions),
      cmocka_unit_test(struct_functions),         cmocka_unit_test(objects_of_another_context),
      cmocka_unit_test(every_function_is_tested),
  };
  const int failed = cmocka_run_group_tests(without_objects, NULL, NULL);
  return cmocka_run_group_tests(tests, begin, end) || failed;
}
