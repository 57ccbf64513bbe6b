/* Prepared plans from the template to the command, on the host device, with a family that prepares and one that does
 * not, in a test's folder of templates. Planted measurements decide which is chosen, not real times. */
#include <pthread.h>
#include <sys/stat.h>

#include "runtime/devices.h"
#include "support/calls.h"
#include "support/command.h"
#include "support/emit_fixture.h"
#include "support/host_bench.h"
#include "support/kernel_check.h"
#include "support/stats.h"
#include "support/test.h"
#include "support/verified.h"
#include "warploom/warploom_tune.h"

#define INPUT "uniform:rows=41,d=5"
enum { ROWS = 41, N = 9, ROWS_OF_A_BLOCK = 4, BLOCKS = (ROWS + ROWS_OF_A_BLOCK - 1) / ROWS_OF_A_BLOCK };

/* ---- the families ------------------------------------------------------------------------------- */

/* The prepare pass stores where each row begins and how long it is, and the number of each block of the execute
 * pass. Wrong prepared data changes the result. */
static const char ready_family[] =
    "return { target = \"host\", summary = \"a test\", parameters = {},\n"
    "  passes = function() return {\n"
    "    { kernel = \"ready_prepare\", when = \"prepare\", units = \"one\" },\n"
    "    { kernel = \"ready\", units = \"rows\", units_per_block = 4 } } end,\n"
    "  prepared = function() return { rows = 16, blocks = 8 } end }\n";
static const char ready_kernel[] =
    "typedef struct { long long begin, degree; } piece;\n"
    "WLM_KERNEL(ready_prepare) {\n"
    "  piece *pieces = (piece *)args->prepared;\n"
    "  long long *numbers = (long long *)(pieces + args->rows);\n"
    "  for (long long row = 0; row < args->rows; row++) {\n"
    "    pieces[row].begin = wlm_begin(args, row);\n"
    "    pieces[row].degree = wlm_begin(args, row + 1) - wlm_begin(args, row);\n"
    "    numbers[row / 4] = row / 4;\n"
    "  }\n"
    "}\n"
    "WLM_KERNEL(ready) {\n"
    "  const piece *pieces = (const piece *)args->prepared;\n"
    "  const long long *numbers = (const long long *)(pieces + args->rows);\n"
    "#pragma omp parallel for num_threads(threads)\n"
    "  for (long long block = 0; block < unit_blocks; block++)\n"
    "    for (long long row = 4 * numbers[block]; row < 4 * numbers[block] + 4 && row < args->rows; row++)\n"
    "% include \"prelude/one_row\"\n"
    "}\n";
static const char plain_family[] =
    "return { target = \"host\", summary = \"a test\", parameters = {},\n"
    "  passes = function() return { { kernel = \"plain\", units = \"rows\" } } end }\n";
static const char plain_kernel[] =
    "typedef struct { long long begin, degree; } piece;\n"
    "WLM_KERNEL(plain) {\n"
    "  for (long long row = 0; row < unit_blocks; row++) {\n"
    "    const piece whole[1] = {{wlm_begin(args, row), wlm_begin(args, row + 1) - wlm_begin(args, row)}};\n"
    "    const piece *pieces = whole - row;\n"
    "% include \"prelude/one_row\"\n"
    "  }\n"
    "}\n";
static const char one_row[] =
    "      for (long long j = 0; j < args->n; j++) {\n"
    "        wlm_acc_t acc = wlm_init();\n"
    "        for (long long p = pieces[row].begin; p < pieces[row].begin + pieces[row].degree; p++)\n"
    "          acc = wlm_reduce(acc, wlm_message(wlm_load_a(args, p),\n"
    "            wlm_load_b((const wlm_b_t *)args->b + wlm_column(args, p) * args->ldb + j)));\n"
    "        wlm_store(args, (wlm_c_t *)args->c + row * args->ldc + j, j, wlm_finish(acc, pieces[row].degree));\n"
    "      }\n";

static char templates[320];

