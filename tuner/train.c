/* Trains models to predict log(time / simple time) of a candidate on a matrix, from all measurements of a class of
 * products (wlmi_model_class) on one device class. Five rules make a model choose well rather than fit well:
 *
 *   cases     a choice compares the candidates of one case. So most trees learn only how these differ; what their times
 *             have in common, such as how rows of B lie in the cache, is added by a few trees that see the case alone
 *   times     come from select/case.c, so changed sources, newer compilers and failures are treated as in a choice
 *   hopeless  more than `hopeless` times the best of the case counts as that much: how bad a time is does not matter
 *   errors    are measured on matrices that were left out of the training; on its own data they are nearly 0
 *   prepared  kernels of families that always prepare are not learned: rules and measurements choose those better, and
 *             a model that knows them chooses worse among the others (docs/architecture.md) */
#include "tuner/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/base/threads.h"
#include "core/problem/spec_key.h"
#include "core/problem/structs.h"
#include "db/measurement_set.h"
#include "select/case.h"
#include "tuner/boost.h"
#include "warploom/warploom_tune.h"

enum { FOLDS = 4 };
static const double hopeless = 4, worth_choosing = 1.5; /* in multiples of the best time of the case */
static const double emphasis = 1.5; /* a candidate's weight is the best time over its own, to this power */

typedef struct schedule {
  wlmi_boost_options differing, common; /* trees for how candidates differ, then for what a case's have in common */
} schedule;
static const schedule thorough = {{.trees = 250, .rate = 0.1, .ridge = 1, .least = 20, .within = 1},
                                  {.trees = 50, .rate = 0.2, .ridge = 1, .least = 10}};
static const schedule rough = {{.trees = 80, .rate = 0.25, .ridge = 1, .least = 20, .within = 1}, /* for the spread */
                               {.trees = 20, .rate = 0.4, .ridge = 1, .least = 10}};

/* What evaluating a sample needs. */
typedef struct example {
  double over_best; /* time over the best of its case */
  int fold;         /* all cases of a matrix are in the same */
} example;

typedef struct lesson {
  wlmi_model model;
  wlmi_boost_sample *samples;
  example *examples; /* beside the samples */
  int64_t count, sample_capacity, example_capacity, point_capacity;
  int64_t measured[WLMI_MODEL_FAMILIES]; /* number of measured preparations behind model.prepare */
} lesson;

static int family_of(lesson *l, const wlmi_candidate_list *list, const wlmi_candidate *candidate) {
  wlmi_model *m = &l->model;
  const char *name = list->families->list[candidate->value.family - 1].name;
  const int known = wlmi_model_family(m, &candidate->value);
  if (known >= 0 || m->family_count == WLMI_MODEL_FAMILIES || strlen(name) >= WLMI_FAMILY_NAME) return known;
  strcpy(m->families[m->family_count], name);
  m->family_ids[m->family_count] = candidate->value.family;
  return m->family_count++;
}

/* best: the least time of the kernels of the case that are learned. */
static wlm_status add_example(lesson *l, const wlmi_case *c, const wlmi_measured *timed, double best,
                              const wlmi_candidate_list *list, const wlmi_candidate *candidate) {
  static const char what[] = "samples of a model";
  wlmi_model *m = &l->model;
  const int family = family_of(l, list, candidate);
  if (family < 0) return WLM_OK;
  const double seconds = timed->cost * 1e-12;
  if (timed->prepare > 0) {
    m->prepare[family] += timed->prepare / timed->cost;
    l->measured[family]++;
  }
  WLM_CHECK(wlmi_grow((void **)&l->samples, l->count, &l->sample_capacity, sizeof *l->samples, what));
  WLM_CHECK(wlmi_grow((void **)&l->examples, l->count, &l->example_capacity, sizeof *l->examples, what));
  wlmi_boost_sample *sample = &l->samples[l->count];
  wlmi_features_of_case(&m->limits, c->stats, c->n, wlmi_problem_has_values(c->problem), sample->features);
  wlmi_features_of_candidate(&m->limits, c->stats, c->n, candidate, family, sample->features);
  sample->target = (float)log(fmin(seconds, hopeless * best) / wlmi_simple_seconds(&m->limits, c->stats, c->n));
  sample->weight = (float)pow(fmin(1, best / seconds), emphasis);
  sample->group = m->point_count;
  l->examples[l->count++] = (example){seconds / best, (int)(c->stats->fingerprint[1] % FOLDS)};
  m->measurements += timed->count;
  return WLM_OK;
}

