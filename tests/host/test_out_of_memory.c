/* A call that runs out of memory returns WLM_ERR_OUT_OF_MEMORY, never another error and never a crash, and does not
 * change the result of a later call. Allocation k fails, alone or with all that follow it, for k = 1, 2, ... up to the
 * last one of a run: each of the first few, then fewer and fewer. WARPLOOM_FULL: every one. */
#include <sys/stat.h>

#include "core/problem/spec.h"
#include "db/interchange.h"
#include "db/kernel_archive.h"
#include "runtime/context.h"
#include "runtime/devices.h"
#include "support/command.h"
#include "support/drawn.h"
#include "support/failing_malloc.h"
#include "support/stats.h"
#include "support/test.h"
#include "tuner/method.h"

#define TUNED "host_nnz/nonzeros=8192,tile=16"

enum { PROBLEMS = 4 };

static drawn a;
static char database[320], compiler[320];
static _Alignas(64) char workspace[1 << 20];
static _Alignas(64) char prepared[1 << 20];
static float c[DRAWN_DENSE];
static int32_t positions[DRAWN_DENSE];

/* Products that between them use the generator, custom operators, A^T, and kernels for gradients by argmax. */
static wlm_problem problems[PROBLEMS];
static char variants[PROBLEMS][256]; /* the variants of the plans, without a failed allocation */
static float expected[PROBLEMS][DRAWN_DENSE];

static wlm_status open_context(wlm_context **context) {
  wlm_context_options options = CONTEXT_OPTIONS(.device = "host", .database = database, .system_database = "");
  return wlm_context_create(&options, context);
}

/* Creates a context and computes a product; *variant gets the plan's variant. */
static wlm_status multiply(wlm_context *context, const wlm_problem *problem, char variant[256]) {
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  OWNED(wlm_matrix) *matrix = NULL;
  OWNED(wlm_plan) *plan = NULL;
  WLM_FREED char *why = NULL;
  wlm_status status = wlm_matrix_create(context, &a.csr, NULL, &matrix);
  if (status == WLM_OK) status = wlm_plan_create(context, matrix, problem, &plan);
  if (status == WLM_OK) status = wlm_plan_explain(plan, 1, &why);
  if (status == WLM_OK) {
    assert_true(wlm_plan_workspace_size(plan) <= sizeof workspace);
    assert_true(wlm_plan_prepared_size(plan) <= sizeof prepared);
    snprintf(variant, 256, "%s", wlm_plan_variant(plan));
    args = (wlm_execute_args)EXECUTE_ARGS(.b = a.b, .c = c);
    if (problem->want_argmax) args.argmax = positions;
    args.workspace = workspace;
    args.workspace_size = sizeof workspace;
    status = wlm_plan_prepare(plan, prepared, NULL);
  }
  if (status == WLM_OK) status = wlm_plan_execute(plan, &args);
  return status;
}

/* Like multiply, but the variant and the result must be those of a run with enough memory. */
static void expect_product(wlm_context *context, int i, int64_t k, const char *mode) {
  char variant[256];
  memset(c, 0xff, sizeof c);
  const wlm_status status = multiply(context, &problems[i], variant);
  if (status != WLM_OK)
    fail_msg("problem %d after allocation %lld (%s) failed: %s: %s", i, (long long)k, mode, wlm_status_name(status),
             wlm_error_detail());
  const int64_t rows = problems[i].transpose ? a.csr.cols : a.csr.rows;
  if (strcmp(variant, variants[i]))
    fail_msg("problem %d after allocation %lld (%s): %s in the place of %s", i, (long long)k, mode, variant,
             variants[i]);
  assert_memory_equal(c, expected[i], (size_t)(rows * DRAWN_N) * sizeof *c);
}

static void expect_out_of_memory(wlm_status status, int64_t k, const char *mode) {
  if (status != WLM_OK && status != WLM_ERR_OUT_OF_MEMORY)
    fail_msg("allocation %lld (%s) failed: %s: %s", (long long)k, mode, wlm_status_name(status), wlm_error_detail());
}

static int64_t next(int64_t k, int64_t each) { return k < each || getenv("WARPLOOM_FULL") ? k + 1 : k + 1 + k / 4; }

static const struct {
  const char *name;
  int64_t count;
} modes[] = {{"one", 1}, {"all", INT64_MAX}};

TEST(a_context_reports_it) {
  for (int mode = 0; mode < 2; mode++)
    for (int64_t k = 1, failures = 1; failures; k = next(k, 24)) {
      OWNED(wlm_context) *context = NULL;
      failing_malloc_begin(k, modes[mode].count);
      const wlm_status status = open_context(&context);
      failures = failing_malloc_end();
      expect_out_of_memory(status, k, modes[mode].name);
      assert_int_equal(status == WLM_OK, context != NULL);
      if (context && failures) expect_product(context, 0, k, modes[mode].name);
    }
}