static int begin(void **state) {
  home_begin(state);
  snprintf(templates, sizeof templates, "%s/templates", folder.path);
  assert_int_equal(mkdir(templates, 0700), 0);
  test_folder inside;
  snprintf(inside.path, sizeof inside.path, "%.200s/templates", folder.path);
  emit_write(&inside, "prelude", "one_row", one_row);
  emit_write(&inside, "ready", "family.lua", ready_family);
  emit_write(&inside, "ready", "kernel.c.in", ready_kernel);
  emit_write(&inside, "plain", "family.lua", plain_family);
  emit_write(&inside, "plain", "kernel.c.in", plain_kernel);
  return 0;
}

/* ---- context, matrix and measurements --------------------------------------------------------------- */

/* Stores a measurement of this matrix and problem, as the tuner does. */
static void plant(bench *b, const char *variant, int64_t time_ps, int64_t prepare_ps) {
  char key[WLMI_SPEC_KEY];
  GET(wlmi_spec, spec, wlmi_context_spec(b->context, b->upload.matrix, &b->problem, &spec));
  wlmi_spec_key(&spec, key);
  wlmi_measurement_record record = {.stats = test_stats_of(&b->csr),
                                    .variant = (char *)variant,
                                    .version = "00000000000000000000000000000001",
                                    .problem = key,
                                    .n = N,
                                    .time_ps = time_ps,
                                    .prepare_ps = prepare_ps,
                                    .samples = 9,
                                    .calls_per_sample = 10};
  record.device = wlmi_device_record_of(wlmi_context_device(b->context));
  GET(wlm_store *, store, wlmi_store_open(b->database, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
  wlmi_store_close(store);
  assert_status(WLM_OK, wlm_context_refresh(b->context));
}

/* ready takes half of plain's time, and its preparation 8 times the difference: equal at 8 calls. */
static void plant_both(bench *b) {
  plant(b, "plain", 100000000, 0);
  plant(b, "ready", 50000000, 400000000);
}

static wlm_plan *plan_for(bench *b, int64_t calls) {
  b->problem.policy.expected_calls = calls;
  GET(wlm_plan *, plan, wlm_plan_create(b->context, b->upload.matrix, &b->problem, &plan));
  return plan;
}

/* ---- the kernels ----------------------------------------------------------------------------------- */

TEST(the_kernels_are_correct) {
  static const char *const variants[] = {"plain", "ready"};
  OWN(wlmi_generator, generator, wlmi_generator_create(templates, &generator));
  OWN(wlmi_device, device, wlmi_host_device_open(&device));
  for (int i = 0; i < 2; i++) {
    wlmi_spec spec = emit_spec(33);
    const kernel_check check = {.device = device, .spec = &spec, .runs = 3, .seed = 5};
    GET(const wlmi_candidate_list *, list, wlmi_generator_describe(generator, &spec, &device->info.limits, &list));
    assert_int_equal(wlmi_candidate_named(list, variants[i])->prepares, i);
    wlmi_candidates_drop(list);
    HOLD(wlmi_program, program, wlmi_generator_emit(generator, variants[i], &spec, &device->info.limits, &program));
    assert_status(WLM_OK, kernel_check_program(&check, &program));
  }
}

/* ---- tuning ------------------------------------------------------------------------------------------ */

static int listen_to(void *user, int64_t done, int64_t total, const wlm_candidate_result *last) {
  int *prepared = user;
  (void)done, (void)total;
  if (!last || last->failed) return 0;
  assert_int_equal(last->prepare_seconds > 0, !strcmp(last->variant, "ready"));
  *prepared += last->prepare_seconds > 0;
  return 0;
}

static wlm_tune_options quick(int *prepared) {
  return (wlm_tune_options)TUNE_OPTIONS(.min_sample_seconds = 1e-5, .samples = 3, .progress = listen_to,
                                        .user = prepared);
}

static void check_record(void *user, const wlmi_measurement_record *record) {
  const int ready = !strcmp(record->variant, "ready"), fails = *(int *)user && ready;
  assert_int_equal(record->failed, fails);
  assert_int_equal(record->prepare_ps > 0, ready && !fails);
  if (fails) assert_contains(record->reason, "preparing: not today");
}

/* Each candidate has a screening run; each correct one also a precise and a cold time. */
static void check_stored(const bench *b, int preparing_fails) {
  wlmi_measurement_record *records;
  OWN(wlm_store, store, wlmi_store_open(b->database, WLMI_STORE_READ, &store));
  GET(int64_t, count, wlmi_store_load(store, NULL, &records, &count));
  assert_int_equal(count, preparing_fails ? 4 : 6);
  for (int64_t i = 0; i < count; i++) check_record(&preparing_fails, &records[i]);
  wlmi_measurements_free(records, count);
}

/* The tuner measures preparation even if the problem has expected_calls = 1, since the measurements also serve
 * others. */
TEST(preparing_is_measured) {
  HELD(bench) b, other;
  int prepared = 0;
  int64_t added = -1;
  wlm_tune_options options = quick(&prepared);
  bench_make(&b, templates, INPUT, N);
  assert_status(WLM_OK, wlm_tune(b.context, b.upload.matrix, &b.problem, NULL, &options));
  assert_int_equal(prepared, 2); /* two prepared candidates, since each kind has its own finalists */
  check_stored(&b, 0);
  WLM_FREED GET(char *, lines, wlm_export_string(b.context, &lines));
  assert_int_equal(count_lines(lines, "\"prepare_ps\":"), 3);
  bench_make(&other, templates, INPUT, N);
  assert_status(WLM_OK, wlm_import_string(other.context, lines, &added));
  assert_int_equal(added, count_lines(lines, "\"variant\":"));
  assert_status(WLM_OK, wlm_import_string(other.context, lines, &added));
  assert_int_equal(added, 0);
  check_stored(&other, 0);
}

/* A device on which prepare passes fail; they are recognised by b = NULL. */
static const wlmi_device_ops *real_ops;
static wlm_status launch_no_preparing(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                                      void *stream) {
  return args->b ? real_ops->launch(device, launch, args, stream) : wlmi_fail(WLM_ERR_DEVICE, "not today");
}

/* A failing preparation makes the candidate fail with a reason, and wlm_plan_prepare returns the error. With
 * expected_calls = 1 the candidate is not considered. */
TEST(a_failing_preparation) {
  int prepared = 0;
  wlm_tune_options options = quick(&prepared);
  FREED float *dense = calloc(ROWS, 2 * N * sizeof *dense);
  float *c = dense + ROWS * N;
  MAKE(bench, b, templates, INPUT, N);
  wlmi_device *device = wlmi_context_device(b.context);
  real_ops = device->ops;
  wlmi_device_ops failing = *real_ops;
  failing.launch = launch_no_preparing;
  device->ops = &failing;
  assert_status(WLM_OK, wlm_tune(b.context, b.upload.matrix, &b.problem, NULL, &options));
  assert_int_equal(prepared, 0);
  check_stored(&b, 1);

  MAKE(bench, planted, templates, INPUT, N);
  plant_both(&planted);
  wlmi_context_device(planted.context)->ops = &failing;
  wlm_plan *plan = plan_for(&planted, 1000);
  assert_string_equal(wlm_plan_variant(plan), "ready");
  FREED void *memory = malloc(wlm_plan_prepared_size(plan));
  assert_status(WLM_ERR_DEVICE, wlm_plan_prepare(plan, memory, NULL));
  assert_status(WLM_ERR_NOT_READY, test_execute(plan, dense, c, NULL));
  wlm_plan_destroy(plan);
  assert_int_equal(planted.problem.policy.expected_calls, 1000);
  assert_status(WLM_OK, test_spmm(planted.context, wlmi_matrix_csr(planted.upload.matrix), &planted.problem, dense, c));
  planted.problem.policy.expected_calls = 0;
  assert_status(WLM_ERR_INVALID_ARGUMENT,
                test_spmm(planted.context, wlmi_matrix_csr(planted.upload.matrix), &planted.problem, dense, c));
  device->ops = wlmi_context_device(planted.context)->ops = real_ops;
}

/* ---- choosing ---------------------------------------------------------------------------------------- */

TEST(expected_calls_decide) {
  static const struct {
    int64_t calls;
    const char *variant;
  } cases[] = {{1, "plain"}, {8, "plain"}, {9, "ready"}, {10, "ready"}, {1000000, "ready"}, {INT64_MAX, "ready"}};
  MAKE(bench, b, templates, INPUT, N);
  plant_both(&b);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    OWNED(wlm_plan) *plan = plan_for(&b, cases[i].calls);
    assert_string_equal(wlm_plan_variant(plan), cases[i].variant);
    assert_int_equal(wlm_plan_prepared_size(plan), !strcmp(cases[i].variant, "ready") ? 16 * ROWS + 8 * BLOCKS : 0);
  }
}

/* An old measurement without prepare time does not make a family that now prepares eligible for a single call. */
TEST(old_measurements_imply_no_preparation) {
  MAKE(bench, b, templates, INPUT, N);
  plant(&b, "plain", 100000000, 0);
  plant(&b, "ready", 50000000, 0);
  OWNED(wlm_plan) *plan = plan_for(&b, 1);
  assert_string_equal(wlm_plan_variant(plan), "plain");
}

static void check_explained(const wlm_plan *plan, const char *in_text, const char *const (*in_json)[2]) {
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 0, &text));
  assert_contains(text, in_text);
  wlm_string_free(text);
  assert_status(WLM_OK, wlm_plan_explain(plan, 1, &text));
  assert_true(json_is_valid(text));
  for (; (*in_json)[0]; in_json++) assert_json_at(text, (*in_json)[0], (*in_json)[1]);
}

