/* Computing a time from samples, with a fake clock. */
#include "support/db_fixture.h"
#include "support/test.h"
#include "tuner/method.h"
#include "tuner/timing.h"
#include "tuner/tolerance.h"

typedef struct fake {
  wlmi_device device;
  double call;     /* seconds of one call */
  double cold;     /* extra seconds of the first sample, halved for each later one */
  double noise[8]; /* added to the calls in turn after the warm-up */
  int samples, timers, live;
  int64_t calls; /* of the last timer */
  int fail_at;   /* the sample that fails; 0 = none */
} fake;

static fake clock_of;
static const double quiet[8] = {0};

static wlm_status make_timer(wlmi_device *device, wlm_status (*enqueue)(void *, void *), void *user, int64_t calls,
                             wlmi_timer **timer) {
  (void)device, (void)enqueue, (void)user;
  clock_of.calls = calls;
  clock_of.timers++;
  clock_of.live++;
  *timer = (wlmi_timer *)&clock_of;
  return WLM_OK;
}

static wlm_status take_sample(wlmi_timer *timer, void *flush, size_t size, double *seconds) {
  (void)timer, (void)flush, (void)size;
  int i = clock_of.samples++;
  if (clock_of.fail_at && clock_of.samples == clock_of.fail_at) return wlmi_fail(WLM_ERR_DEVICE, "the fake broke");
  *seconds = (double)clock_of.calls * (clock_of.call + clock_of.noise[i % 8]) + clock_of.cold;
  clock_of.cold /= 2;
  return WLM_OK;
}

static void drop_timer(wlmi_timer *timer) {
  (void)timer;
  clock_of.live--;
}

static wlm_status enqueue(void *user, void *stream) { return (void)user, (void)stream, WLM_OK; }

static const wlmi_device_ops ops = {
    .timer_create = make_timer, .timer_sample = take_sample, .timer_destroy = drop_timer};

static wlm_status time_it(double call, double cold, const double *noise, double sample_seconds, int samples,
                          wlmi_method *method) {
  clock_of = (fake){.device.ops = &ops, .call = call, .cold = cold};
  memcpy(clock_of.noise, noise, sizeof clock_of.noise);
  *method = (wlmi_method){.enqueue = enqueue};
  wlm_status status = wlmi_method_time(&clock_of.device, method, sample_seconds, samples);
  assert_int_equal(clock_of.live, 0);
  return status;
}

TEST(summaries) {
  double median, spread;
  double one[] = {3};
  wlmi_timing_summarise(one, 1, &median, &spread);
  assert_true(median == 3 && spread == 0);
  double five[] = {5, 1, 4, 2, 3};
  wlmi_timing_summarise(five, 5, &median, &spread);
  assert_true(median == 3 && fabs(spread - 2.0 / 3) < 1e-15);
  double four[] = {40, 10, 30, 20};
  wlmi_timing_summarise(four, 4, &median, &spread);
  assert_true(median == 25 && fabs(spread - 15.0 / 25) < 1e-15);
  double zeros[] = {0, 0};
  wlmi_timing_summarise(zeros, 2, &median, &spread);
  assert_true(median == 0 && spread == 0);
}

TEST(samples_are_long_enough) {
  GET(wlmi_method, method, time_it(2e-6, 0, quiet, 1e-3, 9, &method));
  assert_int_equal(method.samples, 9);
  assert_in_range(method.calls, 499, 501);
  assert_true(fabs(method.seconds - 2e-6) < 1e-12 && method.spread < 1e-9);
  assert_status(WLM_OK, time_it(0.5, 0, quiet, 1e-3, 3, &method));
  assert_int_equal(method.calls, 1);
  assert_status(WLM_OK, time_it(1e-12, 0, quiet, 1, 2, &method));
  assert_in_range(method.calls, 1000, 100000); /* bounded, because one graph contains all calls */
  assert_status(WLM_OK, time_it(0, 0, quiet, 1e-3, 2, &method));
  assert_true(method.seconds == 0 && method.spread == 0);
}

TEST(warm_up_samples_are_left_out) {
  GET(wlmi_method, method, time_it(1e-6, 0.01, quiet, 1e-3, 5, &method));
  assert_true(method.seconds < 1.05e-6); /* the first sample was ten times as long */
}

