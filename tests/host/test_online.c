/* Online tuning on the host device. Kernels really run and are checked, but their times are planted: the device's
 * watches are replaced, so nothing depends on real time. A kernel is identified by its launch, and gets a planted time
 * by the order in which kernels are first watched; the first contender comes first. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/synth/input.h"
#include "runtime/context.h"
#include "support/calls.h"
#include "support/command.h"
#include "support/emit_fixture.h"
#include "support/exact.h"
#include "support/test.h"
#include "tuner/upload.h"
#include "warploom/warploom_tune.h"

#define SKEWED "synth:rows=150,d=8,cv=2"
#define FIRST  "host_row/rows=16,tile=16"
enum { N = 16, KERNELS = 16 };

/* ---- a device with planted times --------------------------------------------------------------------- */

static const wlmi_device_ops *real;
static struct world {
  wlmi_device_ops ops;
  double seconds[KERNELS]; /* indexed by the order in which kernels are first timed */
  void *kernels[KERNELS];
  int seen, delay;         /* delay: polls without a result before the one that has it */
  void *running, *refused; /* refused: a kernel that the device does not launch */
  double watched[2];       /* of the two watches: the time of the kernel, and how often it was polled since */
  wlmi_watch *watches[2];
  int asked[2];
  int captured, executing, forbidden; /* forbidden: calls that an execute must not make */
  int started;
  int64_t launches[KERNELS + 1]; /* of kernels in the same order; the last counts launches of other kernels */
} world;

static int sight_of(void *kernel) {
  for (int i = 0; i < world.seen; i++)
    if (world.kernels[i] == kernel) return i;
  return KERNELS;
}

static wlm_status launch(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                         void *stream) {
  world.running = launch->kernel;
  if (world.executing && launch->kernel == world.refused) return wlmi_fail(WLM_ERR_DEVICE, "not today");
  world.launches[sight_of(launch->kernel)]++;
  return real->launch(device, launch, args, stream);
}

static int index_of(wlmi_watch *watch) {
  for (int i = 0; i < 2; i++) {
    if (!world.watches[i]) world.watches[i] = watch;
    if (world.watches[i] == watch) return i;
  }
  fail_msg("a third watch");
  return 0;
}

static wlm_status watch_start(wlmi_watch *watch, void *stream) {
  (void)stream;
  assert_false(world.captured);
  world.started++;
  world.asked[index_of(watch)] = -1;
  return WLM_OK;
}

static wlm_status watch_stop(wlmi_watch *watch, void *stream) {
  (void)stream;
  const int i = index_of(watch);
  if (sight_of(world.running) == KERNELS) world.kernels[world.seen++] = world.running;
  assert_int_equal(world.asked[i], -1);
  world.watched[i] = world.seconds[sight_of(world.running)];
  world.asked[i] = 0;
  return WLM_OK;
}

static wlm_status watch_poll(wlmi_watch *watch, int *done, double *seconds) {
  const int i = index_of(watch);
  assert_false(world.captured);
  assert_true(world.asked[i] >= 0);
  *done = !world.executing || world.asked[i]++ >= world.delay;
  *seconds = world.watched[i];
  return WLM_OK;
}

static int is_captured(wlmi_device *device, void *stream) { return (void)device, (void)stream, world.captured; }

static wlm_status synchronize(wlmi_device *device, void *stream) {
  world.forbidden += world.executing;
  return real->synchronize(device, stream);
}
static wlm_status allocate(wlmi_device *device, size_t size, void **memory) {
  world.forbidden += world.executing;
  return real->allocate(device, size, memory);
}
static wlm_status compile(wlmi_device *device, const wlmi_program *program, void **image, size_t *size) {
  world.forbidden += world.executing;
  return real->compile(device, program, image, size);
}

/* Allocations on the host count as well. */
static void *host_allocate(void *user, size_t size) {
  return (void)user, world.forbidden += world.executing, malloc(size);
}
static void *host_reallocate(void *user, void *old, size_t size) {
  return (void)user, world.forbidden += world.executing, realloc(old, size);
}
static void host_release(void *user, void *old) { (void)user, world.forbidden += world.executing, free(old); }
static const wlm_allocator counting = {host_allocate, host_reallocate, host_release, NULL};

