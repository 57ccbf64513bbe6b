/* What choices lose on matrices that were left out, from the shipped database alone: the matrices of an H200 are
 * divided into five folds by the groups of bench/suites/groups.tsv, and each fold is chosen for by models that were
 * trained on the other four. An H100 gets the H200's models and nothing else. With WARPLOOM_FOLDS set to a folder the
 * test prints the times of the choices over the best of each case; training takes minutes, so the models are kept in
 * the folder.
 *
 * Models are trained on the times of all candidates, most of which the shipped models predict (support/shipped.h), so
 * these figures are not those of the whole databases (docs/performance.md). They compare ways of choosing. */
#include <unistd.h>

#include "core/base/memory.h"
#include "core/problem/spec_key.h"
#include "select/forecast.h"
#include "support/emit_fixture.h"
#include "support/folder.h"
#include "support/shipped.h"
#include "support/test.h"
#include "tuner/train.h"

enum { FOLDS = 5, H200 = 0, H100, DEVICES, MODELS = 16, LINES = 200 };
static const char *const devices[DEVICES] = {"cuda/sm_90/NVIDIA H200/132", "cuda/sm_90/NVIDIA H100 80GB HBM3/132"};

static const char *kept_in;
static wlmi_measurement_record *records[DEVICES];
static int64_t record_count[DEVICES];
static wlmi_cases cases[DEVICES];
static wlmi_model shipped[MODELS];
static int64_t shipped_count;
static wlmi_limits limits; /* of both */

static void load(void) {
  wlmi_model_record *models;
  OWN(wlm_store, store, wlmi_store_open(WLM_SOURCE_DIR "/share/warploom/system.db", WLMI_STORE_READ, &store));
  for (int d = 0; d < DEVICES; d++) {
    assert_status(WLM_OK, wlmi_store_load(store, devices[d], &records[d], &record_count[d]));
    assert_status(WLM_OK, wlmi_cases_make(records[d], record_count[d], &cases[d]));
  }
  assert_status(WLM_OK, wlmi_store_load_models(store, devices[H200], &models, &shipped_count));
  assert_in_range(shipped_count, 1, MODELS);
  for (int64_t i = 0; i < shipped_count; i++) {
    assert_status(WLM_OK, wlmi_model_read(models[i].data, models[i].size, &shipped[i]));
    wlmi_model_set_families(&shipped[i], wlmi_generator_families(emit_generator));
  }
  limits = emit_cuda;
  limits.l2_bytes = shipped[0].limits.l2_bytes;
  wlmi_model_records_free(models, shipped_count);
}

static void release(void) {
  for (int d = 0; d < DEVICES; d++) {
    wlmi_cases_release(&cases[d]);
    wlmi_measurements_free(records[d], record_count[d]);
  }
  for (int64_t i = 0; i < shipped_count; i++) wlmi_model_release(&shipped[i]);
}

static int fold_of(const char *matrix) {
  char group[128];
  uint32_t hash = 2166136261u; /* FNV-1a */
  shipped_group_of(matrix, group);
  for (const char *at = group; *at; at++) hash = (hash ^ (unsigned char)*at) * 16777619u;
  return (int)((hash >> 8) % FOLDS);
}

static int is_outside(void *user, const wlmi_measurement_record *record) {
  return fold_of(record->matrix_name) != *(const int *)user;
}

/* The shipped model for a case; NULL = none. */
static wlmi_model *shipped_for(const wlmi_case *c, char class[WLMI_PROBLEM_CLASS]) {
  assert_status(WLM_OK, wlmi_model_class_of_key(c->problem, c->n, class));
  for (int64_t i = 0; i < shipped_count; i++)
    if (!strcmp(shipped[i].problems, class)) return &shipped[i];
  return NULL;
}

