/* Choosing by a cost model: which model decides, when rules do instead, and what preparation costs. */
#include "core/problem/spec_key.h"
#include "select/forecast.h"
#include "select/model.h"
#include "support/emit_fixture.h"
#include "support/planted.h"
#include "support/snapshot_fixture.h"
#include "support/test.h"
#include "tuner/train.h"

/* A snapshot with a model of others. */
typedef wlmi_snapshot lending;
static wlmi_snapshot lent(wlmi_model *model) {
  return (wlmi_snapshot){.families = wlmi_generator_families(emit_generator), .models = model, .model_count = 1};
}
static void lending_clear(lending *snapshot) {
  snapshot->models = NULL;
  snapshot->model_count = 0;
  wlmi_snapshot_clear(snapshot);
}

/* Chooses with the models only. `only` is the beginning of all candidates' names; NULL = any. */
static wlmi_decision choose_for(int64_t n, wlmi_model *models, int model_count, const wlm_stats *stats, int64_t calls,
                                const char *only) {
  const wlmi_snapshot snapshot = {.models = models, .model_count = model_count};
  wlmi_decision decision;
  OWNED(wlmi_candidates) *all = planted_candidates(n);
  FREED wlmi_candidate *kept = calloc((size_t)all->count, sizeof *kept);
  wlmi_candidate_list list = {all->families, kept, 0};
  GET(wlmi_spec, spec, wlmi_spec_from_key(planted_key, n, &spec));
  spec.problem.policy.expected_calls = calls;
  for (int64_t i = 0; i < all->count; i++)
    if (!only || !strncmp(all->candidates[i].variant, only, strlen(only))) kept[list.count++] = all->candidates[i];
  const wlmi_variant_set variants = wlmi_variants_of_list(&list);
  assert_int_equal(select_for(&snapshot, stats, planted_key, &spec, &emit_cuda, &variants, &decision), WLM_OK);
  return decision;
}

static wlmi_decision choose_among(wlmi_model *models, int model_count, const wlm_stats *stats, int64_t calls,
                                  const char *only) {
  return choose_for(32, models, model_count, stats, calls, only);
}

static wlmi_decision choose(wlmi_model *model, const wlm_stats *stats, int64_t calls, const char *only) {
  return choose_among(model, 1, stats, calls, only);
}

TEST(rules_decide_for_distant_matrices) {
  wlmi_model *model = planted_learned();
  const wlm_stats near = planted_matrix();
  wlm_stats far = near;
  wlmi_decision d = choose(model, &near, 1, NULL);
  assert_int_equal(d.step, WLMI_STEP_MODEL);
  assert_int_equal(d.ranked_count, WLMI_RANKED);
  assert_string_equal(d.ranked[0].variant, d.variant);
  assert_true((d.rule || d.ranked[0].relative == 1) && d.ranked[1].relative >= 1);
  assert_true(d.predicted > 0 && d.predicted == d.ranked[0].predicted && d.spread >= model->spread);
  assert_true(d.distance < WLMI_MODEL_FAR && d.untrained > 0 && d.trained_on == model->measurements);
  /* the farther the nearest case, the less exact the prediction */
  assert_true(d.distance > 0 && fabs(d.spread - model->spread * (1 + d.distance / WLMI_FAR)) < 1e-12);
  far.rows = far.cols = 2;
  far.nnz = 1 << 20;
  far.mean = 1 << 19;
  far.cv = 0.9;
  far.longest = 1000000;
  d = choose(model, &far, 1, NULL);
  assert_int_equal(d.step, WLMI_STEP_RULE);
  assert_true(d.predicted == 0);
}