/* A folder with an export, a database and a kernel archive. */
TEST(layers_report_it) {
  char site[300];
  const char *const layers[] = {site};
  wlm_context_options options = BARE_OPTIONS(.device = "host", .layers = layers, .layer_count = 1);
  snprintf(site, sizeof site, "%s/site", folder.path);
  assert_int_equal(mkdir(site, 0700), 0);
  GET(wlm_store *, store, wlmi_store_open(database, WLMI_STORE_READ, &store));
  assert_status(WLM_OK, wlmi_store_export_path(store, folder_file(&folder, "site/a.jsonl")));
  wlmi_store_close(store);
  assert_status(WLM_OK, wlmi_kernel_archive_write(folder_file(&folder, "site/b.archive"), NULL, 0, NULL));
  assert_int_equal(rename(database, folder_file(&folder, "site/c.db")), 0);
  for (int mode = 0; mode < 2; mode++)
    for (int64_t k = 1, failures = 1; failures; k = next(k, 100)) {
      OWNED(wlm_context) *context = NULL;
      failing_malloc_begin(k, modes[mode].count);
      const wlm_status status = wlm_context_create(&options, &context);
      failures = failing_malloc_end();
      if (status != WLM_ERR_PARSE) expect_out_of_memory(status, k, modes[mode].name); /* see refresh_export_import */
      assert_int_equal(status == WLM_OK, context != NULL);
    }
  assert_int_equal(rename(folder.file, database), 0);
}

TEST(a_product_reports_it) {
  for (int mode = 0; mode < 2; mode++)
    for (int i = 0; i < PROBLEMS; i++)
      for (int64_t k = 1, failures = 1; failures; k = next(k, 24)) {
        char variant[256];
        OWN(wlm_context, context, open_context(&context));
        failing_malloc_begin(k, modes[mode].count);
        const wlm_status status = multiply(context, &problems[i], variant);
        failures = failing_malloc_end();
        expect_out_of_memory(status, k, modes[mode].name);
        expect_product(context, i, k, modes[mode].name);
      }
}

static wlm_status emit(wlmi_generator *generator, wlmi_program *program) {
  wlmi_spec spec;
  const wlmi_limits limits = {.target = WLMI_TARGET_HOST};
  OWNED(wlmi_candidates) *list = NULL;
  wlm_status status = wlmi_spec_make(&problems[1], &a.csr, &spec);
  if (status == WLM_OK) status = wlmi_generator_describe(generator, &spec, &limits, &list);
  if (status == WLM_OK) status = wlmi_generator_emit(generator, list->candidates[0].variant, &spec, &limits, program);
  return status;
}

/* A generator whose first kernel ran out of memory still makes all others. */
TEST(a_generator_stays_whole) {
  HELD(wlmi_program) wanted = {0};
  wlmi_program program = {0};
  GET(wlmi_generator *, generator, wlmi_generator_create(NULL, &generator));
  assert_status(WLM_OK, emit(generator, &wanted));
  wlmi_generator_destroy(generator);
  for (int64_t k = 1, failures = 1; failures; k = next(k, 500)) {
    assert_status(WLM_OK, wlmi_generator_create(NULL, &generator));
    failing_malloc_begin(k, INT64_MAX); /* Lua tries once more after one failure */
    const wlm_status status = emit(generator, &program);
    failures = failing_malloc_end();
    expect_out_of_memory(status, k, "all");
    wlmi_program_release(&program);
    if (emit(generator, &program) != WLM_OK) fail_msg("after allocation %lld: %s", (long long)k, wlm_error_detail());
    assert_string_equal(program.source, wanted.source);
    wlmi_program_release(&program);
    wlmi_generator_destroy(generator);
  }
}

TEST(one_call_reports_it) {
  wlm_execute_args args = EXECUTE_ARGS(.b = a.b, .c = c);
  for (int mode = 0; mode < 2; mode++)
    for (int64_t k = 1, failures = 1; failures; k = next(k, 24)) {
      OWN(wlm_context, context, open_context(&context));
      failing_malloc_begin(k, modes[mode].count);
      const wlm_status status = wlm_spmm(context, &a.csr, &problems[1], &args);
      failures = failing_malloc_end();
      expect_out_of_memory(status, k, modes[mode].name);
      assert_status(WLM_OK, wlm_spmm(context, &a.csr, &problems[1], &args));
    }
}

static wlm_status refresh_export_import(wlm_context *context) {
  WLM_FREED char *text = NULL;
  wlm_status status = wlm_context_refresh(context);
  if (status == WLM_OK) status = wlm_export_string(context, &text);
  if (status == WLM_OK) status = wlm_import_string(context, text, NULL);
  /* Jansson loses a character or a token if it finds no memory, so the line may look malformed. */
  return status == WLM_ERR_PARSE ? WLM_ERR_OUT_OF_MEMORY : status;
}

