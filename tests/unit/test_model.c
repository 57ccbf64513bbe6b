/* The cost model: what it learns and predicts, and that damaged blobs are refused. */
#include "core/base/hash.h"
#include "select/model.h"
#include "support/emit_fixture.h"
#include "support/meter.h"
#include "support/planted.h"
#include "support/test.h"
#include "tuner/boost.h"
#include "tuner/train.h"

enum { UNSEEN = 12 };

/* ---- learning -------------------------------------------------------------------------------------------- */

/* Kernels that keep rows whole take as long as one group of threads needs for the longest row; others divide it. */
TEST(whole_rows_are_walked_to_their_end) {
  wlm_stats s = STATS(.rows = 1 << 14, .cols = 1 << 14, .nnz = 1 << 17, .mean = 8, .longest = 1 << 15);
  OWNED(wlmi_candidates) *list = planted_candidates(32);
  int64_t whole = 0;
  for (int64_t i = 0; i < list->count; i++) {
    const wlmi_candidate *candidate = &list->candidates[i];
    float features[WLMI_FEATURES];
    wlmi_features_of_candidate(&planted_limits, &s, 32, candidate, 0, features);
    const float longest = log2f(1 + (float)s.longest), walked = features[WLMI_FEATURE_SERIAL];
    if (candidate->whole_rows)
      assert_float_equal(walked, longest, 1e-5);
    else
      assert_true(walked < longest);
    assert_float_equal(features[WLMI_FEATURE_STEPS], walked - log2f(fmaxf(1, (float)candidate->batch)), 1e-5);
    whole += candidate->whole_rows != 0;
  }
  assert_true(whole > 0 && whole < list->count);
}

TEST(finds_the_planted_winner_on_unseen_matrices) {
  const wlmi_model model = *planted_learned();
  double logs = 0, worst = 0, off = 0;
  for (int m = 0; m < UNSEEN; m++) {
    const wlm_stats s = planted_matrix();
    for (int k = 0; k < PLANTED_WIDTHS; k++) {
      OWNED(wlmi_candidates) *list = NULL;
      wlmi_prediction first;
      wlmi_model_case asked;
      int untrained;
      double best = INFINITY;
      list = planted_candidates(planted_widths[k]);
      for (int64_t i = 0; i < list->count; i++)
        if (!list->candidates[i].prepares)
          best = fmin(best, planted_time(&s, planted_widths[k], list->candidates[i].variant));
      wlmi_model_case_make(&model, &emit_cuda, &s, planted_key, planted_widths[k], &asked);
      assert_int_equal(wlmi_predict(&asked, list->candidates, list->count, 1, &first, 1, &untrained), 1);
      assert_true(untrained > 0); /* those that the world lacks */
      assert_false(first.candidate->prepares);
      const double ratio = planted_time(&s, planted_widths[k], first.candidate->variant) / best;
      logs += log(ratio);
      worst = fmax(worst, ratio);
      off = fmax(off, fabs(log(first.seconds / asked.seconds /
                               planted_time(&s, planted_widths[k], first.candidate->variant))));
    }
  }
  assert_true(exp(logs / (UNSEEN * PLANTED_WIDTHS)) < 1.06);
  assert_true(worst < 1.35);
  assert_true(off < 0.35); /* the error of log(time) */
  assert_true(model.spread > 0.005 && model.spread < 0.3);
}

TEST(too_few_matrices_give_no_model) {
  wlmi_model model = planted_train(WLMI_TRAIN_MATRICES - 1);
  assert_int_equal(model.tree_count, 0);
}

TEST(same_measurements_give_the_same_bytes) {
  void *left, *right;
  size_t left_size, right_size;
  HELD(wlmi_model) a = planted_train(WLMI_TRAIN_MATRICES), b = planted_train(WLMI_TRAIN_MATRICES);
  a.made_at = b.made_at = 7;
  assert_int_equal(wlmi_model_write(&a, &left, &left_size), WLM_OK);
  assert_int_equal(wlmi_model_write(&b, &right, &right_size), WLM_OK);
  assert_int_equal(left_size, right_size);
  assert_memory_equal(left, right, left_size);
  wlmi_free(left);
  wlmi_free(right);
}

