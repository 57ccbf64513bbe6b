/* The public interface on a GPU: every candidate for a skewed matrix, one plan on many streams at once, tuned and
 * untuned calls, and calls without a compiler. */
#include <pthread.h>

#include "support/calls.h"
#include "support/gpu_fixture.h"
#include "support/test.h"
#include "support/verified.h"

static wlm_problem problem_of(int64_t n, wlm_reduce reduce) { return (wlm_problem)PROBLEM(.n = n, .reduce = reduce); }

TEST(every_candidate_on_a_skewed_matrix) {
  MAKE(fixture, f, "twin:arxiv,scale=0.02", WLM_I32);
  static const wlm_reduce reductions[] = {WLM_SUM, WLM_MEAN, WLM_MAX};
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
    wlm_problem problem = problem_of(33, reductions[i]);
    check_candidates(&f, &problem);
  }
  wlm_problem sampled = problem_of(64, WLM_SUM);
  sampled.sampling.sample = WLM_SAMPLE_FASTRAND;
  sampled.sampling.width = 16;
  check_candidates(&f, &sampled);
}

/* ---- one plan, many streams ------------------------------------------------------------------------ */

typedef struct stream_user {
  fixture *f;
  const wlm_plan *plan;
  const void *b;
  void *c, *workspace;
  wlm_status status;
  char detail[256];
} stream_user;

static wlm_status enqueue(void *user, void *stream) {
  const stream_user *u = user;
  wlm_execute_args call = EXECUTE_ARGS(.stream = stream);
  return test_execute_call(u->plan, &call, u->b, u->c, u->workspace);
}

/* Uses the plan on the stream of a timer, which does not wait for other streams. */
static void *use_a_stream(void *user) {
  stream_user *u = user;
  wlmi_device *device = u->f->device;
  wlmi_timer *timer;
  u->status = device->ops->timer_create(device, enqueue, u, 20, &timer);
  for (int i = 0; i < 10 && u->status == WLM_OK; i++) {
    double seconds;
    u->status = device->ops->timer_sample(timer, NULL, 0, &seconds);
  }
  if (u->status != WLM_OK) strncpy(u->detail, wlm_error_detail(), sizeof u->detail - 1);
  if (timer) device->ops->timer_destroy(timer);
  return NULL;
}

/* Executes one plan on several streams at once; all results must have the same bits. */
static void use_many_streams(fixture *f, wlmi_operands *operands, wlmi_verifier *verifier, wlm_plan *plan) {
  enum { STREAMS = 6 };
  stream_user users[STREAMS];
  pthread_t threads[STREAMS];
  HOLD(plan_memory, memory, plan_memory_make(operands, plan, &memory));
  GET(double, error, verify_with(operands, verifier, plan, &memory, &error));
  size_t size = operands->output[0].buffer.size, workspace = wlm_plan_workspace_size(plan);
  FREED char *right = malloc(size), *found = malloc(size);
  assert_true(right && found);
  assert_status(WLM_OK, f->device->ops->copy_out(f->device, NULL, right, operands->output[0].buffer.memory, size));
  for (int i = 0; i < STREAMS; i++) {
    users[i] = (stream_user){.f = f, .plan = plan, .b = operands->call.b};
    assert_status(WLM_OK, f->device->ops->allocate(f->device, size, &users[i].c));
    assert_status(WLM_OK, f->device->ops->fill(f->device, NULL, users[i].c, 0xff, size));
    if (workspace) assert_status(WLM_OK, f->device->ops->allocate(f->device, workspace, &users[i].workspace));
  }
  assert_status(WLM_OK, f->device->ops->synchronize(f->device, NULL));
  for (int i = 0; i < STREAMS; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_a_stream, &users[i]), 0);
  for (int i = 0; i < STREAMS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < STREAMS; i++) {
    if (users[i].status != WLM_OK) fail_msg("stream %d: %s", i, users[i].detail);
    assert_status(WLM_OK, f->device->ops->copy_out(f->device, NULL, found, users[i].c, size));
    assert_memory_equal(found, right, size);
    f->device->ops->release(f->device, users[i].c);
    f->device->ops->release(f->device, users[i].workspace);
  }
}

