/* Online tuning on the host device. Kernels really run and are checked, but their times are planted: the device's
 * watches are replaced, so nothing depends on real time. A kernel is identified by its launch, and gets a planted time
 * by the order in which kernels are first watched; the first contender comes first. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/memory.h"
#include "db/store.h"
#include "runtime/context.h"
#include "support/calls.h"
#include "support/command.h"
#include "support/emit_fixture.h"
#include "support/exact.h"
#include "synth/input.h"
#include "tuner/upload.h"
#include "warploom/warploom_tune.h"

#define SKEWED "synth:rows=150,d=8,cv=2"
#define FIRST  "host_row/rows=16,tile=16"
enum { N = 16, KERNELS = 16 };

/* ---- a device with planted times --------------------------------------------------------------------- */

static const wlmi_device_ops *real;
static struct world {
  wlmi_device_ops ops;
  double seconds[KERNELS]; /* by the order of sight */
  void *kernels[KERNELS];
  int seen, delay;         /* delay: polls without a result before one has it */
  void *running, *refused; /* refused: a kernel that the device will not launch */
  double watched[2];       /* of the two watches: what they saw, and how often they were asked since */
  wlmi_watch *watches[2];
  int asked[2];
  int captured, executing, forbidden; /* forbidden: calls that an execute may not make */
  int started;
  int64_t launches[KERNELS + 1]; /* of kernels by sight, and of those that were not seen yet */
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

/* Host memory counts too. */
static void *host_allocate(void *user, size_t size) {
  return (void)user, world.forbidden += world.executing, malloc(size);
}
static void *host_reallocate(void *user, void *old, size_t size) {
  return (void)user, world.forbidden += world.executing, realloc(old, size);
}
static void host_release(void *user, void *old) { (void)user, world.forbidden += world.executing, free(old); }
static const wlm_allocator counting = {host_allocate, host_reallocate, host_release, NULL};

/* ---- a bench ----------------------------------------------------------------------------------------- */

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
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_context *context;
  options.device = "host";
  options.database = database;
  options.system_database = "";
  options.templates = templates;
  assert_status(WLM_OK, wlm_context_create(&options, &context));
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
  wlm_plan *online;
  memset(world.watches, 0, sizeof world.watches);
  assert_status(WLM_OK, wlm_plan_create_online(b->context, b->upload.matrix, &b->problem, &b->options, &online));
  assert_int_equal(wlm_plan_workspace_size(online), 0); /* it has its own */
  assert_int_equal(wlm_plan_prepared_size(online), 0);
  memset(world.launches, 0, sizeof world.launches);
  world.started = 0;
  return online;
}

/* Each call gives what a plan gives, and does nothing that it may not. */
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

/* The records of a database, 0 where there is none. */
static int64_t stored(const char *path, wlmi_measurement_record **records) {
  wlm_store *store;
  int64_t count;
  *records = NULL;
  wlm_status status = wlmi_store_open(path, WLM_STORE_READ, &store);
  if (status == WLM_ERR_NOT_FOUND) return 0;
  assert_status(WLM_OK, status);
  assert_status(WLM_OK, wlmi_store_load(store, NULL, records, &count));
  wlmi_store_close(store);
  return count;
}

/* ---- tuning ---------------------------------------------------------------------------------------- */

/* From a bad first kernel to the best of those that were there, whatever the delay of the device's answers; what was
 * found is in the database, and the next context begins with it. */