/* ---- context, matrix and options --------------------------------------------------------------------- */

typedef struct bench {
  char database[320];
  wlm_context *context;
  wlmi_csr_host csr;
  wlmi_upload upload;
  wlm_problem problem;
  wlm_online_options options;
  exact_product exact;
  float *c;
} bench;

static wlm_context *open_context(const char *database, const char *templates) {
  wlm_context_options options =
      CONTEXT_OPTIONS(.device = "host", .database = database, .system_database = "", .templates = templates);
  GET(wlm_context *, context, wlm_context_create(&options, &context));
  real = wlmi_context_device(context)->ops;
  world = (struct world){.ops = *real};
  for (int i = 0; i < KERNELS; i++) world.seconds[i] = 1e-3;
  world.ops.launch = launch;
  world.ops.watch_start = watch_start;
  world.ops.watch_stop = watch_stop;
  world.ops.watch_poll = watch_poll;
  world.ops.is_captured = is_captured;
  world.ops.synchronize = synchronize;
  world.ops.allocate = allocate;
  world.ops.compile = compile;
  wlmi_context_device(context)->ops = &world.ops;
  return context;
}

static void bench_make_on(bench *b, const char *database, const char *templates, const char *input) {
  const wlm_problem problem = WLM_PROBLEM_INIT;
  const wlm_online_options options = WLM_ONLINE_OPTIONS_INIT;
  *b = (bench){.problem = problem, .options = options};
  b->problem.n = N;
  b->options.first = templates ? NULL : FIRST;
  snprintf(b->database, sizeof b->database, "%s", database);
  b->context = open_context(database, templates);
  assert_status(WLM_OK, wlmi_input_read(input, &b->csr));
  assert_status(WLM_OK, wlmi_upload_create(b->context, &b->csr, WLM_I32, &b->upload));
  exact_product_make(&b->csr, N, &b->exact);
  b->c = malloc(b->exact.c_size);
}

static void bench_make(bench *b) {
  static int count;
  char path[320];
  snprintf(path, sizeof path, "%s/tuned-%d.db", folder.path, count++);
  bench_make_on(b, path, NULL, SKEWED);
}

static void bench_release(bench *b) {
  wlmi_upload_release(&b->upload);
  wlmi_csr_host_release(&b->csr);
  wlm_context_destroy(b->context);
  exact_product_release(&b->exact);
  free(b->c);
}

static void plant(const double *seconds, int count) { memcpy(world.seconds, seconds, (size_t)count * sizeof *seconds); }

static wlm_plan *online_of(bench *b) {
  memset(world.watches, 0, sizeof world.watches);
  GET(wlm_plan *, online, wlm_plan_create_online(b->context, b->upload.matrix, &b->problem, &b->options, &online));
  assert_int_equal(wlm_plan_workspace_size(online), 0); /* an online plan allocates its own workspace */
  assert_int_equal(wlm_plan_prepared_size(online), 0);
  memset(world.launches, 0, sizeof world.launches);
  world.started = 0;
  return online;
}

/* Executes and compares with the expected result; execute must make no forbidden call. */
static void execute(bench *b, wlm_plan *online, int count) {
  for (int i = 0; i < count; i++) {
    memset(b->c, 0xFF, b->exact.c_size);
    world.executing = 1;
    const wlm_status status = test_execute(online, b->exact.b, b->c, NULL);
    world.executing = 0;
    assert_status(WLM_OK, status);
    if (memcmp(b->c, b->exact.c, b->exact.c_size)) fail_msg("call %d gave another result", i);
  }
  assert_int_equal(world.forbidden, 0);
}

static wlm_online_state tell(const wlm_plan *online) {
  wlm_online_state state = WLM_ONLINE_STATE_INIT;
  assert_status(WLM_OK, wlm_plan_online_state(online, &state));
  assert_string_equal(wlm_plan_variant(online), state.variant);
  return state;
}

