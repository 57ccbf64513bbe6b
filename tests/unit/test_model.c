/* The cost model: what it predicts, where it gives no prediction, and that damaged blobs are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/random.h"
#include "core/problem/spec_key.h"
#include "select/forecast.h"
#include "select/model.h"
#include "support/emit_fixture.h"
#include "support/snapshot_fixture.h"
#include "tuner/boost.h"
#include "tuner/train.h"

static const char key[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none";
static const wlmi_limits limits = {.target = WLM_TARGET_CUDA,
                                   .arch = 90,
                                   .threads_per_block = 1024,
                                   .shared_bytes = 232448,
                                   .processors = 132,
                                   .l2_bytes = 50 << 20};
static const int64_t widths[] = {32, 64};
enum { MATRICES = 40, UNSEEN = 12, MOST = 40000, WIDTHS = 2 };

/* ---- simulated measurements with a known winner -------------------------------------------------------- */

static uint64_t seed;

/* Uniform in [low, high). */
static double between(double low, double high) {
  seed += 0x9e3779b97f4a7c15u;
  uint64_t z = seed;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return low + (high - low) * (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static wlm_stats any_matrix(void) {
  wlm_stats s = WLM_STATS_INIT;
  s.rows = s.cols = (int64_t)exp2(between(12, 17));
  s.nnz = (int64_t)((double)s.rows * exp2(between(1, 6)));
  s.mean = (double)s.nnz / (double)s.rows;
  s.cv = exp2(between(-3, 3));
  s.longest = (int64_t)(s.mean * (1 + 4 * s.cv));
  s.rows_le_4 = s.rows / 4;
  s.rows_le_16 = s.rows / 2;
  s.fingerprint[0] = (uint64_t)between(0, 1e15);
  s.fingerprint[1] = (uint64_t)between(0, 1e15);
  return s;
}

static int number_of(const char *variant, const char *name) {
  const char *at = strstr(variant, name);
  return at ? atoi(at + strlen(name)) : 0;
}

/* The planted time, relative to the time to move the bytes: merge_path is best with four blocks per multiprocessor
 * and lanes as wide as N, row_vec with even rows; all others are slow. */
static double planted(const wlm_stats *s, int64_t n, const char *variant) {
  const double lanes = fabs(log2((double)(4 * number_of(variant, "lanes=")) / (double)n));
  if (!strncmp(variant, "merge_path", 10)) {
    const double blocks = (double)(s->rows + s->nnz) / number_of(variant, "items=") / emit_cuda.processors;
    const double prepared = number_of(variant, "prepared=") ? -0.2 : 0;
    return 1.5 + 0.3 * fabs(log2(blocks / 4)) + 0.3 * lanes + prepared;
  }
  if (!strncmp(variant, "row_vec", 7)) return (s->cv < 0.7 ? 1.2 : 4) + 0.3 * lanes;
  return 6;
}

static const wlmi_candidate_list *describe_for(const char *problem, int64_t n) {
  const wlmi_candidate_list *list;
  wlmi_spec spec;
  assert_int_equal(wlmi_spec_from_key(problem, n, &spec), WLM_OK);
  assert_int_equal(wlmi_generator_describe(emit_generator, &spec, &emit_cuda, &list), WLM_OK);
  return list;
}

static const wlmi_candidate_list *describe_all(int64_t n) { return describe_for(key, n); }

typedef struct world {
  wlm_stats matrices[MATRICES];
  wlmi_measurement_record *records;
  int64_t count;
  char (*names)[WLM_VARIANT_NAME];
} world;

/* Measurements of all candidates, except row_block, on `count` matrices. */
static world make_world(int count) {
  world w = {.records = calloc(MOST, sizeof *w.records), .names = calloc(MOST, sizeof *w.names)};
  seed = 1;
  for (int m = 0; m < count; m++) {
    w.matrices[m] = any_matrix();
    for (int k = 0; k < WIDTHS; k++) {
      const wlmi_candidate_list *list = describe_all(widths[k]);
      for (int64_t i = 0; i < list->count; i++) {
        const char *variant = list->candidates[i].variant;
        if (!strncmp(variant, "row_block", 9)) continue;
        const double seconds = wlmi_simple_seconds(&limits, &w.matrices[m], widths[k]) *
                               planted(&w.matrices[m], widths[k], variant) * between(0.98, 1.02);
        assert_true(w.count < MOST);
        memcpy(w.names[w.count], variant, WLM_VARIANT_NAME);
        w.records[w.count] =
            (wlmi_measurement_record){.stats = w.matrices[m],
                                      .variant = w.names[w.count],
                                      .problem = (char *)key,
                                      .n = widths[k],
                                      .time_ps = (int64_t)(seconds * 1e12),
                                      .prepare_ps = list->candidates[i].prepares ? (int64_t)(seconds * 2e12) : 0,
                                      .made_at = 1};
        w.count++;
      }
      wlmi_candidates_drop(list);
    }
  }
  return w;
}

static void end_world(world *w) {
  free(w->records);
  free(w->names);
}

static wlmi_model train(int matrices) {
  world w = make_world(matrices);
  wlmi_models models;
  wlmi_model model = {0};
  assert_int_equal(wlmi_models_train(emit_generator, &limits, w.records, w.count, &models), WLM_OK);
  assert_int_equal(models.count, matrices >= WLM_TRAIN_MATRICES);
  if (models.count) {
    model = models.models[0];
    models.count = 0;
  }
  wlmi_models_release(&models);
  end_world(&w);
  return model;
}

/* A model of all matrices, trained once. learned() also restores the seed, so each test draws the same matrices. */
static wlmi_model trained;

static wlmi_model *learned(void) {
  static uint64_t seed_after;
  if (!trained.tree_count) {
    trained = train(MATRICES);
    seed_after = seed;
  }
  seed = seed_after;
  return &trained;
}

static int end_all(void **state) {
  wlmi_model_release(&trained);
  return emit_end(state);
}

/* ---- learning -------------------------------------------------------------------------------------------- */

static void finds_the_planted_winner_on_unseen_matrices(void **state) {
  (void)state;
  const wlmi_model model = *learned();
  double logs = 0, worst = 0, off = 0;
  for (int m = 0; m < UNSEEN; m++) {
    const wlm_stats s = any_matrix();
    for (int k = 0; k < WIDTHS; k++) {
      const wlmi_candidate_list *list;
      wlmi_prediction first;
      wlmi_model_case asked;
      int untrained;
      double best = INFINITY;
      list = describe_all(widths[k]);
      for (int64_t i = 0; i < list->count; i++)
        if (!list->candidates[i].prepares) best = fmin(best, planted(&s, widths[k], list->candidates[i].variant));
      wlmi_model_case_make(&model, &s, key, widths[k], &asked);
      assert_int_equal(wlmi_predict(&asked, list->candidates, list->count, 1, &first, 1, &untrained), 1);
      assert_true(untrained > 0); /* those that the world lacks */
      assert_false(first.candidate->prepares);
      const double ratio = planted(&s, widths[k], first.candidate->variant) / best;
      logs += log(ratio);
      worst = fmax(worst, ratio);
      off = fmax(off, fabs(log(first.seconds / asked.seconds / planted(&s, widths[k], first.candidate->variant))));
      wlmi_candidates_drop(list);
    }
  }
  assert_true(exp(logs / (UNSEEN * WIDTHS)) < 1.06);
  assert_true(worst < 1.35);
  assert_true(off < 0.35); /* the error of log(time) */
  assert_true(model.spread > 0.005 && model.spread < 0.3);
}

static void too_few_matrices_give_no_model(void **state) {
  (void)state;
  wlmi_model model = train(WLM_TRAIN_MATRICES - 1);
  assert_int_equal(model.tree_count, 0);
}

static void same_measurements_give_the_same_bytes(void **state) {
  (void)state;
  void *left, *right;
  size_t left_size, right_size;
  wlmi_model a = train(WLM_TRAIN_MATRICES), b = train(WLM_TRAIN_MATRICES);
  a.made_at = b.made_at = 7;
  assert_int_equal(wlmi_model_write(&a, &left, &left_size), WLM_OK);
  assert_int_equal(wlmi_model_write(&b, &right, &right_size), WLM_OK);
  assert_int_equal(left_size, right_size);
  assert_memory_equal(left, right, left_size);
  wlmi_free(left);
  wlmi_free(right);
  wlmi_model_release(&a);
  wlmi_model_release(&b);
}

/* The target is a step in one feature: the first tree finds it, and all trees together reach it. */
static void boosting_finds_a_step(void **state) {
  (void)state;
  enum { COUNT = 500, TREES = 60 };
  static wlmi_boost_sample samples[COUNT];
  static wlmi_tree trees[TREES];
  const wlmi_boost_options options = {.trees = TREES, .rate = 0.2, .ridge = 0, .least = 5};
  double base;
  seed = 3;
  for (int i = 0; i < COUNT; i++) {
    for (int f = 0; f < WLM_FEATURES; f++) samples[i].features[f] = (float)between(-1, 1);
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

/* What all samples of a group have in common, which no feature tells and which is much greater than the step, does not
 * hide the step. */
static void boosting_within_groups_finds_a_step(void **state) {
  (void)state;
  enum { GROUPS = 50, EACH = 10, COUNT = GROUPS * EACH, TREES = 60 };
  static wlmi_boost_sample samples[COUNT];
  static wlmi_tree trees[TREES];
  const wlmi_boost_options options = {.trees = TREES, .rate = 0.2, .ridge = 0, .least = 5, .within = 1};
  double base;
  seed = 3;
  for (int i = 0; i < COUNT; i++) {
    for (int f = 0; f < WLM_FEATURES; f++) samples[i].features[f] = (float)between(-1, 1);
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

/* ---- choosing --------------------------------------------------------------------------------------------- */

/* Chooses with the models only. `only` is the beginning of all candidates' names; NULL = any. */
static wlmi_decision choose_for(int64_t n, wlmi_model *models, int model_count, const wlm_stats *stats, int64_t calls,
                                const char *only) {
  const wlmi_snapshot snapshot = {.models = models, .model_count = model_count};
  wlmi_decision decision;
  wlmi_spec spec;
  const wlmi_candidate_list *all = describe_all(n);
  wlmi_candidate *kept = calloc((size_t)all->count, sizeof *kept);
  wlmi_candidate_list list = {all->families, kept, 0};
  assert_int_equal(wlmi_spec_from_key(key, n, &spec), WLM_OK);
  spec.problem.policy.expected_calls = calls;
  for (int64_t i = 0; i < all->count; i++)
    if (!only || !strncmp(all->candidates[i].variant, only, strlen(only))) kept[list.count++] = all->candidates[i];
  const wlmi_variant_set variants = wlmi_variants_of_list(&list);
  assert_int_equal(select_for(&snapshot, stats, key, &spec, &emit_cuda, &variants, &decision), WLM_OK);
  wlmi_candidates_drop(all);
  free(kept);
  return decision;
}

static wlmi_decision choose_among(wlmi_model *models, int model_count, const wlm_stats *stats, int64_t calls,
                                  const char *only) {
  return choose_for(32, models, model_count, stats, calls, only);
}

static wlmi_decision choose(wlmi_model *model, const wlm_stats *stats, int64_t calls, const char *only) {
  return choose_among(model, 1, stats, calls, only);
}

static void rules_decide_for_distant_matrices(void **state) {
  (void)state;
  wlmi_model *model = learned();
  const wlm_stats near = any_matrix();
  wlm_stats far = near;
  wlmi_decision d = choose(model, &near, 1, NULL);
  assert_int_equal(d.step, WLM_STEP_MODEL);
  assert_int_equal(d.ranked_count, WLM_RANKED);
  assert_string_equal(d.ranked[0].variant, d.variant);
  assert_true((d.rule || d.ranked[0].relative == 1) && d.ranked[1].relative >= 1);
  assert_true(d.predicted > 0 && d.predicted == d.ranked[0].predicted && d.spread >= model->spread);
  assert_true(d.distance < WLM_MODEL_FAR && d.untrained > 0 && d.trained_on == model->measurements);
  /* the farther the nearest case, the less exact the prediction */
  assert_true(d.distance > 0 && fabs(d.spread - model->spread * (1 + d.distance / WLM_FAR)) < 1e-12);
  far.rows = far.cols = 2;
  far.nnz = 1 << 20;
  far.mean = 1 << 19;
  far.cv = 0.9;
  far.longest = 1000000;
  d = choose(model, &far, 1, NULL);
  assert_int_equal(d.step, WLM_STEP_RULE);
  assert_true(d.predicted == 0);
}

/* Products of at most 8 columns and wider ones are trained and decided apart. */
static void narrow_products_have_a_model_of_their_own(void **state) {
  (void)state;
  world w = make_world(WLM_TRAIN_MATRICES);
  wlmi_models models;
  char class[WLM_PROBLEM_CLASS];
  for (int64_t i = 0; i < w.count; i++)
    if (w.records[i].n == widths[0]) w.records[i].n = WLM_NARROW;
  assert_int_equal(wlmi_models_train(emit_generator, &limits, w.records, w.count, &models), WLM_OK);
  assert_int_equal(models.count, 2);
  for (int i = 0; i < 2; i++) {
    wlmi_model *model = &models.models[i];
    const int narrow = strstr(model->problems, ",narrow=1") != NULL;
    wlmi_model_class(key, narrow ? 1 : WLM_NARROW + 1, class);
    assert_string_equal(model->problems, class);
    for (int64_t n = 4; n <= 64; n *= 2)
      assert_int_equal(choose_for(n, model, 1, &w.matrices[0], 1, NULL).step,
                       (n <= WLM_NARROW) == narrow ? WLM_STEP_MODEL : WLM_STEP_RULE);
  }
  wlmi_model_class("op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=none,sample=none,operation=attention", 1, class);
  assert_string_equal(class, "dense=f32,rowptr=i32,colind=i32,sample=none,operation=attention");
  wlmi_models_release(&models);
  end_world(&w);
}

/* A shipped model of many matrices and a user's model of a few distant ones, in either order: the one with the most
 * similar matrix is used. A model of another device class counts as farther away. */
static void the_most_similar_model_is_used(void **state) {
  (void)state;
  wlmi_model models[2] = {*learned(), train(WLM_TRAIN_MATRICES)};
  seed = 99; /* a matrix that is not in the training */
  const wlm_stats asked = any_matrix();
  const wlmi_point here = wlmi_point_of(&asked, 32);
  wlmi_model *own = &models[1];
  models[0].made_at = 40;
  own->made_at = 8;
  for (int64_t i = 0; i < own->point_count; i++) { /* every point of the user's model is 6 away along the rows */
    own->points[i] = here;
    own->points[i].at[0] += 6;
  }
  for (int swapped = 0; swapped < 2; swapped++) {
    wlmi_model *const shipped = &models[swapped];
    own = &models[!swapped];
    wlmi_decision d = choose_among(models, 2, &asked, 1, NULL);
    assert_int_equal(d.step, WLM_STEP_MODEL);
    assert_int_equal(d.trained_at, 40);
    assert_true(d.distance < 3 && d.cases == shipped->point_count);
    shipped->borrowed = "another class";
    assert_int_equal(choose_among(models, 2, &asked, 1, NULL).trained_at, 40);
    own->points[0].at[0] = here.at[0] + 2;
    assert_int_equal(choose_among(models, 2, &asked, 1, NULL).trained_at, 8);
    shipped->borrowed = NULL;
    own->points[0] = here; /* the user has tuned this matrix */
    d = choose_among(models, 2, &asked, 1, NULL);
    assert_int_equal(d.trained_at, 8);
    assert_true(d.distance == 0);
    const wlmi_point kept = shipped->points[0];
    shipped->points[0] = here; /* equally near: the model of more matrices is used */
    assert_int_equal(choose_among(models, 2, &asked, 1, NULL).trained_at, 40);
    shipped->points[0] = kept;
    own->points[0].at[0] = here.at[0] + 6;
    const wlmi_model other = models[0];
    models[0] = models[1];
    models[1] = other;
  }
  wlmi_model_release(&models[1]); /* the user's, after two swaps */
}

/* A forecast uses the most similar model, too, whichever comes first. */
static void forecasts_use_the_most_similar_model(void **state) {
  (void)state;
  wlmi_model models[2] = {*learned(), train(WLM_TRAIN_MATRICES)};
  seed = 99; /* a matrix that is not in the training */
  const wlm_stats asked = any_matrix();
  const wlmi_point here = wlmi_point_of(&asked, 32);
  const wlmi_candidate_list *list = describe_all(32);
  wlmi_spec spec;
  assert_int_equal(wlmi_spec_from_key(key, 32, &spec), WLM_OK);
  const wlmi_request request = {.stats = &asked, .problem = key, .spec = &spec, .limits = &emit_cuda};
  models[1].points[0] = here;
  for (int swapped = 0; swapped < 2; swapped++) {
    const wlmi_snapshot snapshot = {.models = models, .model_count = 2};
    wlmi_forecast forecast;
    assert_int_equal(wlmi_forecast_make(&snapshot, &request, list, &forecast), WLM_OK);
    assert_true(forecast.distance == 0 && forecast.spread == models[!swapped].spread);
    wlmi_forecast_release(&forecast);
    const wlmi_model other = models[0];
    models[0] = models[1];
    models[1] = other;
  }
  wlmi_candidates_drop(list);
  wlmi_model_release(&models[1]); /* the user's, after two swaps */
}

/* The model also leaves out variants that failed on this matrix. */
static void failed_variants_are_not_chosen(void **state) {
  (void)state;
  wlmi_model *model = learned();
  wlmi_snapshot snapshot = {.families = wlmi_generator_families(emit_generator), .models = model, .model_count = 1};
  const wlm_stats near = any_matrix();
  const wlmi_decision before = choose(model, &near, 1, NULL);
  wlmi_decision d;
  wlmi_spec spec;
  const wlmi_candidate_list *list;
  snapshot_case(&snapshot, &near, key, 32);
  for (int i = 0; i < 2; i++) snapshot_failure(&snapshot, before.ranked[i].variant, "why");
  assert_int_equal(wlmi_spec_from_key(key, 32, &spec), WLM_OK);
  list = describe_all(32);
  const wlmi_variant_set variants = wlmi_variants_of_list(list);
  assert_int_equal(select_for(&snapshot, &near, key, &spec, &emit_cuda, &variants, &d), WLM_OK);
  assert_int_equal(d.step, WLM_STEP_MODEL);
  assert_string_equal(d.variant, before.ranked[2].variant);
  assert_int_equal(d.failed, 2);
  wlmi_candidates_drop(list);
  snapshot.models = NULL;
  snapshot.model_count = 0;
  wlmi_snapshot_clear(&snapshot);
}

/* Positions have a model of their own, whatever their type. It decides before the sum that was tuned on this very
 * matrix; max without positions follows that sum, and so do positions as long as there is only a model of sums. */
static void positions_have_a_model_of_their_own(void **state) {
  (void)state;
  static const struct {
    const char *trained, *arg, *like;
    wlm_step step;
  } kinds[] = {{"", "", ", for a sum of products", WLM_STEP_FINGERPRINT},
               {"", ",arg=i32", ", for a sum of products", WLM_STEP_FINGERPRINT},
               {",arg=i32", "", ", for a sum of products", WLM_STEP_FINGERPRINT},
               {",arg=i32", ",arg=i32", "", WLM_STEP_MODEL},
               {",arg=i32", ",arg=i64", ", with 32-bit positions", WLM_STEP_MODEL},
               {",arg=i32", ",arg=i16", ", with 32-bit positions", WLM_STEP_MODEL}};
  static const char max[] = "op=mul.max,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none";
  wlmi_model model = *learned();
  wlmi_snapshot snapshot = {.families = wlmi_generator_families(emit_generator), .models = &model, .model_count = 1};
  const wlm_stats tuned = any_matrix();
  char problem[WLM_SPEC_KEY];
  wlmi_decision d;
  wlmi_spec spec;
  snapshot_case(&snapshot, &tuned, key, 32);
  for (int i = 0; i < WLM_THIN; i++) /* with fewer it would be passed over */
    snapshot_measured(&snapshot, "row_crc/cf=1,rows=4", i + 1, 0);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    snprintf(problem, sizeof problem, "%s%s", max, kinds[i].trained);
    wlmi_model_class(problem, 32, model.problems);
    snprintf(problem, sizeof problem, "%s%s", max, kinds[i].arg);
    assert_int_equal(wlmi_spec_from_key(problem, 32, &spec), WLM_OK);
    const wlmi_candidate_list *list = describe_for(problem, 32);
    const wlmi_variant_set variants = wlmi_variants_of_list(list);
    assert_int_equal(select_for(&snapshot, &tuned, problem, &spec, &emit_cuda, &variants, &d), WLM_OK);
    assert_int_equal(d.step, kinds[i].step);
    assert_string_equal(d.like, kinds[i].like);
    wlmi_candidates_drop(list);
  }
  snapshot.models = NULL;
  snapshot.model_count = 0;
  wlmi_snapshot_clear(&snapshot);
}

/* With estimated stats only the size counts. Neither fingerprints nor pins of a bucket match. */
static void estimated_stats_use_the_size_only(void **state) {
  (void)state;
  wlmi_model *model = learned();
  wlmi_snapshot snapshot = {.families = wlmi_generator_families(emit_generator), .models = model, .model_count = 1};
  const wlm_stats real = any_matrix();
  wlm_stats size = {.size = sizeof size, .rows = real.rows, .cols = real.cols, .nnz = real.nnz, .mean = real.mean};
  wlmi_pin pin = {.problem = key, .n = 32, .variant = "row_crc/cf=1,rows=4"};
  const wlmi_candidate_list *list;
  wlmi_decision d[2];
  wlmi_spec spec;
  wlmi_bucket_of(&size, &pin.bucket);
  assert_int_equal(wlmi_snapshot_add_pin(&snapshot, &pin), WLM_OK);
  snapshot_case(&snapshot, &size, key, 32);
  snapshot_measured(&snapshot, "row_crc/cf=1,rows=4", 1, 0);
  assert_int_equal(wlmi_spec_from_key(key, 32, &spec), WLM_OK);
  list = describe_all(32);
  const wlmi_variant_set variants = wlmi_variants_of_list(list);
  for (int i = 0; i < 2; i++) {
    const wlmi_request request = {&size, WLM_GRADE_ESTIMATED, key, &spec, &emit_cuda, &variants, 0};
    assert_int_equal(wlmi_select(&snapshot, &request, &d[i]), WLM_OK);
    assert_int_equal(d[i].step, WLM_STEP_MODEL);
    assert_string_equal(d[i].pin, "");
    size.cv = 40; /* not used with estimated stats */
    size.longest = size.nnz;
  }
  assert_string_equal(d[0].variant, d[1].variant);
  assert_true(d[0].entry_count > 4 && d[0].predicted > 0);
  for (int i = 1; i < d[0].entry_count; i++)
    for (int k = 0; k < i; k++) assert_false(wlmi_variant_same(&d[0].entries[i].variant, &d[0].entries[k].variant));
  assert_int_equal(d[0].entries[d[0].entry_count - 1].step, WLM_STEP_BUILTIN);

  /* candidates that must be prepared are not for one call, even if there are no others */
  wlmi_candidate *prepared = calloc((size_t)list->count, sizeof *prepared);
  wlmi_candidate_list few = {list->families, prepared, 0};
  for (int64_t i = 0; i < list->count; i++)
    if (list->candidates[i].prepares) prepared[few.count++] = list->candidates[i];
  const wlmi_variant_set must_prepare = wlmi_variants_of_list(&few);
  const wlmi_request request = {&size, WLM_GRADE_ESTIMATED, key, &spec, &emit_cuda, &must_prepare, 0};
  assert_true(few.count > 0);
  assert_int_equal(wlmi_select(&snapshot, &request, &d[0]), WLM_ERR_NOT_FOUND);
  spec.problem.policy.expected_calls = 1000;
  assert_int_equal(wlmi_select(&snapshot, &request, &d[0]), WLM_OK);
  assert_int_equal(d[0].step, WLM_STEP_MODEL);
  free(prepared);
  wlmi_candidates_drop(list);
  snapshot.models = NULL;
  snapshot.model_count = 0;
  wlmi_snapshot_clear(&snapshot);
}

/* The kernel that rules name is chosen, unless another is predicted to be faster by a quarter of the model's spread. */
static void the_kernel_of_the_rules_stays(void **state) {
  (void)state;
  wlmi_model *model = learned();
  const double spread = model->spread;
  int kept = 0, left = 0;
  for (int i = 0; i < 40; i++) {
    const wlm_stats asked = any_matrix();
    model->spread = 0;
    const wlmi_decision best = choose(model, &asked, 1, NULL), rule = choose_among(NULL, 0, &asked, 1, NULL);
    model->spread = spread;
    const wlmi_decision d = choose(model, &asked, 1, NULL);
    assert_int_equal(rule.step, WLM_STEP_RULE);
    assert_int_equal(d.step, WLM_STEP_MODEL);
    const int stays = !strcmp(d.variant, rule.variant);
    assert_int_equal(stays, d.rule != NULL);
    assert_true(stays || !strcmp(d.variant, best.variant));
    assert_true(stays ? d.ranked[0].relative <= exp(d.spread / 4) : d.ranked[0].relative == 1);
    for (int k = 1; k < d.ranked_count; k++) assert_string_not_equal(d.ranked[k].variant, d.variant);
    kept += stays && strcmp(best.variant, rule.variant) != 0;
    left += !stays;
  }
  assert_true(kept > 0 && left > 0);
}

/* The model predicts nothing for a family without measurements. */
static void new_families_are_not_predicted(void **state) {
  (void)state;
  wlmi_model *model = learned();
  wlm_stats near = any_matrix();
  while (near.cv < 1.5) near = any_matrix();
  wlmi_decision d = choose(model, &near, 1, "row_block");
  assert_int_equal(d.step, WLM_STEP_RULE);
  assert_true(d.untrained > 0);
  assert_memory_equal(d.variant, "row_block", 9);
}

static void preparation_is_divided_by_the_calls(void **state) {
  (void)state;
  wlmi_model *model = learned();
  wlm_stats skewed = any_matrix();
  while (skewed.cv < 1.5) skewed = any_matrix();
  assert_non_null(strstr(choose(model, &skewed, 1, "merge_path").variant, "prepared=0"));
  assert_non_null(strstr(choose(model, &skewed, 2, "merge_path").variant, "prepared=0"));
  assert_non_null(strstr(choose(model, &skewed, 100000, "merge_path").variant, "prepared=1"));
}

/* The model predicts from how many calls on preparation pays. The choice does not change before, but by the time that
 * the gain exceeds the model's error, and explain shows both kernels on either side. */
static void the_model_predicts_the_break_even(void **state) {
  (void)state;
  wlmi_model *model = learned();
  wlm_stats skewed = any_matrix();
  while (skewed.cv < 1.5) skewed = any_matrix();
  const wlmi_decision once = choose(model, &skewed, 1, "merge_path");
  const double calls = once.other.break_even;
  assert_true(once.ranked[0].break_even == 0 && once.ranked[0].prepare == 0);
  assert_non_null(strstr(once.other.variant, "prepared=1"));
  assert_true(once.other.prepare > 0 && once.other.predicted > 0 && calls >= 2 && calls < 100000);
  assert_true(once.other.predicted < once.predicted);
  wlmi_decision d = choose(model, &skewed, 100000, "merge_path");
  assert_non_null(strstr(d.variant, "prepared=1"));
  assert_true(d.ranked[0].break_even >= 2 && d.ranked[0].break_even <= 100000);
  assert_non_null(strstr(d.other.variant, "prepared=0"));
  assert_true(d.other.break_even == 0 && d.other.prepare == 0);
  if (calls > 2)
    assert_non_null(strstr(choose(model, &skewed, (int64_t)calls - 1, "merge_path").variant, "prepared=0"));
  assert_string_equal(choose(model, &skewed, 1, "row_vec").other.variant, ""); /* no prepared variant exists */
}

static void families_that_always_prepare_are_not_learned(void **state) {
  (void)state;
  const wlmi_model *model = learned();
  int knows_merge_path = 0;
  for (int i = 0; i < model->family_count; i++) {
    assert_string_not_equal(model->families[i], "row_sorted");
    knows_merge_path |= !strcmp(model->families[i], "merge_path") && model->prepare[i] > 0;
  }
  assert_true(knows_merge_path);
}

/* Rules name a prepared kernel of a family that the model does not know. */
static void an_unknown_prepared_choice_has_another_beside_it(void **state) {
  (void)state;
  wlmi_model *model = learned();
  wlm_stats skewed = any_matrix();
  while (skewed.cv < 1.5 || skewed.longest * 50 > skewed.nnz || skewed.nnz > 50000) skewed = any_matrix();
  const wlmi_decision d = choose(model, &skewed, 1000, NULL);
  assert_memory_equal(d.variant, "row_sorted/", 11);
  assert_true(d.rule && d.predicted == 0 && *d.other.variant && d.other.prepare == 0);
}

/* ---- unusual input ------------------------------------------------------------------------------------------ */

static void unusual_matrices_give_finite_times(void **state) {
  (void)state;
  wlmi_model model = train(WLM_TRAIN_MATRICES);
  const double cvs[] = {0, NAN, INFINITY, 1e30};
  const int64_t sizes[] = {0, 1, INT64_MAX / 8};
  const wlmi_candidate_list *list;
  list = describe_all(32);
  for (int i = 0; i < 4 * 3 * 3 * 3; i++) {
    wlm_stats s = WLM_STATS_INIT;
    wlmi_model_case asked;
    s.cv = cvs[i % 4];
    s.rows = s.cols = sizes[i / 4 % 3];
    s.nnz = sizes[i / 12 % 3];
    s.longest = s.nnz;
    const int64_t n = (int64_t[]){0, 1, INT32_MAX}[i / 36];
    wlmi_model_case_make(&model, &s, key, n, &asked);
    assert_false(isnan(asked.distance));
    for (int64_t c = 0; c < list->count; c++) {
      assert_true(wlmi_model_seconds(&asked, &list->candidates[c]) >= 0);
      for (int f = 0; f < WLM_FEATURES; f++) assert_true(isfinite(asked.features[f]));
    }
  }
  wlmi_candidates_drop(list);
  wlmi_model_release(&model);
}

static int64_t allocations;
static void *count_allocate(void *user, size_t size) {
  (void)user;
  allocations++;
  return malloc(size);
}
static void *count_reallocate(void *user, void *old, size_t size) {
  (void)user;
  allocations++;
  return realloc(old, size);
}
static void count_release(void *user, void *pointer) {
  (void)user;
  free(pointer);
}

static void evaluating_allocates_nothing(void **state) {
  (void)state;
  wlmi_model model = train(WLM_TRAIN_MATRICES);
  const wlm_stats s = any_matrix();
  const wlmi_candidate_list *list;
  wlmi_prediction best[WLM_RANKED];
  wlmi_model_case asked;
  int untrained;
  list = describe_all(32);
  const int64_t before = allocations;
  assert_true(before > 0);
  wlmi_model_case_make(&model, &s, key, 32, &asked);
  assert_int_equal(wlmi_predict(&asked, list->candidates, list->count, 5, best, WLM_RANKED, &untrained), WLM_RANKED);
  assert_int_equal(allocations, before);
  for (int i = 1; i < WLM_RANKED; i++) assert_true(best[i - 1].price <= best[i].price);
  wlmi_candidates_drop(list);
  wlmi_model_release(&model);
}

/* ---- bytes --------------------------------------------------------------------------------------------------- */

static void models_are_written_and_read(void **state) {
  (void)state;
  wlmi_model model = train(WLM_TRAIN_MATRICES), again;
  const wlm_stats s = any_matrix();
  const wlmi_candidate_list *list = describe_all(32);
  void *blob;
  size_t size;
  wlmi_model_case left, right;
  assert_int_equal(wlmi_model_write(&model, &blob, &size), WLM_OK);
  assert_int_equal(wlmi_model_read(blob, size, &again), WLM_OK);
  assert_string_equal(again.problems, "dense=f32,rowptr=i32,colind=i32,sample=none");
  assert_true(again.made_at == model.made_at && again.measurements == model.measurements);
  assert_true(again.spread == model.spread && again.family_count == model.family_count);
  wlmi_model_set_families(&again, list->families);
  wlmi_model_case_make(&model, &s, key, 32, &left);
  wlmi_model_case_make(&again, &s, key, 32, &right);
  assert_true(left.distance == right.distance);
  for (int64_t i = 0; i < list->count; i++)
    assert_true(wlmi_model_seconds(&left, &list->candidates[i]) == wlmi_model_seconds(&right, &list->candidates[i]));
  wlmi_candidates_drop(list);
  wlmi_free(blob);
  wlmi_model_release(&model);
  wlmi_model_release(&again);
}

static void damaged_bytes_are_refused(void **state) {
  (void)state;
  wlmi_model model = train(WLM_TRAIN_MATRICES), again;
  unsigned char *blob;
  size_t size;
  assert_int_equal(wlmi_model_write(&model, (void **)&blob, &size), WLM_OK);
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
  wlmi_model_release(&model);
}

/* Numbers that no training gives, in bytes whose checksum is right: a family count beyond the array, for example. */
static void impossible_numbers_are_refused(void **state) {
  (void)state;
  static const struct {
    int families, processors;
  } wrong[] = {{WLM_MODEL_FAMILIES + 1, 132}, {-1, 132}, {0, 0}, {0, (1 << 20) + 1}};
  void *blob = NULL;
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
  wlmi_free(blob);
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

static void keys_are_read_back(void **state) {
  (void)state;
  static const char *const keys[] = {
      "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
      "op=copy_b.max,dense=f32,rowptr=i64,colind=i32,values=none,sample=none,empty=identity",
      "op=mul.mean,dense=f32,rowptr=i32,colind=i32,values=f32,sample=fastrand:64:none",
      "op=custom{message=a*b;init=0;reduce=acc+x;combine=reduce},dense=f32,rowptr=i32,colind=i32,values=f32,sample="
      "none",
      "op=custom{message=a*b;init=0;reduce=fmax(acc,x)},dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
      "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,operation=sddmm,heads=8",
      "op=div.mean,dense=f16,rowptr=i64,colind=i64,values=f32,sample=none,operation=sddmm",
      "op=mul.max,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,empty=identity,transpose=1",
      "op=custom{sum=relu(b+e)},dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,operation=message",
      "op=custom{x:row:1;k:column:1;sum=tanh(x+k)*a*b;edge_sum=x},dense=bf16,rowptr=i32,colind=i64,values=f32,sample="
      "none,operation=message,transpose=1,heads=4",
      "op=custom{mean=b;max=b;min=b},dense=f64,rowptr=i32,colind=i32,values=none,sample=none,operation=message,arg=i32",
      "op=custom{w:row:wins;sum=w},dense=f32,rowptr=i32,colind=i32,values=none,sample=none,operation=message,wins=i64",
      "op=custom{dense:row;values:row;sum=fmin(b,dense==values?1:0)},dense=f32,rowptr=i32,colind=i32,values=none,"
      "sample=none,operation=message"};
  static const char *const foreign[] = {
      "",
      "p",
      "op=mul.sum",
      "op=what.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
      "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,new=1",
      "op=mul.custom{init=0;reduce=acc+x},dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
      "op=mul.sum,dense=,rowptr=i32"};
  char again[WLM_SPEC_KEY], class[WLM_PROBLEM_CLASS];
  wlmi_spec spec;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (wlmi_spec_from_key(keys[i], 24, &spec) != WLM_OK) fail_msg("%s: %s", keys[i], wlm_error_detail());
    wlmi_spec_key(&spec, again);
    assert_string_equal(again, keys[i]);
    assert_int_equal(spec.problem.n, 24);
    assert_int_equal(wlmi_problem_has_values(keys[i]), spec.has_values);
    wlmi_problem_class(keys[i], class);
    assert_true(!strncmp(class, "dense=", 6) && strchr("fb", class[6]));
  }
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    assert_int_equal(wlmi_spec_from_key(foreign[i], 24, &spec), WLM_ERR_UNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_the_planted_winner_on_unseen_matrices),
      cmocka_unit_test(too_few_matrices_give_no_model),
      cmocka_unit_test(same_measurements_give_the_same_bytes),
      cmocka_unit_test(boosting_finds_a_step),
      cmocka_unit_test(boosting_within_groups_finds_a_step),
      cmocka_unit_test(rules_decide_for_distant_matrices),
      cmocka_unit_test(narrow_products_have_a_model_of_their_own),
      cmocka_unit_test(the_most_similar_model_is_used),
      cmocka_unit_test(forecasts_use_the_most_similar_model),
      cmocka_unit_test(failed_variants_are_not_chosen),
      cmocka_unit_test(positions_have_a_model_of_their_own),
      cmocka_unit_test(estimated_stats_use_the_size_only),
      cmocka_unit_test(the_kernel_of_the_rules_stays),
      cmocka_unit_test(new_families_are_not_predicted),
      cmocka_unit_test(preparation_is_divided_by_the_calls),
      cmocka_unit_test(the_model_predicts_the_break_even),
      cmocka_unit_test(families_that_always_prepare_are_not_learned),
      cmocka_unit_test(an_unknown_prepared_choice_has_another_beside_it),
      cmocka_unit_test(unusual_matrices_give_finite_times),
      cmocka_unit_test(evaluating_allocates_nothing),
      cmocka_unit_test(models_are_written_and_read),
      cmocka_unit_test(damaged_bytes_are_refused),
      cmocka_unit_test(impossible_numbers_are_refused),
      cmocka_unit_test(keys_are_read_back),
  };
  const wlm_allocator counting = {count_allocate, count_reallocate, count_release, NULL};
  wlm_set_allocator(&counting);
  return cmocka_run_group_tests(tests, emit_begin, end_all);
}
