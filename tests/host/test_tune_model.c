/* A tuning with a model that was trained on hand-made measurements, in which host_row is fast and host_nnz slow. */
#include "runtime/devices.h"
#include "runtime/forecast.h"
#include "support/command.h"
#include "support/host_bench.h"
#include "support/test.h"
#include "tuner/tuner.h"
#include "warploom/warploom_tune.h"

enum { MATRICES = 40, MOST = 64 };
static bench b;
static wlmi_spec spec;

static int is_quick(const char *variant) { return !strncmp(variant, "host_row/", 9); }

static wlmi_measurement_record made_up(const wlm_stats *stats, const char *key, const char *variant, int64_t time_ps) {
  const wlmi_device_info *info = &wlmi_context_device(b.context)->info;
  wlmi_measurement_record record =
      MEASUREMENT(.stats = *stats, .matrix_name = "made up", .variant = (char *)variant, .problem = (char *)key,
                  .n = spec.problem.n, .compiler = (char *)info->compiler, .driver = (char *)info->driver,
                  .time_ps = time_ps);
  record.device = wlmi_device_record_of(wlmi_context_device(b.context));
  return record;
}

/* Measurements on matrices a little larger than the tuned one. */
static void plant(void) {
  char key[WLMI_SPEC_KEY];
  wlmi_spec_key(&spec, key);
  OWN(wlmi_candidates, list,
      wlmi_generator_describe(wlmi_context_generator(b.context), &spec, &wlmi_context_device(b.context)->info.limits,
                              &list));
  OWN(wlm_store, store, wlmi_store_open(b.database, WLMI_STORE_WRITE, &store));
  for (int m = 0; m < MATRICES; m++) {
    wlm_stats stats = *wlm_matrix_stats(b.upload.matrix);
    stats.rows += 10 * (m + 1);
    stats.cols = stats.rows;
    stats.fingerprint[0] = stats.fingerprint[1] = (uint64_t)m + 1;
    for (int64_t i = 0; i < list->count; i++) {
      const wlmi_measurement_record record = made_up(&stats, key, list->candidates[i].variant,
                                                     is_quick(list->candidates[i].variant) ? 10000000 : 400000000);
      assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
    }
  }
}

typedef struct told {
  int count;
  char variants[MOST][WLMI_VARIANT_NAME];
} told;

static int listen_to(void *user, int64_t done, int64_t total, const wlm_candidate_result *last) {
  (void)total;
  told *t = user;
  if (!last || done <= t->count) return 0;
  assert_true(t->count < MOST);
  snprintf(t->variants[t->count++], WLMI_VARIANT_NAME, "%s", last->variant);
  return 0;
}

static wlmi_tune_summary tune(wlmi_tuner *tuner, double share, told *t) {
  *t = (told){.count = 0};
  wlm_tune_options options = TUNE_OPTIONS(.min_sample_seconds = 1e-5, .samples = 3, .progress = listen_to, .user = t);
  GET(wlmi_tune_summary, summary, wlmi_tuner_run(tuner, b.upload.matrix, &b.problem, NULL, &options, share, &summary));
  assert_int_equal(summary.measured, t->count);
  return summary;
}

TEST(the_expected_time_follows_the_model) {
  GET(wlmi_context_forecast, o, wlmi_context_forecast_make(b.context, wlm_matrix_stats(b.upload.matrix), &spec, &o));
  assert_true(isinf(o.of.distance));
  assert_string_equal(o.of.present, o.of.rule);
  wlmi_context_forecast_release(&o);
  plant();
  assert_status(WLM_OK, wlm_train(b.context));
  assert_status(WLM_OK, wlmi_context_forecast_make(b.context, wlm_matrix_stats(b.upload.matrix), &spec, &o));
  assert_true(o.of.distance < WLMI_FAR && o.of.spread > 0 && !o.of.borrowed && o.list->count > 4);
  assert_true(is_quick(o.of.present));
  assert_true(wlmi_candidate_named(o.list, o.of.rule) && !wlmi_candidate_named(o.list, "nobody"));
  for (int64_t i = 0; i < o.list->count; i++) {
    const double quick = 10e-6; /* slower candidates count as 4 times the best time */
    if (is_quick(o.list->candidates[i].variant) ? fabs(log(o.of.seconds[i] / quick)) > 0.3
                                                : o.of.seconds[i] < 3 * quick)
      fail_msg("%s: %g us", o.list->candidates[i].variant, 1e6 * o.of.seconds[i]);
  }
  wlmi_context_forecast_release(&o);
  WLM_FREED wlmi_point *points = NULL;
  GET(int64_t, count, wlmi_context_tuned_points(b.context, &spec, &points, &count));
  assert_int_equal(count, MATRICES);
}

/* With little time the tuner leaves out the half that the model expects to be slow; with enough time it measures
 * them as well. */
TEST(slow_candidates_come_last) {
  told t;
  GET(wlmi_tuner *, tuner, wlmi_tuner_create(b.context, 0, &tuner));
  wlmi_tune_summary s = tune(tuner, 1e-9, &t);
  assert_true(s.unlikely > 0 && s.unlikely <= s.candidates / 2);
  assert_int_equal(s.measured + s.unlikely, s.candidates);
  assert_true(s.finalists > 0);
  int slow = 0;
  for (int i = 0; i < t.count; i++) {
    if (is_quick(t.variants[i])) assert_true(slow <= 1); /* the rules' choice may be among the first */
    slow += !is_quick(t.variants[i]);
  }
  const int64_t left = s.unlikely;
  assert_status(WLM_OK, wlmi_tuner_reread(tuner));
  s = tune(tuner, INFINITY, &t);
  wlmi_tuner_destroy(tuner);
  assert_int_equal(s.unlikely, 0);
  slow = 0; /* on a busy machine some fast ones are measured again */
  for (int i = 0; i < t.count; i++) slow += !is_quick(t.variants[i]);
  assert_true(slow >= left);
}

static int begin(void **state) {
  if (home_begin(state)) return -1;
  bench_make(&b, NULL, "uniform:rows=1000,d=8", 32);
  return wlmi_context_spec(b.context, b.upload.matrix, &b.problem, &spec) != WLM_OK;
}

static int end(void **state) {
  bench_release(&b);
  return folder_end(state);
}

GROUP(begin, end)