TEST(noise_does_not_prolong_the_warm_up) {
  static const double noise[8] = {0, 5e-6, 1e-6, 9e-6, 2e-6, 7e-6, 3e-6, 8e-6};
  GET(wlmi_method, method, time_it(1e-5, 0, noise, 1e-3, 8, &method));
  assert_true(clock_of.samples < 40); /* a first call, a bounded warm-up and 8 samples */
  assert_true(method.spread > 0.1 && method.spread < 0.6);
}

/* Nor does that of long calls, whose warm-up ends after a time. */
TEST(long_calls_are_warmed_up_for_a_short_time) {
  static const double noise[8] = {0, 0.5, 0.1, 0.9, 0.2, 0.7, 0.3, 0.8};
  GET(wlmi_method, method, time_it(1, 0, noise, 1e-3, 3, &method));
  assert_in_range(clock_of.samples, 4, 6); /* a first call, a warm-up or two, and 3 samples */
}

TEST(failures_are_returned) {
  for (int fail_at = 1; fail_at <= 7; fail_at++) {
    HELD(wlmi_method) method = {.enqueue = enqueue};
    clock_of = (fake){.device.ops = &ops, .call = 1e-6, .fail_at = fail_at};
    assert_int_equal(wlmi_method_time(&clock_of.device, &method, 1e-3, 5), WLM_ERR_DEVICE);
    assert_string_equal(wlm_error_detail(), "the fake broke");
    assert_int_equal(clock_of.live, 0);
  }
}

TEST(gather_bandwidth) {
  wlmi_spec spec = {.problem = WLM_PROBLEM_INIT, .has_values = 1};
  spec.problem.n = 32;
  /* edges n 4 + rows n 4 + edges (4 + 4) + rows 4 bytes */
  assert_true(fabs(wlmi_gather_gbs(&spec, 10, 100, 1e-6) - (12800 + 1280 + 800 + 40) / 1e3) < 1e-9);
  spec.has_values = 0;
  spec.rowptr_type = WLM_I64;
  assert_true(fabs(wlmi_gather_gbs(&spec, 10, 100, 1e-6) - (12800 + 1280 + 400 + 80) / 1e3) < 1e-9);
  assert_true(wlmi_gather_gbs(&spec, 10, 100, 0) == 0);
}

/* Tolerances are strict, but never refuse an ordinary float32 sum. */
TEST(tolerances) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  assert_true(wlmi_tolerance(&problem, 0) < 1e-6);
  assert_true(wlmi_tolerance(&problem, 1000) < 1e-5);
  uint64_t random = 11;
  for (int64_t edges = 1; edges <= 100000; edges *= 10)
    for (int repeat = 0; repeat < 20; repeat++) {
      float sum = 0;
      double exact = 0, scale = 0;
      for (int64_t i = 0; i < edges; i++) {
        float x = (float)(draw(&random) >> 40) * 0x1p-24f; /* all of one sign, so that rounding errors do not cancel */
        sum += x;
        exact += (double)x;
        scale += (double)x;
      }
      assert_true(fabs(sum - exact) <= wlmi_tolerance(&problem, edges) * scale);
    }
  float sum = 0;
  for (int i = 0; i < 1000000; i++) sum += 0.1f;
  problem.message = WLM_COPY_A;
  assert_true(fabs(sum - 1e6 * (double)0.1f) <= wlmi_tolerance(&problem, 1000000) * 1e5);
}

/* 577 k mod 577 = 0: a row of 577 edges gives S times its first edge, and roundings of equal terms do not cancel. */
TEST(tolerance_of_one_edge_many_times) {
  enum { WIDTH = 512 };
  wlm_problem plain = WLM_PROBLEM_INIT, sampled = PROBLEM(.sampling.sample = WLM_SAMPLE_FASTRAND);
  uint64_t random = 7;
  int beyond_plain = 0;
  for (int repeat = 0; repeat < 1000; repeat++) {
    const float x = (float)(draw(&random) >> 40) * 0x1p-24f + 0x1p-24f;
    float sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += x;
    const double error = fabs(sum - WIDTH * (double)x) / (WIDTH * (double)x);
    assert_true(error <= wlmi_tolerance(&sampled, WIDTH));
    beyond_plain += error > wlmi_tolerance(&plain, WIDTH);
  }
  assert_true(beyond_plain > 0);
}