/* Products of at most 8 columns and wider ones are trained and decided apart. */
TEST(narrow_products_have_a_model_of_their_own) {
  planted_world w = planted_world_make(WLMI_TRAIN_MATRICES);
  char class[WLMI_PROBLEM_CLASS];
  for (int64_t i = 0; i < w.count; i++)
    if (w.records[i].n == planted_widths[0]) w.records[i].n = WLMI_NARROW;
  HOLD(wlmi_models, models, wlmi_models_train(emit_generator, &planted_limits, w.records, w.count, &models));
  assert_int_equal(models.count, 2);
  for (int i = 0; i < 2; i++) {
    wlmi_model *model = &models.models[i];
    const int narrow = strstr(model->problems, ",narrow=1") != NULL;
    wlmi_model_class(planted_key, narrow ? 1 : WLMI_NARROW + 1, 0, class);
    assert_string_equal(model->problems, class);
    for (int64_t n = 4; n <= 64; n *= 2)
      assert_int_equal(choose_for(n, model, 1, &w.matrices[0], 1, NULL).step,
                       (n <= WLMI_NARROW) == narrow ? WLMI_STEP_MODEL : WLMI_STEP_RULE);
  }
  wlmi_model_class("op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=none,sample=none,operation=attention", 1, 0,
                   class);
  assert_string_equal(class, "dense=f32,rowptr=i32,colind=i32,sample=none,operation=attention");
  planted_world_end(&w);
}

/* A shipped model of many matrices and a user's model of a few distant ones, in either order: the one with the most
 * similar matrix is used. A model of another device class counts as farther away. */