/* The target is a step in one feature: the first tree finds it, and all trees together reach it. */
TEST(boosting_finds_a_step) {
  enum { COUNT = 500, TREES = 60 };
  static wlmi_boost_sample samples[COUNT];
  static wlmi_tree trees[TREES];
  const wlmi_boost_options options = {.trees = TREES, .rate = 0.2, .ridge = 0, .least = 5};
  double base;
  planted_seed = 3;
  for (int i = 0; i < COUNT; i++) {
    for (int f = 0; f < WLMI_FEATURES; f++) samples[i].features[f] = (float)planted_between(-1, 1);
    samples[i].target = samples[i].features[5] > 0.25f ? 3 : -2;
    samples[i].weight = i % 2 ? 1 : 0.25f;
  }
  assert_int_equal(wlmi_boost(samples, COUNT, &options, &base, trees), WLM_OK);
  assert_int_equal(trees[0].feature[0], 5);
  assert_true(fabs((double)trees[0].threshold[0] - 0.25) < 0.1);
  for (int i = 0; i < COUNT; i++)
    if (fabsf(samples[i].features[5] - 0.25f) > 0.1f)
      assert_true(fabs(base + wlmi_trees_sum(trees, TREES, samples[i].features) - (double)samples[i].target) < 0.3);
  assert_int_equal(wlmi_boost(samples, 0, &options, &base, trees), WLM_ERR_INVALID_ARGUMENT);
}

/* Whichever allocation fails, and also if none does. */
TEST(boosting_keeps_no_memory) {
  enum { COUNT = 20 };
  static wlmi_boost_sample samples[COUNT];
  const wlmi_boost_options options = {.trees = 1, .rate = 0.2, .ridge = 0, .least = 5};
  int64_t fail_at = 0;
  for (wlm_status status = WLM_ERR_OUT_OF_MEMORY; status != WLM_OK; fail_at++) {
    meter m = {.fail_at = fail_at};
    wlmi_tree tree;
    double base;
    for (int i = 0; i < COUNT; i++) samples[i].weight = 1;
    meter_begin(&m);
    status = wlmi_boost(samples, COUNT, &options, &base, &tree);
    wlm_set_allocator(NULL);
    if (status != WLM_OK) assert_int_equal(status, WLM_ERR_OUT_OF_MEMORY);
    assert_int_equal(m.live, 0);
  }
  assert_true(fail_at > 4);
}

/* What all samples of a group have in common, which no feature tells and which is much greater than the step, does not
 * hide the step. */
TEST(boosting_within_groups_finds_a_step) {
  enum { GROUPS = 50, EACH = 10, COUNT = GROUPS * EACH, TREES = 60 };
  static wlmi_boost_sample samples[COUNT];
  static wlmi_tree trees[TREES];
  const wlmi_boost_options options = {.trees = TREES, .rate = 0.2, .ridge = 0, .least = 5, .within = 1};
  double base;
  planted_seed = 3;
  for (int i = 0; i < COUNT; i++) {
    for (int f = 0; f < WLMI_FEATURES; f++) samples[i].features[f] = (float)planted_between(-1, 1);
    samples[i].group = i / EACH;
    samples[i].target = (samples[i].features[5] > 0.25f ? 1 : 0) + (samples[i].group * 7) % 30;
    samples[i].weight = i % 2 ? 1 : 0.25f;
  }
  assert_int_equal(wlmi_boost(samples, COUNT, &options, &base, trees), WLM_OK);
  for (int i = 0; i < COUNT; i++) {
    const wlmi_boost_sample *first = &samples[i - i % EACH];
    if (fabsf(samples[i].features[5] - 0.25f) < 0.1f || fabsf(first->features[5] - 0.25f) < 0.1f) continue;
    const double differ =
        wlmi_trees_sum(trees, TREES, samples[i].features) - wlmi_trees_sum(trees, TREES, first->features);
    assert_true(fabs(differ - (double)(samples[i].target - first->target)) < 0.1);
  }
}

/* ---- unusual input ------------------------------------------------------------------------------------------ */

TEST(unusual_matrices_give_finite_times) {
  HELD(wlmi_model) model = planted_train(WLMI_TRAIN_MATRICES);
  const double cvs[] = {0, NAN, INFINITY, 1e30};
  const int64_t sizes[] = {0, 1, INT64_MAX / 8};
  OWNED(wlmi_candidates) *list = NULL;
  list = planted_candidates(32);
  for (int i = 0; i < 4 * 3 * 3 * 3; i++) {
    wlm_stats s = STATS(.cv = cvs[i % 4], .rows = sizes[i / 4 % 3], .cols = sizes[i / 4 % 3], .nnz = sizes[i / 12 % 3]);
    wlmi_model_case asked;
    s.longest = s.nnz;
    const int64_t n = (int64_t[]){0, 1, INT32_MAX}[i / 36];
    wlmi_model_case_make(&model, &emit_cuda, &s, planted_key, n, &asked);
    assert_false(isnan(asked.distance));
    for (int64_t c = 0; c < list->count; c++) {
      assert_true(wlmi_model_seconds(&asked, &list->candidates[c]) >= 0);
      for (int f = 0; f < WLMI_FEATURES; f++) assert_true(isfinite(asked.features[f]));
    }
  }
}