static int always_prepares(const wlmi_candidate_list *list, const wlmi_candidate *candidate) {
  for (int64_t i = 0; candidate->prepares && i < list->count; i++)
    if (list->candidates[i].value.family == candidate->value.family && !list->candidates[i].prepares) return 0;
  return candidate->prepares;
}

static wlm_status add_case(lesson *l, wlmi_generator *generator, const wlmi_limits *limits, const wlmi_case *c) {
  wlmi_model *m = &l->model;
  const wlmi_candidate_list *list = NULL;
  wlmi_spec spec;
  wlm_status status;
  WLM_TRY(wlmi_spec_from_key(c->problem, c->n, &spec));
  WLM_TRY(wlmi_generator_describe(generator, &spec, limits, &list));
  WLM_TRY(wlmi_grow((void **)&m->points, m->point_count, &l->point_capacity, sizeof *m->points, "points of a model"));
  m->points[m->point_count++] = wlmi_point_of(c->stats, c->n);
  double best = 0;
  for (int64_t i = 0; i < c->count; i++) { /* from the fastest on */
    const wlmi_measured *timed = &c->candidates[i];
    const wlmi_candidate *candidate = wlmi_candidate_named(list, timed->variant);
    if (!candidate || always_prepares(list, candidate)) continue;
    if (best == 0) best = timed->cost * 1e-12;
    WLM_TRY(add_example(l, c, timed, best, list, candidate));
  }
done:
  wlmi_candidates_drop(list);
  return status;
}

/* ---- learning ------------------------------------------------------------------------------------- */

static int64_t trees_of(const schedule *s) { return s->differing.trees + s->common.trees; }

/* The mean, in samples that know the features of the case alone, of what trees leave of each case's targets. */
static int64_t add_up_cases(const wlmi_boost_sample *samples, int64_t count, const wlmi_tree *trees, int64_t tree_count,
                            wlmi_boost_sample *cases) {
  int64_t made = 0;
  for (int64_t begin = 0, end; begin < count; begin = end) {
    double sum = 0, weights = 0;
    for (end = begin; end < count && samples[end].group == samples[begin].group; end++) {
      const wlmi_boost_sample *s = &samples[end];
      sum += (double)s->weight * ((double)s->target - wlmi_trees_sum(trees, tree_count, s->features));
      weights += (double)s->weight;
    }
    cases[made] = (wlmi_boost_sample){.target = (float)(sum / weights), .weight = 1};
    memcpy(cases[made++].features, samples[begin].features, WLMI_CASE_FEATURES * sizeof *cases->features);
  }
  return made;
}

/* Fills trees_of(schedule) trees. */
static wlm_status fit(const wlmi_boost_sample *samples, int64_t count, const schedule *schedule, double *base,
                      wlmi_tree *trees) {
  const int64_t differing = schedule->differing.trees;
  wlmi_boost_sample *cases = NULL;
  wlm_status status;
  WLM_TRY(wlmi_boost(samples, count, &schedule->differing, base, trees));
  WLM_TRY(wlmi_alloc_array(count, sizeof *cases, "cases of a model", (void **)&cases));
  const int64_t case_count = add_up_cases(samples, count, trees, differing, cases);
  WLM_TRY(wlmi_boost(cases, case_count, &schedule->common, base, trees + differing));
done:
  wlmi_free(cases);
  return status;
}

/* Trains without one fold and adds up the errors of predictions on that fold. */
static wlm_status ask_fold(const lesson *l, int fold, wlmi_boost_sample *rest, wlmi_tree *trees, double *squares,
                           int64_t *asked) {
  int64_t count = 0;
  double base;
  for (int64_t i = 0; i < l->count; i++)
    if (l->examples[i].fold != fold) rest[count++] = l->samples[i];
  if (!count || count == l->count) return WLM_OK;
  wlm_status status = fit(rest, count, &rough, &base, trees);
  for (int64_t i = 0; i < l->count && status == WLM_OK; i++) {
    if (l->examples[i].fold != fold || l->examples[i].over_best > worth_choosing) continue;
    const double off =
        (double)l->samples[i].target - base - wlmi_trees_sum(trees, trees_of(&rough), l->samples[i].features);
    *squares += off * off;
    ++*asked;
  }
  return status;
}