/* Loads the records of a database; returns 0 if there is no database. */
static int64_t stored(const char *path, wlmi_measurement_record **records) {
  OWNED(wlm_store) *store = NULL;
  *records = NULL;
  wlm_status status = wlmi_store_open(path, WLMI_STORE_READ, &store);
  if (status == WLM_ERR_NOT_FOUND) return 0;
  assert_status(WLM_OK, status);
  GET(int64_t, count, wlmi_store_load(store, NULL, records, &count));
  return count;
}

/* ---- tuning ---------------------------------------------------------------------------------------- */

/* From a slow first kernel to the fastest one, for any delay of times. The result is stored, and the next context
 * begins with it. */
TEST(finds_the_fastest_and_stores_it) {
  for (int delay = 0; delay < 4; delay += 3) {
    char best[WLMI_VARIANT_NAME];
    wlmi_measurement_record *records;
    MAKE(bench, b);
    plant((const double[]){1e-3, 1.3e-3, 0.7e-3, 0.9e-3, 1.9e-3}, 5);
    wlm_plan *online = online_of(&b);
    assert_string_equal(tell(online).variant, FIRST);
    assert_int_equal(tell(online).challengers, 4);
    assert_int_equal(world.seen, 5);
    world.delay = delay;
    execute(&b, online, 6000);
    const wlm_online_state end = tell(online);
    assert_true(end.settled && end.replacements == 1 && end.calls == 6000);
    assert_true(fabs(end.seconds - 0.7e-3) < 1e-9 && fabs(end.first_seconds - 1e-3) < 1e-9);
    assert_true(end.lost_seconds > 0 && end.lost_seconds <= 0.02 * 6000 * 1e-3);
    assert_string_not_equal(end.variant, FIRST);
    snprintf(best, sizeof best, "%s", end.variant);
    const int64_t before = world.launches[2], started = world.started;
    execute(&b, online, 100); /* after settling, calls are not timed */
    assert_int_equal(world.launches[2], before + 100);
    assert_int_equal(world.started, started);
    assert_int_equal(stored(b.database, &records), 0); /* records are stored only when the plan is closed */
    assert_status(WLM_OK, wlm_plan_online_close(online));
    assert_status(WLM_OK, wlm_plan_online_close(online));
    execute(&b, online, 3);
    wlm_plan_destroy(online);

    const int64_t count = stored(b.database, &records);
    assert_int_equal(count, 4); /* the last kernel never ran, because its expected time was far above the best */
    for (int64_t i = 0; i < count; i++) {
      assert_string_equal(records[i].clock, "online");
      assert_true(records[i].samples >= 1 && records[i].samples <= 24 && records[i].max_rel_err >= 0);
      if (!strcmp(records[i].variant, best)) assert_int_equal(records[i].time_ps, 700000000);
      if (!strcmp(records[i].variant, FIRST)) assert_int_equal(records[i].time_ps, 1000000000);
    }
    wlmi_measurements_free(records, count);
    HELD(bench) again;
    bench_make_on(&again, b.database, NULL, SKEWED);
    OWN(wlm_plan, plan, wlm_plan_create(again.context, again.upload.matrix, &again.problem, &plan));
    assert_string_equal(wlm_plan_variant(plan), best);
    WLM_FREED GET(char *, text, wlm_plan_explain(plan, 1, &text));
    assert_contains(text, "\"step\":\"fingerprint\"");
  }
}

static int count_finalists(void *user, int64_t done, int64_t total, const wlm_candidate_result *last) {
  (void)done, (void)total;
  *(int *)user += last && last->samples >= 3;
  return 0;
}