static void converges_and_is_remembered(void **state) {
  (void)state;
  for (int delay = 0; delay < 4; delay += 3) {
    bench b;
    char best[WLM_VARIANT_NAME];
    wlmi_measurement_record *records;
    bench_make(&b);
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
    execute(&b, online, 100); /* settled: plain executes */
    assert_int_equal(world.launches[2], before + 100);
    assert_int_equal(world.started, started);
    assert_int_equal(stored(b.database, &records), 0); /* nothing before the close */
    assert_status(WLM_OK, wlm_plan_online_close(online));
    assert_status(WLM_OK, wlm_plan_online_close(online));
    execute(&b, online, 3);
    wlm_plan_destroy(online);

    const int64_t count = stored(b.database, &records);
    assert_int_equal(count, 4); /* the last one never ran: it was hopeless beside the best */
    for (int64_t i = 0; i < count; i++) {
      assert_string_equal(records[i].clock, "online");
      assert_true(records[i].samples >= 1 && records[i].samples <= 24 && records[i].max_rel_err >= 0);
      if (!strcmp(records[i].variant, best)) assert_int_equal(records[i].time_ps, 700000000);
      if (!strcmp(records[i].variant, FIRST)) assert_int_equal(records[i].time_ps, 1000000000);
    }
    wlmi_measurements_free(records, count);
    bench again;
    bench_make_on(&again, b.database, NULL, SKEWED);
    wlm_plan *plan;
    assert_status(WLM_OK, wlm_plan_create(again.context, again.upload.matrix, &again.problem, &plan));
    assert_string_equal(wlm_plan_variant(plan), best);
    char *text;
    assert_status(WLM_OK, wlm_plan_explain(plan, 1, &text));
    assert_contains(text, "\"step\":\"fingerprint\"");
    wlm_string_free(text);
    wlm_plan_destroy(plan);
    bench_release(&again);
    bench_release(&b);
  }
}

static int count_finalists(void *user, int64_t done, int64_t total, const wlm_candidate_result *last) {
  (void)done, (void)total;
  *(int *)user += last && last->samples >= 3;
  return 0;
}