static const wlmi_candidate_list *fill(int device, const wlmi_case *c, wlmi_spec *spec, char class[WLMI_PROBLEM_CLASS],
                                       shipped_times *t) {
  wlmi_model *model = shipped_for(c, class);
  assert_status(WLM_OK, wlmi_spec_from_key(c->problem, c->n, spec));
  GET(const wlmi_candidate_list *, list, wlmi_generator_describe(emit_generator, spec, &limits, &list));
  if (model) model->borrowed = device == H200 ? NULL : devices[H200];
  shipped_times_fill(model, c, list, t);
  return list;
}

/* ---- models without a fold ------------------------------------------------------------------------------------ */

static void train_without(int fold, wlmi_models *models) {
  static shipped_times t;
  wlmi_measurement_record *all = NULL;
  int64_t count = 0, capacity = 0;
  for (int64_t i = 0; i < cases[H200].count; i++) {
    const wlmi_case *c = &cases[H200].list[i];
    char class[WLMI_PROBLEM_CLASS];
    wlmi_spec spec;
    if (!shipped_for(c, class) || strstr(class, "=attention") || fold_of(c->matrix) == fold) continue;
    const wlmi_candidate_list *list = fill(H200, c, &spec, class, &t);
    for (int64_t k = 0; k < list->count; k++) {
      if (!isfinite(t.seconds[k])) continue;
      assert_status(WLM_OK, wlmi_measurements_reserve(&all, count, &capacity));
      all[count++] = (wlmi_measurement_record){.stats = *c->stats,
                                               .matrix_name = (char *)c->matrix,
                                               .variant = wlmi_strdup(list->candidates[k].variant),
                                               .problem = (char *)c->problem,
                                               .n = c->n,
                                               .time_ps = (int64_t)(t.seconds[k] * WLMI_PICOSECONDS),
                                               .prepare_ps = (int64_t)(t.prepare[k] * WLMI_PICOSECONDS),
                                               .samples = 9,
                                               .made_at = 1};
    }
    wlmi_candidates_drop(list);
  }
  assert_status(WLM_OK, wlmi_models_train(emit_generator, &limits, all, count, models));
  for (int64_t i = 0; i < count; i++) wlmi_free(all[i].variant);
  wlmi_free(all);
}

static void path_of(int fold, int64_t model, char path[512]) {
  snprintf(path, 512, "%s/%d.%d.model", kept_in, fold, (int)model);
}

static void add_models(int fold, const char *borrowed, wlmi_snapshot *out) {
  char path[512];
  size_t size;
  path_of(fold, 0, path);
  if (access(path, R_OK)) {
    HELD(wlmi_models) models;
    train_without(fold, &models);
    for (int64_t i = models.count - 1; i >= 0; i--) { /* the first one says that all are there */
      WLM_FREED void *blob = NULL;
      assert_status(WLM_OK, wlmi_model_write(&models.models[i], &blob, &size));
      path_of(fold, i, path);
      write_whole(path, blob, size);
    }
  }
  for (int64_t i = 0; path_of(fold, i, path), !access(path, R_OK); i++) {
    FREED void *blob = read_whole(path, &size);
    GET(wlmi_model, model, wlmi_model_read(blob, size, &model));
    assert_status(WLM_OK, wlmi_snapshot_add_model(out, &model, borrowed, NULL));
  }
}

/* ---- the figures ------------------------------------------------------------------------------------------------- */

enum { KNOWN, ESTIMATED, RULES, WAYS };
static const char *const ways[WAYS] = {"models", "estimated", "rules"};

typedef struct line {
  char name[256], worst_at[256];
  double logs, worst;
  int64_t cases;
} line;
static line lines[LINES];
static int line_count;

static line *line_of(int device, const char *class, int64_t calls, int way) {
  char name[sizeof lines->name];
  int at = 0;
  snprintf(name, sizeof name, "%s, %s, %lld calls, %s", device == H200 ? "H200" : "H100", class, (long long)calls,
           ways[way]);
  while (at < line_count && strcmp(lines[at].name, name)) at++;
  assert_true(at < LINES);
  if (at == line_count) strcpy(lines[line_count++].name, name);
  return &lines[at];
}