/* Times of online tuning do not count as tuned: a tuning measures all candidates, and then its times decide. */
TEST(tuning_overrides_online_tuning) {
  int finalists = 0, hot = 0;
  wlmi_measurement_record *records;
  MAKE(bench, b);
  b.options.challengers = 2;
  plant((const double[]){1e-12, 0.5e-12, 0.7e-12}, 3); /* faster than any real kernel */
  wlm_plan *online = online_of(&b);
  execute(&b, online, 4000);
  wlm_plan_destroy(online); /* closes it as well */
  assert_int_equal(stored(b.database, &records), 3);
  wlmi_measurements_free(records, 3);
  wlmi_context_device(b.context)->ops = real;
  wlm_tune_options tune =
      TUNE_OPTIONS(.min_sample_seconds = 1e-5, .samples = 3, .progress = count_finalists, .user = &finalists);
  assert_status(WLM_OK, wlm_tune(b.context, b.upload.matrix, &b.problem, NULL, &tune));
  assert_true(finalists > 0);
  const int64_t count = stored(b.database, &records);
  for (int64_t i = 0; i < count; i++) hot += !strcmp(records[i].clock, "hot") && records[i].samples == 1;
  const wlmi_candidate_list *names;
  GET(wlmi_spec, spec, wlmi_context_spec(b.context, b.upload.matrix, &b.problem, &spec));
  assert_status(WLM_OK, wlmi_generator_describe(wlmi_context_generator(b.context), &spec,
                                                &wlmi_context_device(b.context)->info.limits, &names));
  assert_int_equal(hot, names->count);
  wlmi_candidates_drop(names);

  int precise = 0;
  GET(wlm_plan *, plan, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  for (int64_t i = 0; i < count; i++)
    precise |= !strcmp(records[i].variant, wlm_plan_variant(plan)) && !strcmp(records[i].clock, "hot") &&
               records[i].samples >= 3;
  assert_true(precise);
  wlm_plan_destroy(plan);
  wlmi_measurements_free(records, count);
}

/* In a capture the plan runs one kernel and times nothing; a pair of trials that a capture interrupts is discarded. */
TEST(captures_run_one_kernel) {
  MAKE(bench, b);
  plant((const double[]){1e-3, 0.5e-3}, 2);
  b.options.challengers = 1;
  OWNED(wlm_plan) *online = online_of(&b);
  world.captured = 1;
  execute(&b, online, 500);
  assert_int_equal(world.started, 0);
  assert_int_equal(world.launches[0], 500);
  assert_int_equal(tell(online).trials, 0);
  world.captured = 0;
  while (tell(online).trials < 1) execute(&b, online, 1);
  world.captured = 1;
  execute(&b, online, 1);
  world.captured = 0;
  for (int i = 0; i < 40; i++) { /* occasional captures */
    execute(&b, online, 29);
    world.captured = 1;
    const int64_t incumbent = world.launches[tell(online).replacements], started = world.started;
    execute(&b, online, 2);
    assert_int_equal(world.launches[tell(online).replacements], incumbent + 2);
    assert_int_equal(world.started, started);
    world.captured = 0;
  }
  assert_int_equal(tell(online).replacements, 1);
}

/* If the device cannot launch a challenger, the incumbent serves the call. */
TEST(a_failing_challenger_is_dropped) {
  MAKE(bench, b);
  plant((const double[]){1e-3, 0.5e-3, 0.8e-3}, 3);
  b.options.challengers = 2;
  OWNED(wlm_plan) *online = online_of(&b);
  world.refused = world.kernels[1];
  execute(&b, online, 2000);
  assert_int_equal(world.launches[1], 0);
  assert_int_equal(tell(online).replacements, 1);
  assert_true(fabs(tell(online).seconds - 0.8e-3) < 1e-9);
  world.refused = world.kernels[2];
  assert_status(WLM_ERR_DEVICE, (world.executing = 1, test_execute(online, b.exact.b, b.c, NULL)));
  world.executing = 0;
}

/* Invalid calls do not count against a kernel. */
TEST(invalid_calls_are_refused) {
  MAKE(bench, b);
  plant((const double[]){1e-3, 0.5e-3}, 2);
  b.options.challengers = 1;
  wlm_plan *online = online_of(&b);
  for (int i = 0; i < 100; i++) {
    assert_status(WLM_ERR_INVALID_ARGUMENT, test_execute(online, b.exact.b, NULL, NULL));
    assert_status(WLM_ERR_INVALID_ARGUMENT, test_execute_sddmm(online, b.exact.b, b.exact.b, b.c, NULL));
  }
  execute(&b, online, 2000);
  assert_int_equal(tell(online).replacements, 1);
  wlm_online_state state_of_another = WLM_ONLINE_STATE_INIT;
  state_of_another.size--;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_online_state(online, &state_of_another));
  const wlm_csr *same = wlmi_matrix_csr(b.upload.matrix);
  assert_status(WLM_ERR_UNSUPPORTED, wlm_plan_rebind(online, same));
  execute(&b, online, 10);
  wlm_plan_destroy(online);
  wlm_plan_destroy(NULL);

  wlm_plan *plan; /* an ordinary plan has no online state */
  assert_status(WLM_OK, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  state_of_another.size++;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_plan_online_state(plan, &state_of_another), "wlm_plan_create_online");
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_online_close(plan));
  wlm_plan_destroy(plan);

  for (int i = 0; i < 7; i++) {
    wlm_online_options o = WLM_ONLINE_OPTIONS_INIT;
    static const char *const says[] = {"size",    "share",       "share",         "slowdown",
                                       "abandon", "challengers", "no_such_family"};
    if (i == 0) o.size = 3;
    if (i == 1) o.share = 0;
    if (i == 2) o.share = 0.51;
    if (i == 3) o.slowdown = (double)NAN;
    if (i == 4) o.abandon = 1;
    if (i == 5) o.challengers = 9;
    if (i == 6) o.first = "no_such_family/x=1";
    assert_status(WLM_ERR_INVALID_ARGUMENT,
                  wlm_plan_create_online(b.context, b.upload.matrix, &b.problem, &o, &online));
    assert_contains(wlm_error_detail(), says[i]);
    assert_null(online);
  }
}