TEST(the_most_similar_model_is_used) {
  wlmi_model models[2] = {*planted_learned(), planted_train(WLMI_TRAIN_MATRICES)};
  planted_seed = 99; /* a matrix that is not in the training */
  const wlm_stats asked = planted_matrix();
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
    assert_int_equal(d.step, WLMI_STEP_MODEL);
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
TEST(forecasts_use_the_most_similar_model) {
  wlmi_model models[2] = {*planted_learned(), planted_train(WLMI_TRAIN_MATRICES)};
  planted_seed = 99; /* a matrix that is not in the training */
  const wlm_stats asked = planted_matrix();
  const wlmi_point here = wlmi_point_of(&asked, 32);
  const wlmi_candidate_list *list = planted_candidates(32);
  GET(wlmi_spec, spec, wlmi_spec_from_key(planted_key, 32, &spec));
  const wlmi_request request = {.stats = &asked, .problem = planted_key, .spec = &spec, .limits = &emit_cuda};
  models[1].points[0] = here;
  for (int swapped = 0; swapped < 2; swapped++) {
    const wlmi_snapshot snapshot = {.models = models, .model_count = 2};
    GET(wlmi_forecast, forecast, wlmi_forecast_make(&snapshot, &request, list, &forecast));
    assert_true(forecast.distance == 0 && forecast.spread == models[!swapped].spread);
    wlmi_forecast_release(&forecast);
    const wlmi_model other = models[0];
    models[0] = models[1];
    models[1] = other;
  }
  wlmi_candidates_drop(list);
  wlmi_model_release(&models[1]); /* the user's, after two swaps */
}

/* What is chosen for N = 32, among all candidates. */
static wlmi_decision decide(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem) {
  wlmi_decision d;
  GET(wlmi_spec, spec, wlmi_spec_from_key(problem, 32, &spec));
  OWNED(wlmi_candidates) *list = planted_candidates_for(problem, 32);
  const wlmi_variant_set variants = wlmi_variants_of_list(list);
  assert_int_equal(select_for(snapshot, stats, problem, &spec, &emit_cuda, &variants, &d), WLM_OK);
  return d;
}

/* The model also leaves out variants that failed on this matrix. */
TEST(failed_variants_are_not_chosen) {
  wlmi_model *model = planted_learned();
  CLEARED(lending) snapshot = lent(model);
  const wlm_stats near = planted_matrix();
  const wlmi_decision before = choose(model, &near, 1, NULL);
  snapshot_case(&snapshot, &near, planted_key, 32);
  for (int i = 0; i < 2; i++) snapshot_failure(&snapshot, before.ranked[i].variant, "why");
  const wlmi_decision d = decide(&snapshot, &near, planted_key);
  assert_int_equal(d.step, WLMI_STEP_MODEL);
  assert_string_equal(d.variant, before.ranked[2].variant);
  assert_int_equal(d.failed, 2);
}

/* A case of one candidate decides, unless the model predicts that another one is clearly faster than it. */
TEST(a_thin_case_stays_unless_it_is_outdone) {
  wlmi_model *model = planted_learned();
  const wlm_stats tuned = planted_matrix();
  OWNED(wlmi_candidates) *list = planted_candidates(32);
  wlmi_model_case predicting;
  wlmi_model_case_make(model, &emit_cuda, &tuned, planted_key, 32, &predicting);
  const double best = choose(model, &tuned, 1, NULL).predicted, clearly = exp(0.5 * wlmi_model_spread(&predicting));
  int stays = 0, goes = 0;
  for (int64_t i = 0; i < list->count; i++) {
    const double predicted = wlmi_model_seconds(&predicting, &list->candidates[i]);
    if (!(predicted > 0) || list->candidates[i].prepares || (predicted <= best * clearly ? stays : goes) > 2) continue;
    CLEARED(lending) snapshot = lent(model);
    snapshot_case(&snapshot, &tuned, planted_key, 32);
    snapshot_measured(&snapshot, list->candidates[i].variant, 1, 0);
    const wlmi_decision d = decide(&snapshot, &tuned, planted_key);
    *(predicted <= best * clearly ? &stays : &goes) += 1;
    assert_int_equal(d.step, predicted <= best * clearly ? WLMI_STEP_FINGERPRINT : WLMI_STEP_MODEL);
    assert_int_equal(d.thin_known, d.step == WLMI_STEP_MODEL);
  }
  assert_true(stays > 0 && goes > 0);
}

/* Other types follow f32 where they have no model: then its measurements of this matrix and its model decide. */
TEST(types_without_a_model_follow_f32) {
  static const char f64[] = "op=mul.sum,dense=f64,rowptr=i32,colind=i32,values=f64,sample=none";
  wlmi_model model = *planted_learned();
  const wlmi_snapshot snapshot = lent(&model);
  const wlm_stats asked = planted_matrix();
  wlmi_decision d = decide(&snapshot, &asked, f64);
  assert_int_equal(d.step, WLMI_STEP_MODEL);
  assert_non_null(strstr(d.like, ", in f32"));
  wlmi_model_class(f64, 32, 0, model.problems);
  d = decide(&snapshot, &asked, f64);
  assert_int_equal(d.step, WLMI_STEP_MODEL);
  assert_string_equal(d.like, "");
}

/* Positions have a model of their own, whatever their type. It decides before the sum that was tuned on this very
 * matrix; max without positions follows that sum, and so do positions as long as there is only a model of sums. */
TEST(positions_have_a_model_of_their_own) {
  static const struct {
    const char *trained, *arg, *like;
    wlmi_step step;
  } kinds[] = {{"", "", ", for a sum of products", WLMI_STEP_FINGERPRINT},
               {"", ",arg=i32", ", for a sum of products", WLMI_STEP_FINGERPRINT},
               {",arg=i32", "", ", for a sum of products", WLMI_STEP_FINGERPRINT},
               {",arg=i32", ",arg=i32", "", WLMI_STEP_MODEL},
               {",arg=i32", ",arg=i64", ", with 32-bit positions", WLMI_STEP_MODEL},
               {",arg=i32", ",arg=i16", ", with 32-bit positions", WLMI_STEP_MODEL}};
  static const char max[] = "op=mul.max,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none";
  wlmi_model model = *planted_learned();
  CLEARED(lending) snapshot = lent(&model);
  const wlm_stats tuned = planted_matrix();
  char problem[WLMI_SPEC_KEY];
  snapshot_case(&snapshot, &tuned, planted_key, 32);
  for (int i = 0; i < WLMI_THIN; i++) /* with fewer it would be passed over */
    snapshot_measured(&snapshot, "row_crc/cf=1,rows=4", i + 1, 0);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    snprintf(problem, sizeof problem, "%s%s", max, kinds[i].trained);
    wlmi_model_class(problem, 32, 0, model.problems);
    snprintf(problem, sizeof problem, "%s%s", max, kinds[i].arg);
    const wlmi_decision d = decide(&snapshot, &tuned, problem);
    assert_int_equal(d.step, kinds[i].step);
    assert_string_equal(d.like, kinds[i].like);
  }
}

/* Messages with a line for each edge have a model of their own, which decides before the sum that was tuned on this
 * very matrix. All others are of the sum's kind. */