TEST(explain_shows_the_break_even) {
  MAKE(bench, b, templates, INPUT, N);
  plant_both(&b);
  OWNED(wlm_plan) *plan = plan_for(&b, 1);
  check_explained(
      plan,
      "reused    ready                                    4.500x  50.00 us  prepare 400.00 us, pays from 9 calls on\n",
      (const char *const[][2]){{"$.expected_calls", "1"},
                               {"$.prepared_bytes", "0"},
                               {"$.ranking[0].variant", "plain"},
                               {"$.ranking[0].prepares", "0"},
                               {"$.other.variant", "ready"},
                               {"$.other.break_even", "9.0"},
                               {NULL, NULL}});
  wlm_plan_destroy(plan);
  plan = plan_for(&b, 100);
  check_explained(plan, "prepares  744 bytes; wlm_plan_prepare has not run\n",
                  (const char *const[][2]){{"$.expected_calls", "100"},
                                           {"$.prepared_bytes", "744"},
                                           {"$.is_prepared", "0"},
                                           {"$.ranking[0].variant", "ready"},
                                           {"$.ranking[0].us", "50.0"},
                                           {"$.ranking[0].prepare_us", "400.0"},
                                           {"$.ranking[0].break_even", "9.0"},
                                           {"$.other.variant", "plain"},
                                           {NULL, NULL}});
  FREED void *memory = malloc(wlm_plan_prepared_size(plan));
  assert_status(WLM_OK, wlm_plan_prepare(plan, memory, NULL));
  check_explained(plan, "prepares  744 bytes; done\n", (const char *const[][2]){{"$.is_prepared", "1"}, {NULL, NULL}});
  check_explained(plan, "no reuse  plain ", (const char *const[][2]){{NULL, NULL}});
}