/* ---- which kernels are tried ------------------------------------------------------------------------- */

static char templates[320];

/* Adds a family that sums each row from the edge `first_edge` on. `statement` may make it wrong, and `more` makes it
 * prepared. */
static void add_family(const char *name, const char *first_edge, const char *statement, const char *more) {
  static const char family[] =
      "return { target = \"host\", summary = \"a test\", parameters = {},%s\n"
      "  passes = function() return {%s { kernel = \"%s\", units = \"rows\" } } end }\n";
  static const char kernel[] =
      "WLM_KERNEL(%s_prepare) { *(long long *)args->prepared = args->rows; }\n"
      "WLM_KERNEL(%s) {\n"
      "  for (long long row = 0; row < unit_blocks; row++)\n"
      "    for (long long j = 0; j < args->n; j++) {\n"
      "      const long long begin = wlm_begin(args, row), degree = wlm_begin(args, row + 1) - begin;\n"
      "      wlm_acc_t acc = wlm_init();\n"
      "      for (long long i = 0; i < degree; i++) {\n"
      "        const long long p = begin + (i + %s) %% degree;\n"
      "        acc = wlm_reduce(acc, wlm_message(wlm_load_a(args, p),\n"
      "          wlm_load_b((const wlm_b_t *)args->b + wlm_column(args, p) * args->ldb + j)));\n"
      "      }\n"
      "      %s\n"
      "      wlm_store(args, (wlm_c_t *)args->c + row * args->ldc + j, j, wlm_finish(acc, degree));\n"
      "    }\n"
      "}\n";
  char text[2048], pass[128] = "";
  test_folder inside;
  if (*more) snprintf(pass, sizeof pass, " { kernel = \"%s_prepare\", when = \"prepare\", units = \"one\" },", name);
  snprintf(inside.path, sizeof inside.path, "%.200s/templates", folder.path);
  snprintf(text, sizeof text, family, more, pass, name);
  emit_write(&inside, name, "family.lua", text);
  snprintf(text, sizeof text, kernel, name, name, first_edge, statement);
  emit_write(&inside, name, "kernel.c.in", text);
}

static void bench_make_small(bench *b, const char *database) {
  bench_make_on(b, database, templates, "uniform:rows=60,d=5");
  b->options.first = "a_plain";
  b->options.challengers = 8;
}