static wlm_status ask_spread(lesson *l) {
  wlmi_boost_sample *rest = NULL;
  wlmi_tree *trees = NULL;
  double squares = 0;
  int64_t asked = 0;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(l->count, sizeof *rest, "samples of a model", (void **)&rest));
  WLM_TRY(wlmi_alloc_array(trees_of(&rough), sizeof *trees, "trees of a model", (void **)&trees));
  for (int fold = 0; fold < FOLDS; fold++) WLM_TRY(ask_fold(l, fold, rest, trees, &squares, &asked));
  l->model.spread = asked ? sqrt(squares / (double)asked) : 1;
done:
  wlmi_free(rest);
  wlmi_free(trees);
  return status;
}

static wlm_status learn(lesson *l) {
  wlmi_model *m = &l->model;
  for (int i = 0; i < m->family_count; i++)
    if (l->measured[i]) m->prepare[i] /= (double)l->measured[i];
  m->tree_count = trees_of(&thorough);
  WLM_CHECK(wlmi_alloc_array(m->tree_count, sizeof *m->trees, "trees of a model", (void **)&m->trees));
  WLM_CHECK(fit(l->samples, l->count, &thorough, &m->base, m->trees));
  return ask_spread(l);
}

/* ---- class by class of problems ---------------------------------------------------------------------- */

static void release(lesson *l) {
  wlmi_model_release(&l->model);
  wlmi_free(l->samples);
  wlmi_free(l->examples);
}

/* All cases and the class of each. */
typedef struct classed_cases {
  wlmi_cases cases;
  int64_t *class; /* of each case, an index into wlmi_models.classes */
} classed_cases;

static int is_of_class(const classed_cases *classed, int64_t i, int64_t class) {
  return classed->class[i] == class && classed->cases.list[i].count > 0;
}

/* Makes the list of classes, without their numbers of cases. */
static wlm_status list_classes(classed_cases *classed, wlmi_models *models) {
  for (int64_t i = 0; i < classed->cases.count; i++) {
    const wlmi_case *c = &classed->cases.list[i];
    wlmi_taught taught = {.model = -1};
    int64_t at = 0;
    WLM_CHECK(wlmi_model_class_of_key(c->problem, c->n, taught.problems));
    while (at < models->class_count && strcmp(models->classes[at].problems, taught.problems)) at++;
    if (at == models->class_count) models->classes[models->class_count++] = taught;
    classed->class[i] = at;
  }
  return WLM_OK;
}

/* Counts the cases of a class, and the distinct matrices among them. */
static void count_matrices(const classed_cases *classed, int64_t class, wlmi_taught *taught) {
  for (int64_t i = 0; i < classed->cases.count; i++) {
    const wlm_stats *a = classed->cases.list[i].stats;
    int seen = 0;
    if (!is_of_class(classed, i, class)) continue;
    for (int64_t j = 0; j < i && !seen; j++)
      seen = is_of_class(classed, j, class) &&
             !memcmp(a->fingerprint, classed->cases.list[j].stats->fingerprint, sizeof a->fingerprint);
    taught->cases++;
    taught->matrices += !seen;
  }
}

static wlm_status train_class(wlmi_generator *generator, const wlmi_limits *limits, const classed_cases *classed,
                              int64_t class, wlmi_models *models) {
  lesson l = {.model = {.limits = *limits, .made_at = wlmi_time_of_day()}};
  wlmi_taught *taught = &models->classes[class];
  wlm_status status = WLM_OK;
  snprintf(l.model.problems, sizeof l.model.problems, "%s", taught->problems);
  for (int64_t i = 0; i < classed->cases.count; i++) {
    if (!is_of_class(classed, i, class)) continue;
    status = add_case(&l, generator, limits, &classed->cases.list[i]);
    if (status == WLM_ERR_UNSUPPORTED) status = WLM_OK; /* a problem of another version */
    if (status != WLM_OK) goto done;
  }
  if (!l.count) goto done;
  WLM_TRY(learn(&l));
  taught->model = models->count;
  models->models[models->count++] = l.model;
  l.model = (wlmi_model){0};
done:
  release(&l);
  return status;
}