/* The first candidate that needs preparation; NULL if there is none. */
static const char *preparing_one(const wlmi_candidate_list *list) {
  for (int64_t i = 0; i < list->count; i++)
    if (list->candidates[i].prepares) return list->candidates[i].variant;
  return NULL;
}

/* First the chosen kernel, then one that is prepared once for all streams. */
TEST(one_plan_on_many_streams) {
  MAKE(fixture, f, "twin:arxiv,scale=0.05", WLM_I32);
  wlm_problem problem = problem_of(64, WLM_SUM);
  problem.policy.deterministic = 1;
  HOLD(wlmi_operands, operands, wlmi_operands_create(f.context, f.upload.matrix, &problem, NULL, 9, &operands));
  OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 9, &verifier));
  GET(wlm_plan *, plan, wlm_plan_create(f.context, f.upload.matrix, &problem, &plan));
  assert_int_equal(wlm_plan_prepared_size(plan), 0); /* expected_calls is 1 */
  use_many_streams(&f, &operands, verifier, plan);
  wlm_plan_destroy(plan);
  OWN(wlmi_candidates, names,
      wlmi_generator_describe(wlmi_context_generator(f.context), &operands.spec, &f.device->info.limits, &names));
  const char *variant = preparing_one(names);
  if (variant) {
    assert_status(WLM_OK, wlm_plan_create_variant(f.context, f.upload.matrix, &problem, variant, &plan));
    use_many_streams(&f, &operands, verifier, plan);
    wlm_plan_destroy(plan);
  }
}

/* ---- one call -------------------------------------------------------------------------------------- */

TEST(one_call) {
  MAKE(fixture, f, "uniform:rows=3000,d=7", WLM_I32);
  wlm_problem problem = problem_of(48, WLM_SUM);
  problem.policy.deterministic = 1;
  HOLD(wlmi_operands, operands, wlmi_operands_create(f.context, f.upload.matrix, &problem, NULL, 3, &operands));
  OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 3, &verifier));
  assert_status(WLM_OK, wlmi_operands_poison(&operands));
  assert_status(WLM_OK, test_spmm(f.context, wlmi_matrix_csr(f.upload.matrix), &problem, operands.call.b,
                                  operands.output[0].buffer.memory));
  double error; /* wlm_spmm chooses by the size of A alone, so its kernel may differ from the plan's */
  assert_status(WLM_OK, f.device->ops->synchronize(f.device, NULL));
  assert_status(WLM_OK, wlmi_verify_result(verifier, &error));
  FREED float *c = malloc(operands.output[0].buffer.size), *again = malloc(operands.output[0].buffer.size);
  assert_true(c && again);
  assert_status(WLM_OK, f.device->ops->copy_out(f.device, NULL, c, operands.output[0].buffer.memory,
                                                operands.output[0].buffer.size));
  for (int i = 0; i < 3; i++) { /* repeated calls use the cached decision and give the same bits */
    assert_status(WLM_OK, wlmi_operands_poison(&operands));
    assert_status(WLM_OK, test_spmm(f.context, wlmi_matrix_csr(f.upload.matrix), &problem, operands.call.b,
                                    operands.output[0].buffer.memory));
    assert_status(WLM_OK, f.device->ops->copy_out(f.device, NULL, again, operands.output[0].buffer.memory,
                                                  operands.output[0].buffer.size));
    assert_memory_equal(c, again, operands.output[0].buffer.size);
  }
  OWN(wlm_plan, plan, wlm_plan_create(f.context, f.upload.matrix, &problem, &plan));
  assert_status(WLM_OK, verify_plan(&operands, verifier, plan, &error));
}

GROUP(NULL, test_gpu_close)