TEST(wrong_kernels_are_never_tried) {
  HELD(bench) b;
  bench_make_small(&b, "");
  wlm_plan *online = online_of(&b);
  assert_int_equal(tell(online).challengers, 2); /* not the wrong one, and for a single call not the prepared one */
  execute(&b, online, 3000);
  wlm_plan_destroy(online);

  b.problem.policy.expected_calls = 1000;
  online = online_of(&b);
  assert_int_equal(tell(online).challengers, 3);
  execute(&b, online, 100);
  wlm_plan_destroy(online);

  b.options.first = "b_wrong";
  assert_status(WLM_ERR_MISMATCH, wlm_plan_create_online(b.context, b.upload.matrix, &b.problem, &b.options, &online));
  assert_null(online);
}

/* The reversed sum is correct and deterministic, but its bits differ from those of the first kernel. */
TEST(deterministic_plans_keep_their_bits) {
  HELD(bench) b;
  bench_make_small(&b, "");
  b.problem.policy.deterministic = 1;
  OWNED(wlm_plan) *online = online_of(&b);
  assert_int_equal(tell(online).challengers, 1);
  plant((const double[]){1e-3, 0.5e-3}, 2);
  execute(&b, online, 2000);
}

TEST(prepare_times_are_stored) {
  HELD(bench) b;
  wlmi_measurement_record *records;
  int prepared = 0;
  const char *path = in_folder("prepared.db");
  bench_make_small(&b, path);
  b.problem.policy.expected_calls = 1000;
  wlm_plan *online = online_of(&b);
  execute(&b, online, 20000);
  assert_true(tell(online).settled);
  assert_status(WLM_OK, wlm_plan_online_close(online));
  wlm_plan_destroy(online);
  const int64_t count = stored(path, &records);
  assert_int_equal(count, 4);
  for (int64_t i = 0; i < count; i++) {
    assert_int_equal(!strcmp(records[i].variant, "d_prepared"), records[i].prepare_ps > 0);
    prepared += records[i].prepare_ps > 0;
  }
  assert_int_equal(prepared, 1);
  wlmi_measurements_free(records, count);
}

/* ---- plans without challengers or without a database ------------------------------------------------ */

TEST(empty_products_and_few_calls) {
  wlmi_measurement_record *records;
  MAKE(bench, b);
  b.problem.n = 0;
  wlm_plan *online = online_of(&b);
  assert_int_equal(tell(online).challengers, 0);
  assert_status(WLM_OK, test_execute(online, NULL, NULL, NULL));
  wlm_plan_destroy(online);

  b.problem.n = N;
  b.options.challengers = 0;
  online = online_of(&b);
  execute(&b, online, 100);
  assert_true(tell(online).settled);
  assert_int_equal(world.started, 0);
  wlm_plan_destroy(online);

  b.options.challengers = 3;
  b.options.matrix_name = "a name";
  online = online_of(&b);
  execute(&b, online, 20);
  assert_status(WLM_OK, wlm_plan_online_close(online));
  wlm_plan_destroy(online);
  assert_int_equal(stored(b.database, &records), 0); /* no decision was made */
}

TEST(no_database_is_no_error) {
  HELD(bench) b;
  bench_make_on(&b, "", NULL, SKEWED);
  b.options.challengers = 2;
  plant((const double[]){1e-3, 0.5e-3, 2e-3}, 3);
  OWNED(wlm_plan) *online = online_of(&b);
  execute(&b, online, 2000);
  assert_status(WLM_OK, wlm_plan_online_close(online));
}

/* A folder instead of a database, as an example of a path that cannot be written. */
TEST(an_unwritable_database_is_an_error) {
  HELD(bench) b;
  bench_make_on(&b, folder.path, NULL, SKEWED);
  b.options.challengers = 2;
  plant((const double[]){1e-3, 0.5e-3, 2e-3}, 3);
  OWNED(wlm_plan) *online = online_of(&b);
  execute(&b, online, 2000);
  assert_status(WLM_ERR_DATABASE, wlm_plan_online_close(online));
  execute(&b, online, 10);
}

/* Runs in a new process, because OpenMP's threads do not survive a fork. */
static int tune_and_die(const char *database) {
  bench b;
  bench_make_on(&b, database, NULL, "uniform:rows=60,d=5");
  b.options.challengers = 2;
  plant((const double[]){1e-3, 0.5e-3, 2e-3}, 3);
  execute(&b, online_of(&b), 300);
  abort();
}