wlm_status wlmi_models_train(wlmi_generator *generator, const wlmi_limits *limits,
                             const wlmi_measurement_record *records, int64_t count, wlmi_models *models) {
  wlmi_measurement_record *usable = NULL;
  classed_cases classed = {.class = NULL};
  wlm_status status;
  int64_t usable_count = 0;
  *models = (wlmi_models){0};
  WLM_TRY(wlmi_alloc_array(count, sizeof *usable, "measurements", (void **)&usable));
  for (int64_t i = 0; i < count; i++) /* times of a program's own calls include too much else to train on them */
    if (!wlmi_measurement_is_online(&records[i])) usable[usable_count++] = records[i];
  WLM_TRY(wlmi_cases_make(usable, usable_count, &classed.cases));
  const int64_t most = classed.cases.count;
  WLM_TRY(wlmi_alloc_array(most, sizeof *models->models, "models", (void **)&models->models));
  WLM_TRY(wlmi_alloc_array(most, sizeof *models->classes, "classes", (void **)&models->classes));
  WLM_TRY(wlmi_alloc_array(most, sizeof *classed.class, "classes", (void **)&classed.class));
  WLM_TRY(list_classes(&classed, models));
  for (int64_t i = 0; i < models->class_count; i++) {
    count_matrices(&classed, i, &models->classes[i]);
    if (models->classes[i].matrices >= WLMI_TRAIN_MATRICES)
      WLM_TRY(train_class(generator, limits, &classed, i, models));
  }
done:
  wlmi_cases_release(&classed.cases);
  wlmi_free(classed.class);
  wlmi_free(usable);
  if (status != WLM_OK) wlmi_models_release(models);
  return status;
}

void wlmi_models_release(wlmi_models *models) {
  for (int64_t i = 0; i < models->count; i++) wlmi_model_release(&models->models[i]);
  wlmi_free(models->models);
  wlmi_free(models->classes);
  *models = (wlmi_models){0};
}

/* ---- of a context's database ------------------------------------------------------------------------------ */

static wlm_status keep(wlm_store *store, const char *device_class, const wlmi_model *model) {
  wlmi_model_record record = {.name = (char *)model->problems, .made_at = model->made_at};
  wlm_status status = wlmi_model_write(model, &record.data, &record.size);
  if (status == WLM_OK) status = wlmi_store_put_model(store, device_class, &record);
  wlmi_free(record.data);
  return status;
}

wlm_status wlmi_learn(wlm_context *context, wlmi_models *models) {
  const char *path = wlmi_context_database_path(context);
  const wlmi_device_info *info = &wlmi_context_device(context)->info;
  wlm_store *store = NULL;
  const char *device_class = wlmi_context_device_class(context);
  wlmi_measurement_set set = {0};
  wlm_status status;
  *models = (wlmi_models){0};
  if (!*path)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "training reads stored measurements, and the context has no user database");
  if (access(path, F_OK)) return WLM_OK;
  WLM_TRY(wlmi_store_open(path, WLMI_STORE_WRITE, &store));
  WLM_TRY(wlmi_measurement_set_add(&set, store, device_class));
  WLM_TRY(wlmi_models_train(wlmi_context_generator(context), &info->limits, set.records, set.count, models));
  for (int64_t i = 0; i < models->count; i++) WLM_TRY(keep(store, device_class, &models->models[i]));
  status = wlm_context_refresh(context);
done:
  if (status != WLM_OK) wlmi_models_release(models);
  wlmi_measurement_set_release(&set);
  wlmi_store_close(store);
  return status;
}

wlm_status wlm_train(wlm_context *context) {
  wlmi_models models;
  WLM_CHECK(wlmi_need("wlm_train", "context", context));
  const int threads = wlmi_threads_begin();
  wlm_status status = wlmi_learn(context, &models);
  wlmi_threads_end(threads);
  wlmi_models_release(&models);
  return wlmi_finish(status);
}