static void ask(int device, const wlmi_case *c, const wlmi_snapshot *others, int64_t calls) {
  static const wlmi_snapshot nothing = {.case_count = 0};
  static shipped_times t;
  char class[WLMI_PROBLEM_CLASS];
  wlmi_spec spec;
  wlmi_decision d;
  const wlmi_candidate_list *list = fill(device, c, &spec, class, &t);
  const wlmi_variant_set variants = wlmi_variants_of_list(list);
  spec.problem.policy.expected_calls = calls;
  for (int way = 0; way < WAYS; way++) {
    wlm_stats stats = *c->stats;
    if (way == ESTIMATED)
      stats = (wlm_stats){
          .size = sizeof stats, .rows = stats.rows, .cols = stats.cols, .nnz = stats.nnz, .mean = stats.mean};
    const wlmi_request request = {
        &stats, way == ESTIMATED ? WLMI_USE_ESTIMATED : WLMI_USE_MEASURED, c->problem, &spec, &limits, &variants};
    assert_status(WLM_OK, wlmi_select(way == RULES ? &nothing : others, &request, &d));
    for (int i = 0; i < d.entry_count; i++) /* else a call would take it for as quick as the best */
      assert_true(way != RULES || d.entries[i].seconds == 0);
    const int64_t at = wlmi_candidate_named(list, d.variant) - list->candidates;
    const double best = calls == 1 ? t.best : t.best_of_many;
    const double ratio = (t.seconds[at] + t.prepare[at] / (double)calls) / best;
    line *to = line_of(device, class, calls, way);
    if (!isfinite(ratio)) continue; /* of row_sorted no time is known for this matrix */
    to->logs += log(ratio);
    to->cases++;
    if (ratio <= to->worst) continue;
    to->worst = ratio;
    snprintf(to->worst_at, sizeof to->worst_at, "%s, N = %lld, %s", c->matrix, (long long)c->n, d.variant);
  }
  wlmi_candidates_drop(list);
}

static double mean_of(const line *l) { return exp(l->logs / (double)l->cases); }

TEST(choices_for_matrices_that_were_left_out) {
  kept_in = getenv("WARPLOOM_FOLDS");
  if (!kept_in) skip();
  load();
  for (int fold = 0; fold < FOLDS; fold++)
    for (int device = 0; device < DEVICES; device++) {
      const char *borrowed = device == H200 ? NULL : devices[H200];
      wlmi_snapshot others = {.families = wlmi_generator_families(emit_generator)};
      assert_status(WLM_OK, wlmi_snapshot_add_measurements(&others, records[H200], record_count[H200], borrowed,
                                                           is_outside, &fold));
      add_models(fold, borrowed, &others);
      for (int64_t i = 0; i < cases[device].count; i++) {
        const wlmi_case *c = &cases[device].list[i];
        if (fold_of(c->matrix) != fold) continue;
        ask(device, c, &others, 1);
        if (device == H200) ask(device, c, &others, SHIPPED_CALLS); /* nothing prepared was measured on the H100 */
      }
      wlmi_snapshot_clear(&others);
    }
  for (int i = 0; i < line_count; i++)
    print_message("%s: %lld cases, %.3fx, worst %.2fx (%s)\n", lines[i].name, (long long)lines[i].cases,
                  mean_of(&lines[i]), lines[i].worst, lines[i].worst_at);
  for (int i = 0; i < line_count; i++)
    if (!strncmp(lines[i].name, "H100", 4) && strstr(lines[i].name, ways[KNOWN]))
      assert_true(mean_of(&lines[i]) <= 1.08 && lines[i].worst <= 1.62);
  release();
}

GROUP(emit_begin, emit_end)