/* A plan that is killed before its close stores nothing and creates no file. */
TEST(a_killed_plan_stores_nothing) {
  wlmi_measurement_record *records;
  const char *path = in_folder("killed.db");
  fflush(NULL);
  const pid_t child = fork();
  if (!child) {
    execl("/proc/self/exe", "test_online", path, (char *)NULL);
    _exit(1);
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
  assert_int_equal(stored(path, &records), 0);
}

/* ---- real times --------------------------------------------------------------------------------------- */

/* Compares with the largest message of each row and its first edge. */
static void check_positions(const bench *b, const int32_t *positions) {
  const wlmi_csr_host *a = &b->csr;
  for (int64_t row = 0; row < a->rows; row++)
    for (int64_t j = 0; j < N; j++) {
      int64_t best = -1;
      float most = 0;
      for (int64_t p = a->rowptr[row]; p < a->rowptr[row + 1]; p++) {
        const float message = a->values[p] * b->exact.b[a->colind[p] * N + j];
        if (best < 0 || message > most) best = p, most = message;
      }
      assert_int_equal(positions[row * N + j], best);
      assert_true(b->c[row * N + j] == most);
    }
}

/* With real times the results are correct, also with argmax indices and for SDDMM. */
TEST(results_are_correct_with_real_times) {
  MAKE(bench, b);
  wlmi_context_device(b.context)->ops = real;
  OWNED(wlm_plan) *online = online_of(&b);
  execute(&b, online, 1500);
  assert_true(tell(online).first_seconds > 0);
  wlm_plan_destroy(online);

  FREED int32_t *positions = malloc(b.exact.c_size);
  b.problem.reduce = WLM_MAX;
  b.problem.want_argmax = 1;
  online = online_of(&b);
  assert_true(tell(online).challengers > 0);
  assert_status(WLM_ERR_INVALID_ARGUMENT, test_execute(online, b.exact.b, b.c, NULL));
  for (int i = 0; i < 300; i++) {
    memset(positions, 0xA5, b.exact.c_size);
    assert_status(WLM_OK, test_execute_argmax(online, b.exact.b, b.c, positions, NULL));
    check_positions(&b, positions);
  }
  wlm_plan_destroy(online);

  b.problem.reduce = WLM_SUM;
  b.problem.want_argmax = 0;
  b.problem.operation = WLM_SDDMM;
  b.options.first = NULL;
  online = online_of(&b);
  const wlmi_csr_host *a = &b.csr;
  FREED float *values = malloc((size_t)a->nnz * sizeof *values);
  for (int i = 0; i < 300; i++) {
    memset(values, 0xFF, (size_t)a->nnz * sizeof *values);
    assert_status(WLM_OK, test_execute_sddmm(online, b.exact.b, b.exact.b, values, NULL));
    for (int64_t row = 0; row < a->rows; row += 37)
      for (int64_t p = a->rowptr[row]; p < a->rowptr[row + 1]; p++) {
        float sum = 0;
        for (int j = 0; j < N; j++) sum += b.exact.b[row * N + j] * b.exact.b[a->colind[p] * N + j];
        assert_true(values[p] == sum);
      }
  }
}

static int begin(void **state) {
  home_begin(state);
  wlm_set_allocator(&counting);
  snprintf(templates, sizeof templates, "%s/templates", folder.path);
  emit_write(&folder, "templates", "unused", "");
  add_family("a_plain", "0", "", "");
  add_family("b_wrong", "0", "if (row == 7) acc *= 1.0001f;", "");
  add_family("c_reversed", "degree - 1", "", "");
  add_family("d_prepared", "0", "", " prepared = function() return { one = 8 } end,");
  add_family("e_plain", "0", "", "");
  return 0;
}

static int end(void **state) {
  wlm_set_allocator(NULL);
  return folder_end(state);
}

GROUP(begin, end)

int main(int argc, char **argv) {
  if (argc == 2) return tune_and_die(argv[1]);
  return test_run();
}