TEST(messages_with_edge_lines_have_a_model_of_their_own) {
  static const char relu[] =
      "op=custom{sum=relu(b+e)},dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,operation=message";
  static const char difference[] =
      "op=custom{sum=x-b},dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,operation=message";
  static const struct {
    const char *trained, *problem, *like;
    wlmi_step step;
  } cases[] = {{relu, relu, "", WLMI_STEP_MODEL},
               {planted_key, relu, ", for a sum of products", WLMI_STEP_FINGERPRINT},
               {relu, difference, ", for a sum of products", WLMI_STEP_FINGERPRINT},
               {planted_key, difference, ", for a sum of products", WLMI_STEP_FINGERPRINT}};
  wlmi_model model = *planted_learned();
  CLEARED(lending) snapshot = lent(&model);
  const wlm_stats tuned = planted_matrix();
  snapshot_case(&snapshot, &tuned, planted_key, 32);
  for (int i = 0; i < WLMI_THIN; i++) /* with fewer it would be passed over */
    snapshot_measured(&snapshot, "row_vec/lanes=8,vector=4,batch=8", i + 1, 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(wlmi_model_class_of_key(cases[i].trained, 32, model.problems), WLM_OK);
    const wlmi_decision d = decide(&snapshot, &tuned, cases[i].problem);
    assert_int_equal(d.step, cases[i].step);
    assert_string_equal(d.like, cases[i].like);
  }
  char class[WLMI_PROBLEM_CLASS];
  assert_int_equal(wlmi_model_class_of_key(relu, 4, class), WLM_OK);
  assert_string_equal(class, "dense=f32,rowptr=i32,colind=i32,sample=none,operation=message");
  assert_int_equal(wlmi_model_class_of_key(difference, 4, class), WLM_OK);
  assert_string_equal(class, "dense=f32,rowptr=i32,colind=i32,sample=none,narrow=1");
}

/* With estimated stats only the size counts. Neither fingerprints nor pins of a bucket match. */
TEST(estimated_stats_use_the_size_only) {
  wlmi_model *model = planted_learned();
  CLEARED(lending) snapshot = lent(model);
  const wlm_stats real = planted_matrix();
  wlm_stats size = {.size = sizeof size, .rows = real.rows, .cols = real.cols, .nnz = real.nnz, .mean = real.mean};
  wlmi_pin pin = {.problem = planted_key, .n = 32, .variant = "row_crc/cf=1,rows=4"};
  const wlmi_candidate_list *list;
  wlmi_decision d[2];
  wlmi_bucket_of(&size, &pin.bucket);
  assert_int_equal(wlmi_snapshot_add_pin(&snapshot, &pin), WLM_OK);
  snapshot_case(&snapshot, &size, planted_key, 32);
  snapshot_measured(&snapshot, "row_crc/cf=1,rows=4", 1, 0);
  GET(wlmi_spec, spec, wlmi_spec_from_key(planted_key, 32, &spec));
  list = planted_candidates(32);
  const wlmi_variant_set variants = wlmi_variants_of_list(list);
  for (int i = 0; i < 2; i++) {
    const wlmi_request request = {&size, WLMI_USE_ESTIMATED, planted_key, &spec, &emit_cuda, &variants};
    assert_int_equal(wlmi_select(&snapshot, &request, &d[i]), WLM_OK);
    assert_int_equal(d[i].step, WLMI_STEP_MODEL);
    assert_string_equal(d[i].pin, "");
    size.cv = 40; /* not used with estimated stats */
    size.longest = size.nnz;
  }
  assert_string_equal(d[0].variant, d[1].variant);
  assert_true(d[0].entry_count > 4 && d[0].predicted > 0);
  for (int i = 1; i < d[0].entry_count; i++)
    for (int k = 0; k < i; k++) assert_false(wlmi_variant_same(&d[0].entries[i].variant, &d[0].entries[k].variant));
  assert_int_equal(d[0].entries[d[0].entry_count - 1].step, WLMI_STEP_BUILTIN);

  /* candidates that must be prepared are not for one call, even if there are no others */
  FREED wlmi_candidate *prepared = calloc((size_t)list->count, sizeof *prepared);
  wlmi_candidate_list few = {list->families, prepared, 0};
  for (int64_t i = 0; i < list->count; i++)
    if (list->candidates[i].prepares) prepared[few.count++] = list->candidates[i];
  const wlmi_variant_set must_prepare = wlmi_variants_of_list(&few);
  const wlmi_request request = {&size, WLMI_USE_ESTIMATED, planted_key, &spec, &emit_cuda, &must_prepare};
  assert_true(few.count > 0);
  assert_int_equal(wlmi_select(&snapshot, &request, &d[0]), WLM_ERR_NOT_FOUND);
  spec.problem.policy.expected_calls = 1000;
  assert_int_equal(wlmi_select(&snapshot, &request, &d[0]), WLM_OK);
  assert_int_equal(d[0].step, WLMI_STEP_MODEL);
  wlmi_candidates_drop(list);
}