/* What was timed online does not count as tuned: a tuning measures all of it, and then its times decide. */
static void tuning_goes_before_online_tuning(void **state) {
  (void)state;
  bench b;
  int finalists = 0, hot = 0;
  wlmi_measurement_record *records;
  wlm_tune_options tune = WLM_TUNE_OPTIONS_INIT;
  bench_make(&b);
  b.options.challengers = 2;
  plant((const double[]){1e-12, 0.5e-12, 0.7e-12}, 3); /* quicker than any real one */
  wlm_plan *online = online_of(&b);
  execute(&b, online, 4000);
  wlm_plan_destroy(online); /* closes */
  assert_int_equal(stored(b.database, &records), 3);
  wlmi_measurements_free(records, 3);
  wlmi_context_device(b.context)->ops = real;
  tune.min_sample_seconds = 1e-5;
  tune.samples = 3;
  tune.progress = count_finalists;
  tune.user = &finalists;
  assert_status(WLM_OK, wlm_tune(b.context, b.upload.matrix, &b.problem, NULL, &tune));
  assert_true(finalists > 0);
  const int64_t count = stored(b.database, &records);
  for (int64_t i = 0; i < count; i++) hot += !strcmp(records[i].clock, "hot") && records[i].samples == 1;
  const wlmi_candidate_list *names;
  wlmi_spec spec;
  assert_status(WLM_OK, wlmi_context_spec(b.context, b.upload.matrix, &b.problem, &spec));
  assert_status(WLM_OK, wlmi_generator_describe(wlmi_context_generator(b.context), &spec,
                                                &wlmi_context_device(b.context)->info.limits, &names));
  assert_int_equal(hot, names->count);
  wlmi_candidates_drop(names);

  wlm_plan *plan;
  int precise = 0;
  assert_status(WLM_OK, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  for (int64_t i = 0; i < count; i++)
    precise |= !strcmp(records[i].variant, wlm_plan_variant(plan)) && !strcmp(records[i].clock, "hot") &&
               records[i].samples >= 3;
  assert_true(precise);
  wlm_plan_destroy(plan);
  wlmi_measurements_free(records, count);
  bench_release(&b);
}

/* In a capture one kernel runs and no watch is read; a pair that it interrupts is discarded. */
static void nothing_is_tried_in_a_capture(void **state) {
  (void)state;
  bench b;
  bench_make(&b);
  plant((const double[]){1e-3, 0.5e-3}, 2);
  b.options.challengers = 1;
  wlm_plan *online = online_of(&b);
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
  for (int i = 0; i < 40; i++) { /* captures now and then */
    execute(&b, online, 29);
    world.captured = 1;
    const int64_t incumbent = world.launches[tell(online).replacements], started = world.started;
    execute(&b, online, 2);
    assert_int_equal(world.launches[tell(online).replacements], incumbent + 2);
    assert_int_equal(world.started, started);
    world.captured = 0;
  }
  assert_int_equal(tell(online).replacements, 1);
  wlm_plan_destroy(online);
  bench_release(&b);
}

/* A challenger that the device will not run costs nothing: the call is done by the incumbent. */
static void a_challenger_that_fails(void **state) {
  (void)state;
  bench b;
  bench_make(&b);
  plant((const double[]){1e-3, 0.5e-3, 0.8e-3}, 3);
  b.options.challengers = 2;
  wlm_plan *online = online_of(&b);
  world.refused = world.kernels[1];
  execute(&b, online, 2000);
  assert_int_equal(world.launches[1], 0);
  assert_int_equal(tell(online).replacements, 1);
  assert_true(fabs(tell(online).seconds - 0.8e-3) < 1e-9);
  world.refused = world.kernels[2];
  assert_status(WLM_ERR_DEVICE, (world.executing = 1, test_execute(online, b.exact.b, b.c, NULL)));
  world.executing = 0;
  wlm_plan_destroy(online);
  bench_release(&b);
}

/* An invalid call does not make a kernel be abandoned. */
static void bad_arguments_are_told(void **state) {
  (void)state;
  bench b;
  bench_make(&b);
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

  wlm_plan *plan; /* an ordinary one has no such state */
  assert_status(WLM_OK, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  state_of_another.size++;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_online_state(plan, &state_of_another));
  assert_contains(wlm_error_detail(), "wlm_plan_create_online");
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
  bench_release(&b);
}

/* ---- who may be tried -------------------------------------------------------------------------------- */

static char templates[320];

/* Sums of a row from its beginning, or with the last edge first; or wrong; or prepared. */
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

static void wrong_kernels_are_never_tried(void **state) {
  (void)state;
  bench b;
  bench_make_small(&b, "");
  wlm_plan *online = online_of(&b);
  assert_int_equal(tell(online).challengers, 2); /* neither the wrong one nor the prepared one, for a single call */
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
  bench_release(&b);
}

/* The reversed sum is right, and is deterministic by itself, but gives other bits than the first kernel. */
static void same_bits_where_they_were_asked_for(void **state) {
  (void)state;
  bench b;
  bench_make_small(&b, "");
  b.problem.policy.deterministic = 1;
  wlm_plan *online = online_of(&b);
  assert_int_equal(tell(online).challengers, 1);
  plant((const double[]){1e-3, 0.5e-3}, 2);
  execute(&b, online, 2000);
  wlm_plan_destroy(online);
  bench_release(&b);
}

static void what_was_prepared_is_stored_so(void **state) {
  (void)state;
  char path[320];
  bench b;
  wlmi_measurement_record *records;
  int prepared = 0;
  snprintf(path, sizeof path, "%s/prepared.db", folder.path);
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
  bench_release(&b);
}

/* ---- where there is nothing to try, or nowhere to keep it ------------------------------------------- */

static void empty_products_and_few_calls(void **state) {
  (void)state;
  bench b;
  wlmi_measurement_record *records;
  bench_make(&b);
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
  assert_int_equal(stored(b.database, &records), 0); /* nothing was decided */
  bench_release(&b);
}

static void no_database_is_no_error(void **state) {
  (void)state;
  bench b;
  bench_make_on(&b, "", NULL, SKEWED);
  b.options.challengers = 2;
  plant((const double[]){1e-3, 0.5e-3, 2e-3}, 3);
  wlm_plan *online = online_of(&b);
  execute(&b, online, 2000);
  assert_status(WLM_OK, wlm_plan_online_close(online));
  wlm_plan_destroy(online);
  bench_release(&b);
}

/* A folder in the place of the database stands for whatever cannot be written to. */
static void a_database_that_cannot_be_written(void **state) {
  (void)state;
  bench b;
  bench_make_on(&b, folder.path, NULL, SKEWED);
  b.options.challengers = 2;
  plant((const double[]){1e-3, 0.5e-3, 2e-3}, 3);
  wlm_plan *online = online_of(&b);
  execute(&b, online, 2000);
  assert_status(WLM_ERR_DATABASE, wlm_plan_online_close(online));
  execute(&b, online, 10);
  wlm_plan_destroy(online);
  bench_release(&b);
}

/* Another process, since OpenMP's threads do not come along in a fork. */
static int tune_and_die(const char *database) {
  bench b;
  bench_make_on(&b, database, NULL, "uniform:rows=60,d=5");
  b.options.challengers = 2;
  plant((const double[]){1e-3, 0.5e-3, 2e-3}, 3);
  execute(&b, online_of(&b), 300);
  abort();
}

/* Killed before its close it leaves nothing, not even a file. */
static void killed_before_its_close(void **state) {
  (void)state;
  char path[320];
  wlmi_measurement_record *records;
  snprintf(path, sizeof path, "%s/killed.db", folder.path);
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

/* ---- the real clock ----------------------------------------------------------------------------------- */

/* The largest message of a row and the first edge that it comes from. */
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

/* The gradient by the positions is that of an ordinary plan, and no trial. */
static void check_gradient(const bench *b, wlm_plan *online, const int32_t *positions) {
  const size_t size = (size_t)(b->csr.cols * N) * sizeof(float);
  const int64_t calls = tell(online).calls;
  float *of_online = malloc(size), *of_plan = malloc(size);
  wlm_plan *plan;
  assert_status(WLM_OK, wlm_plan_create(b->context, b->upload.matrix, &b->problem, &plan));
  assert_status(WLM_OK, test_execute_argmax_backward(online, b->c, positions, b->exact.b, of_online, NULL));
  assert_status(WLM_OK, test_execute_argmax_backward(plan, b->c, positions, b->exact.b, of_plan, NULL));
  assert_memory_equal(of_online, of_plan, size);
  assert_int_equal(tell(online).calls, calls);
  wlm_plan_destroy(plan);
  free(of_online);
  free(of_plan);
}

/* Whatever this machine's clock says, results are right; with positions and for an sddmm as well. */
static void results_are_right_by_the_real_clock(void **state) {
  (void)state;
  bench b;
  bench_make(&b);
  wlmi_context_device(b.context)->ops = real;
  wlm_plan *online = online_of(&b);
  execute(&b, online, 1500);
  assert_true(tell(online).first_seconds > 0);
  wlm_plan_destroy(online);

  int32_t *positions = malloc(b.exact.c_size);
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
  check_gradient(&b, online, positions);
  free(positions);
  wlm_plan_destroy(online);

  b.problem.reduce = WLM_SUM;
  b.problem.want_argmax = 0;
  b.problem.operation = WLM_SDDMM;
  b.options.first = NULL;
  online = online_of(&b);
  const wlmi_csr_host *a = &b.csr;
  float *values = malloc((size_t)a->nnz * sizeof *values);
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
  free(values);
  wlm_plan_destroy(online);
  bench_release(&b);
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

int main(int argc, char **argv) {
  if (argc == 2) return tune_and_die(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(converges_and_is_remembered),
      cmocka_unit_test(tuning_goes_before_online_tuning),
      cmocka_unit_test(nothing_is_tried_in_a_capture),
      cmocka_unit_test(a_challenger_that_fails),
      cmocka_unit_test(bad_arguments_are_told),
      cmocka_unit_test(wrong_kernels_are_never_tried),
      cmocka_unit_test(same_bits_where_they_were_asked_for),
      cmocka_unit_test(what_was_prepared_is_stored_so),
      cmocka_unit_test(empty_products_and_few_calls),
      cmocka_unit_test(no_database_is_no_error),
      cmocka_unit_test(a_database_that_cannot_be_written),
      cmocka_unit_test(killed_before_its_close),
      cmocka_unit_test(results_are_right_by_the_real_clock),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