TEST(a_store_reports_it) {
  OWN(wlm_context, context, open_context(&context));
  for (int mode = 0; mode < 2; mode++)
    for (int64_t k = 1, failures = 1; failures; k = next(k, 200)) {
      failing_malloc_begin(k, modes[mode].count);
      const wlm_status status = refresh_export_import(context);
      failures = failing_malloc_end();
      expect_out_of_memory(status, k, modes[mode].name);
      assert_status(WLM_OK, refresh_export_import(context));
    }
  expect_product(context, 0, 0, "all");
}

/* wlmi_fail without memory for the detail must still return an error. */
TEST(a_failure_without_memory_is_reported) {
  HELD(wlmi_method) method = {0};
  failing_malloc_begin(1, INT64_MAX);
  wlmi_method_fail(&method, "wrong");
  assert_int_equal(failing_malloc_end(), 1);
  assert_non_null(method.failure);
}

/* ---- a database with a tuned case, and compiled kernels ------------------------------------------------------- */

static void put_case(void) {
  static const char *const names[] = {TUNED, "host_row/rows=128,tile=16", "host_row/rows=16,tile=16"};
  wlmi_measurement_record records[3];
  char key[WLMI_SPEC_KEY];
  OWN(wlm_context, context, open_context(&context));
  OWN(wlm_matrix, matrix, wlm_matrix_create(context, &a.csr, NULL, &matrix));
  assert_status(WLM_OK, wlmi_matrix_fingerprint(matrix));
  GET(wlmi_spec, spec, wlmi_context_spec(context, matrix, &problems[0], &spec));
  wlmi_spec_key(&spec, key);
  const wlmi_device_info *info = &wlmi_context_device(context)->info;
  for (int i = 0; i < 3; i++) {
    records[i] =
        (wlmi_measurement_record)MEASUREMENT(.stats = *wlm_matrix_stats(matrix), .matrix_name = "drawn",
                                             .variant = (char *)(uintptr_t)names[i], .problem = key, .n = DRAWN_N,
                                             .compiler = (char *)(uintptr_t)info->compiler,
                                             .driver = (char *)(uintptr_t)info->driver, .time_ps = 1000000 * (i + 1));
    records[i].device = wlmi_device_record_of(wlmi_context_device(context));
  }
  OWN(wlm_store, store, wlmi_store_open(database, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_put(store, records, 3));
}

/* Writes a compiler that fails once a file exists; afterwards all kernels must come from the cache. */
static void use_compiler(void) {
  char text[1024];
  snprintf(text, sizeof text,
           "#!/bin/sh\n"
           "[ \"$1\" != --version ] && [ -e '%s/closed' ] && echo 'the compiler was called again' && exit 1\n"
           "exec cc \"$@\"\n",
           folder.path);
  snprintf(compiler, sizeof compiler, "%s", folder_file(&folder, "compiler"));
  write_whole(compiler, text, strlen(text));
  assert_int_equal(chmod(compiler, 0700), 0);
  setenv("WARPLOOM_CC", compiler, 1);
}

static int setup(void **state) {
  test_random random = {11};
  wlm_context *context;
  if (home_begin(state)) return -1;
  snprintf(database, sizeof database, "%s/user.db", folder.path);
  use_compiler();
  draw_matrix(&a, &random, 1);
  for (int i = 0; i < PROBLEMS; i++) {
    problems[i] = (wlm_problem)WLM_PROBLEM_INIT;
    problems[i].n = DRAWN_N;
  }
  problems[1].reduce = WLM_CUSTOM;
  problems[1].custom = "message=max(a*b,0);init=0;reduce=acc+x;combine=reduce";
  problems[1].epilogue.activation = "relu";
  problems[1].transpose = 1;
  problems[2].reduce = WLM_MAX;
  problems[2].dense_type = WLM_F32;
  problems[2].policy.expected_calls = 1000;
  problems[3].reduce = WLM_MIN;
  problems[3].want_argmax = 1;
  put_case();
  if (open_context(&context) != WLM_OK) return -1;
  for (int i = 0; i < PROBLEMS; i++) {
    assert_status(WLM_OK, multiply(context, &problems[i], variants[i]));
    memcpy(expected[i], c, sizeof c);
  }
  wlm_execute_args args = EXECUTE_ARGS(.b = a.b, .c = c);
  assert_status(WLM_OK, wlm_spmm(context, &a.csr, &problems[1], &args));
  assert_string_equal(variants[0], TUNED);
  wlm_context_destroy(context);
  write_whole(folder_file(&folder, "closed"), "", 0);
  return 0;
}

GROUP(setup, folder_end)

int main(void) {
  failing_malloc_open();
  return test_run();
}