static meter counted = {.fail_at = -1};

TEST(evaluating_allocates_nothing) {
  HELD(wlmi_model) model = planted_train(WLMI_TRAIN_MATRICES);
  const wlm_stats s = planted_matrix();
  OWNED(wlmi_candidates) *list = NULL;
  wlmi_prediction best[WLMI_RANKED];
  wlmi_model_case asked;
  int untrained;
  list = planted_candidates(32);
  const int64_t before = counted.calls;
  assert_true(before > 0);
  wlmi_model_case_make(&model, &emit_cuda, &s, planted_key, 32, &asked);
  assert_int_equal(wlmi_predict(&asked, list->candidates, list->count, 5, best, WLMI_RANKED, &untrained), WLMI_RANKED);
  assert_int_equal(counted.calls, before);
  for (int i = 1; i < WLMI_RANKED; i++) assert_true(best[i - 1].price <= best[i].price);
}

/* ---- bytes --------------------------------------------------------------------------------------------------- */

TEST(models_are_written_and_read) {
  HELD(wlmi_model) model = planted_train(WLMI_TRAIN_MATRICES), again;
  const wlm_stats s = planted_matrix();
  OWNED(wlmi_candidates) *list = planted_candidates(32);
  WLM_FREED void *blob = NULL;
  wlmi_model_case left, right;
  GET(size_t, size, wlmi_model_write(&model, &blob, &size));
  assert_int_equal(wlmi_model_read(blob, size, &again), WLM_OK);
  assert_string_equal(again.problems, "dense=f32,rowptr=i32,colind=i32,sample=none");
  assert_true(again.made_at == model.made_at && again.measurements == model.measurements);
  assert_true(again.spread == model.spread && again.family_count == model.family_count);
  wlmi_model_set_families(&again, list->families);
  wlmi_model_case_make(&model, &emit_cuda, &s, planted_key, 32, &left);
  wlmi_model_case_make(&again, &emit_cuda, &s, planted_key, 32, &right);
  assert_true(left.distance == right.distance);
  for (int64_t i = 0; i < list->count; i++)
    assert_true(wlmi_model_seconds(&left, &list->candidates[i]) == wlmi_model_seconds(&right, &list->candidates[i]));
}

TEST(damaged_bytes_are_refused) {
  HELD(wlmi_model) model = planted_train(WLMI_TRAIN_MATRICES);
  wlmi_model again;
  unsigned char *blob;
  GET(size_t, size, wlmi_model_write(&model, (void **)&blob, &size));
  for (size_t at = 0; at < size; at += at < 600 ? 1 : 997) {
    blob[at] ^= 0x10;
    assert_true(wlmi_model_read(blob, size, &again) != WLM_OK);
    blob[at] ^= 0x10;
    assert_true(wlmi_model_read(blob, at, &again) != WLM_OK);
  }
  model.trees[0].leaf[3] = NAN;
  void *other = NULL;
  assert_int_equal(wlmi_model_write(&model, &other, &size), WLM_ERR_INVALID_ARGUMENT);
  assert_null(other);
  wlmi_free(blob);
}

/* Numbers that no training gives, in bytes whose checksum is right: a family count beyond the array, for example. */
TEST(impossible_numbers_are_refused) {
  static const struct {
    int families, processors;
  } wrong[] = {{WLMI_MODEL_FAMILIES + 1, 132}, {-1, 132}, {0, 0}, {0, (1 << 20) + 1}};
  WLM_FREED void *blob = NULL;
  size_t size;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const wlmi_model model = {.family_count = wrong[i].families, .limits = {.processors = wrong[i].processors}};
    assert_int_equal(wlmi_model_write(&model, &blob, &size), WLM_ERR_INVALID_ARGUMENT);
    assert_null(blob);
  }
  const wlmi_model model = {.limits = {.processors = 132}};
  wlmi_model again;
  assert_int_equal(wlmi_model_write(&model, &blob, &size), WLM_OK);
  unsigned char *bytes = blob;
  size_t at = 0;
  while (at < size && bytes[at] != 132) at++;
  assert_true(at + 8 < size);
  bytes[at + 2] = 0x11; /* more than 2^20 */
  const wlmi_hash hash = wlmi_hash_bytes(bytes, size - 16);
  for (int i = 0; i < 8; i++) {
    bytes[size - 16 + (size_t)i] = (unsigned char)(hash.high >> 8 * i);
    bytes[size - 8 + (size_t)i] = (unsigned char)(hash.low >> 8 * i);
  }
  assert_int_equal(wlmi_model_read(blob, size, &again), WLM_ERR_DATABASE);
}

GROUP(emit_begin, planted_end)

int main(void) {
  meter_begin(&counted);
  return test_run();
}