/* ---- executing ----------------------------------------------------------------------------------------- */

TEST(unprepared_plans_are_not_ready) {
  MAKE(bench, b, templates, INPUT, N);
  HOLD(wlmi_operands, operands, wlmi_operands_create(b.context, b.upload.matrix, &b.problem, NULL, 3, &operands));
  OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 3, &verifier));
  /* a variant named by the caller may need preparation, even for a single call */
  OWN(wlm_plan, plan, wlm_plan_create_variant(b.context, b.upload.matrix, &b.problem, "ready", &plan));
  assert_fails(WLM_ERR_NOT_READY, wlmi_operands_call(&operands, plan, NULL, NULL), "wlm_plan_prepare");
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_prepare(plan, NULL, NULL));
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_prepare(plan, (void *)(uintptr_t)8, NULL)); /* misaligned */
  assert_status(WLM_ERR_NOT_READY, wlmi_operands_call(&operands, plan, NULL, NULL));
  wlm_execute_args args = EXECUTE_ARGS(.b = operands.call.b, .c = operands.output[0].buffer.memory,
                                       .prepared = (void *)(uintptr_t)8 /* misaligned */);
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_plan_execute(plan, &args), "prepared");
  GET(double, error, verify_plan(&operands, verifier, plan, &error));
}

