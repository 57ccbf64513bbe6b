/* Online tuning on a GPU: each call's result is correct whichever kernel ran, a capture contains one kernel, and the
 * decision is stored. Which kernel is faster depends on the GPU and is not tested. */
#include "core/synth/input.h"
#include "runtime/context.h"
#include "support/calls.h"
#include "support/command.h"
#include "support/exact.h"
#include "support/gpu.h"
#include "support/test.h"
#include "tuner/upload.h"
#include "warploom/warploom_tune.h"

enum { N = 32 };

typedef struct bench {
  char database[320];
  wlm_context *context;
  wlmi_device *device;
  wlmi_csr_host csr;
  wlmi_upload upload;
  wlm_problem problem;
  exact_product exact;
  float *got;
  void *b, *c; /* on the device */
} bench;

static void bench_make(bench *b, const char *name) {
  const wlm_problem problem = WLM_PROBLEM_INIT;
  *b = (bench){.problem = problem};
  test_gpu();
  b->problem.n = N;
  snprintf(b->database, sizeof b->database, "%s/%s", folder.path, name);
  wlm_context_options options = CONTEXT_OPTIONS(.device = "cuda", .database = b->database, .system_database = "");
  assert_status(WLM_OK, wlm_context_create(&options, &b->context));
  b->device = wlmi_context_device(b->context);
  assert_status(WLM_OK, wlmi_input_read("twin:arxiv,scale=0.02", &b->csr));
  assert_status(WLM_OK, wlmi_upload_create(b->context, &b->csr, WLM_I32, &b->upload));
  exact_product_make(&b->csr, N, &b->exact);
  b->got = malloc(b->exact.c_size);
  b->b = test_gpu_copy(b->exact.b, b->exact.b_size);
  b->c = test_gpu_copy(b->exact.c, b->exact.c_size);
}

static void bench_release(bench *b) {
  b->device->ops->release(b->device, b->b);
  b->device->ops->release(b->device, b->c);
  wlmi_upload_release(&b->upload);
  wlmi_csr_host_release(&b->csr);
  wlm_context_destroy(b->context);
  free(b->got);
  exact_product_release(&b->exact);
}

static wlm_online_state tell(const wlm_plan *online) {
  wlm_online_state state = WLM_ONLINE_STATE_INIT;
  assert_status(WLM_OK, wlm_plan_online_state(online, &state));
  return state;
}

static void spoil(const bench *b) {
  assert_status(WLM_OK, b->device->ops->fill(b->device, NULL, b->c, 0xFF, b->exact.c_size));
  assert_status(WLM_OK, b->device->ops->synchronize(b->device, NULL)); /* a timer has its own stream */
}

static void assert_right(const bench *b, const char *what) {
  assert_status(WLM_OK, b->device->ops->synchronize(b->device, NULL));
  assert_status(WLM_OK, b->device->ops->copy_out(b->device, NULL, b->got, b->c, b->exact.c_size));
  if (memcmp(b->got, b->exact.c, b->exact.c_size)) fail_msg("another result: %s", what);
}

/* A plan that begins with the last candidate of the list. */
static wlm_plan *online_of(const bench *b) {
  GET(wlmi_spec, spec, wlmi_context_spec(b->context, b->upload.matrix, &b->problem, &spec));
  OWN(wlmi_candidates, names,
      wlmi_generator_describe(wlmi_context_generator(b->context), &spec, &b->device->info.limits, &names));
  wlm_online_options options =
      ONLINE_OPTIONS(.first = names->candidates[names->count - 1].variant, .challengers = 8, .share = 0.5,
                     .slowdown = 1000, .abandon = 1000 /* limits so high that every challenger is tried soon */);
  GET(wlm_plan *, online, wlm_plan_create_online(b->context, b->upload.matrix, &b->problem, &options, &online));
  assert_string_equal(tell(online).variant, options.first);
  assert_true(tell(online).challengers > 0);
  return online;
}

TEST(every_result_is_correct_and_times_are_stored) {
  wlmi_measurement_record *records;
  MAKE(bench, b, "online.db");
  OWNED(wlm_plan) *online = online_of(&b);
  for (int i = 0; i < 1500; i++) {
    spoil(&b);
    assert_status(WLM_OK, test_execute(online, b.b, b.c, NULL));
    assert_right(&b, tell(online).variant);
  }
  for (int i = 0; i < 3000; i++) /* without waiting, so times become available late */
    assert_status(WLM_OK, test_execute(online, b.b, b.c, NULL));
  assert_right(&b, tell(online).variant);
  const wlm_online_state end = tell(online);
  print_message("%lld calls, %lld trials, %lld replacements, %s: %.2f us, %.2f us at first\n", (long long)end.calls,
                (long long)end.trials, (long long)end.replacements, end.variant, 1e6 * end.seconds,
                1e6 * end.first_seconds);
  assert_true(end.trials > 0 && end.first_seconds > 0 && end.seconds > 0);
  assert_status(WLM_OK, wlm_plan_online_close(online));
  GET(wlm_store *, store, wlmi_store_open(b.database, WLMI_STORE_READ, &store));
  GET(int64_t, count, wlmi_store_load(store, NULL, &records, &count));
  assert_true(count >= 2);
  for (int64_t i = 0; i < count; i++) assert_string_equal(records[i].clock, "online");
  wlmi_measurements_free(records, count);
  wlmi_store_close(store);
  wlm_plan *plan; /* closing has refreshed the context */
  assert_status(WLM_OK, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 1, &text));
  assert_contains(text, "\"step\":\"fingerprint\"");
  wlm_plan_destroy(plan);
}

typedef struct caller {
  const bench *b;
  wlm_plan *online;
  int calls;
  int64_t trials_before; /* before the capture */
} caller;

/* The timer calls this once directly and then in a capture. */
static wlm_status enqueue(void *user, void *stream) {
  caller *c = user;
  if (c->calls++ == 1) c->trials_before = tell(c->online).trials;
  wlm_execute_args call = EXECUTE_ARGS(.stream = stream);
  return test_execute_call(c->online, &call, c->b->b, c->b->c, NULL);
}

TEST(a_capture_holds_one_kernel) {
  enum { CALLS = 100 };
  wlmi_timer *timer;
  double seconds;
  MAKE(bench, b, "capture.db");
  caller c = {.b = &b, .online = online_of(&b)};
  for (int i = 0; i < 33; i++) assert_status(WLM_OK, test_execute(c.online, b.b, b.c, NULL));
  assert_status(WLM_OK, b.device->ops->synchronize(b.device, NULL));
  assert_status(WLM_OK, b.device->ops->timer_create(b.device, enqueue, &c, CALLS, &timer));
  assert_int_equal(c.calls, CALLS + 1);
  assert_int_equal(tell(c.online).trials, c.trials_before);
  for (int i = 0; i < 3; i++) {
    spoil(&b);
    assert_status(WLM_OK, b.device->ops->timer_sample(timer, NULL, 0, &seconds));
    assert_right(&b, "replay of a captured call");
    for (int k = 0; k < 200; k++) assert_status(WLM_OK, test_execute(c.online, b.b, b.c, NULL));
  }
  b.device->ops->timer_destroy(timer);
  wlm_plan_destroy(c.online);
}

static int end(void **state) {
  folder_remove(&folder);
  return test_gpu_close(state);
}

GROUP(home_begin, end)