/* The kernel that rules name is chosen, unless another is predicted to be faster by half of the model's spread. */
TEST(the_kernel_of_the_rules_stays) {
  wlmi_model *model = planted_learned();
  const double spread = model->spread;
  int kept = 0, left = 0;
  for (int i = 0; i < 40; i++) {
    const wlm_stats asked = planted_matrix();
    model->spread = 0;
    const wlmi_decision best = choose(model, &asked, 1, NULL), rule = choose_among(NULL, 0, &asked, 1, NULL);
    model->spread = spread;
    const wlmi_decision d = choose(model, &asked, 1, NULL);
    assert_int_equal(rule.step, WLMI_STEP_RULE);
    assert_int_equal(d.step, WLMI_STEP_MODEL);
    const int stays = !strcmp(d.variant, rule.variant);
    assert_int_equal(stays, d.rule != NULL);
    assert_true(stays || !strcmp(d.variant, best.variant));
    assert_true(stays ? d.ranked[0].relative <= exp(d.spread / 2) : d.ranked[0].relative == 1);
    for (int k = 1; k < d.ranked_count; k++) assert_string_not_equal(d.ranked[k].variant, d.variant);
    kept += stays && strcmp(best.variant, rule.variant) != 0;
    left += !stays;
  }
  assert_true(kept > 0 && left > 0);
}

/* The model predicts nothing for a family without measurements. */
TEST(new_families_are_not_predicted) {
  wlmi_model *model = planted_learned();
  wlm_stats near = planted_matrix();
  while (near.cv < 1.5) near = planted_matrix();
  wlmi_decision d = choose(model, &near, 1, "row_block");
  assert_int_equal(d.step, WLMI_STEP_RULE);
  assert_true(d.untrained > 0);
  assert_memory_equal(d.variant, "row_block", 9);
}

TEST(preparation_is_divided_by_the_calls) {
  wlmi_model *model = planted_learned();
  wlm_stats skewed = planted_matrix();
  while (skewed.cv < 1.5) skewed = planted_matrix();
  assert_non_null(strstr(choose(model, &skewed, 1, "merge_path").variant, "prepared=0"));
  assert_non_null(strstr(choose(model, &skewed, 2, "merge_path").variant, "prepared=0"));
  assert_non_null(strstr(choose(model, &skewed, 100000, "merge_path").variant, "prepared=1"));
}

/* The model predicts from how many calls on preparation pays. The choice does not change before, but by the time that
 * the gain exceeds the model's error, and explain shows both kernels on either side. */
TEST(the_model_predicts_the_break_even) {
  wlmi_model *model = planted_learned();
  wlm_stats skewed = planted_matrix();
  while (skewed.cv < 1.5) skewed = planted_matrix();
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

TEST(families_that_always_prepare_are_not_learned) {
  const wlmi_model *model = planted_learned();
  int knows_merge_path = 0;
  for (int i = 0; i < model->family_count; i++) {
    assert_string_not_equal(model->families[i], "row_sorted");
    knows_merge_path |= !strcmp(model->families[i], "merge_path") && model->prepare[i] > 0;
  }
  assert_true(knows_merge_path);
}

/* Rules name a prepared kernel of a family that the model does not know. */
TEST(an_unknown_prepared_choice_has_another_beside_it) {
  wlmi_model *model = planted_learned();
  wlm_stats skewed = planted_matrix();
  while (skewed.cv < 1.5 || skewed.longest * 50 > skewed.nnz || skewed.nnz > 50000) skewed = planted_matrix();
  const wlmi_decision d = choose(model, &skewed, 1000, NULL);
  assert_memory_equal(d.variant, "row_sorted/", 11);
  assert_true(d.rule && d.predicted == 0 && *d.other.variant && d.other.prepare == 0);
}

GROUP(emit_begin, planted_end)