typedef struct caller {
  const wlm_plan *plan;
  const float *b, *expected;
  float c[ROWS * N];
  int wrong;
} caller;

static void *call_again_and_again(void *user) {
  caller *who = user;
  for (int i = 0; i < 200 && !who->wrong; i++) {
    memset(who->c, 0xff, sizeof who->c);
    who->wrong =
        test_execute(who->plan, who->b, who->c, NULL) != WLM_OK || memcmp(who->c, who->expected, sizeof who->c);
  }
  return NULL;
}

/* A plan that was prepared once serves many threads and new values of A. */
TEST(one_preparation_serves_many_calls) {
  enum { THREADS = 4 };
  caller callers[THREADS];
  pthread_t threads[THREADS];
  MAKE(bench, b, templates, INPUT, N);
  plant_both(&b);
  OWNED(wlm_plan) *plan = plan_for(&b, 1000000);
  assert_string_equal(wlm_plan_variant(plan), "ready");
  HOLD(wlmi_operands, operands, wlmi_operands_create(b.context, b.upload.matrix, &b.problem, NULL, 3, &operands));
  OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 3, &verifier));
  HOLD(plan_memory, memory, plan_memory_make(&operands, plan, &memory));
  GET(double, error, verify_with(&operands, verifier, plan, &memory, &error));
  float *c = operands.output[0].buffer.memory, expected[ROWS * N];
  memcpy(expected, c, sizeof expected);
  for (int i = 0; i < THREADS; i++) {
    callers[i] = (caller){.plan = plan, .b = operands.call.b, .expected = expected};
    assert_int_equal(pthread_create(&threads[i], NULL, call_again_and_again, &callers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) assert_false(callers[i].wrong);

  float *values = b.upload.values; /* device memory of the host device is ordinary memory */
  for (int64_t p = 0; p < b.csr.nnz; p++) values[p] *= 2;
  assert_status(WLM_OK, wlmi_operands_call(&operands, plan, memory.workspace, NULL));
  for (int i = 0; i < ROWS * N; i++) assert_true(c[i] == 2 * expected[i]);
}

/* ---- the command ---------------------------------------------------------------------------------------- */

TEST(the_command_prepares) {
  command c;
  MAKE(bench, b, templates, INPUT, N);
  plant_both(&b);
  assert_int_equal(setenv("WARPLOOM_TEMPLATES", templates, 1), 0);
#define COMMON "-n", "9", "--device", "host", "--db", b.database
  c = RUN(0, "run", INPUT, COMMON, "--calls", "1000", "--check", "--json");
  assert_json(c.out, {"$.runs[0].variant", "ready"}, {"$.runs[0].prepared_bytes", "744"}, {"$.verified", "1"});
  char *prepare = json_at(c.out, "$.runs[0].prepare_us");
  assert_true(prepare && strtod(prepare, NULL) > 0);
  free(prepare);
  c = RUN(0, "run", INPUT, COMMON, "--calls", "1000");
  assert_contains(c.out, "prepare_us");
  c = RUN(0, "run", INPUT, COMMON);
  assert_contains(c.out, "plain");
  assert_null(strstr(c.out, "prepare"));
  c = RUN(0, "explain", INPUT, COMMON, "--calls", "10");
  assert_contains(c.out, "calls     10 expected", "pays from 9 calls on");
  c = RUN(2, "explain", INPUT, COMMON, "--calls", "0");
  assert_contains(c.err, "--calls must be 1 or more, not 0");
  c = RUN(0, "tune", INPUT, COMMON);
  assert_contains(c.out, "prepare us");
  assert_int_equal(unsetenv("WARPLOOM_TEMPLATES"), 0);
}

GROUP(begin, folder_end)
