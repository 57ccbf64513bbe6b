/* Suite selection, over the matrices of suite core and a database that was tuned on them (--db). Compares four ways of
 * choosing with the best candidate of each case:
 *
 * - tuned: what a context with that database chooses;
 * - loo: the same with all measurements of the matrix and of its siblings (bench/suites/groups.tsv) left out before
 *   anything is learned;
 * - estimated: as loo, with nothing of the matrix known but rows, columns and non-zeros;
 * - rule: what the built-in table says.
 *
 * The database only determines which candidates are timed. All reported times are taken here, together: of the choices,
 * of the TOP fastest candidates by the database, and of the best fixed variant, which is a candidate in all cases of
 * the suite and has the best geometric mean over them. expected_calls is 1, so nothing is prepared. */
#include <math.h>
#include <string.h>

#include "bench/comparison.h"
#include "bench/results_file.h"
#include "bench/suite.h"
#include "core/base/memory.h"
#include "db/measurement_set.h"
#include "select/select.h"
#include "tuner/compile_ahead.h"
#include "tuner/train.h"

enum { TUNED, LOO, ESTIMATED, RULE, MODES };
enum { TOP = 6, METHODS = MODES + TOP + 1 };
static const char *const modes[MODES] = {"tuned", "loo", "estimated", "rule"};

struct state {
  wlmi_measurement_set set;
  wlmi_cases cases;
  wlmi_suite_file suite; /* core: the list of all cases */
  char fixed[WLMI_VARIANT_NAME];
  char group[WLMI_GROUP_NAME]; /* the group that is left out of `others`; "" = `others` is empty */
  wlmi_snapshot others;
};

/* ---- measurements without a group of matrices ------------------------------------------------------- */

static int is_of_another_group(void *user, const wlmi_measurement_record *record) {
  char its[WLMI_GROUP_NAME];
  wlmi_group_of(record->matrix_name ? record->matrix_name : "", its);
  return strcmp(its, user) != 0;
}

static wlm_status train_without(struct state *s, wlm_context *context, const char *group) {
  const wlmi_device_info *info = &wlmi_context_device(context)->info;
  wlmi_measurement_record *kept = NULL; /* their strings are those of s->set.records */
  wlmi_models models = {0};
  int64_t count = 0;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(s->set.count, sizeof *kept, "measurements", (void **)&kept));
  for (int64_t i = 0; i < s->set.count; i++)
    if (is_of_another_group((void *)group, &s->set.records[i])) kept[count++] = s->set.records[i];
  WLM_TRY(wlmi_models_train(wlmi_context_generator(context), &info->limits, kept, count, &models));
  for (int64_t i = 0; i < models.count; i++)
    WLM_TRY(wlmi_snapshot_add_model(&s->others, &models.models[i], NULL, NULL));
done:
  wlmi_models_release(&models);
  wlmi_free(kept);
  return status;
}

/* Does nothing if the last case was of the same group. */
static wlm_status learn_without(struct state *s, wlm_context *context, const char *matrix) {
  char group[WLMI_GROUP_NAME];
  wlmi_group_of(matrix, group);
  if (!strcmp(group, s->group)) return WLM_OK;
  *s->group = 0;
  wlmi_snapshot_clear(&s->others);
  s->others.families = wlmi_generator_families(wlmi_context_generator(context));
  WLM_CHECK(wlmi_snapshot_add_measurements(&s->others, s->set.records, s->set.count, NULL, is_of_another_group, group));
  WLM_CHECK(train_without(s, context, group));
  snprintf(s->group, sizeof s->group, "%s", group);
  return WLM_OK;
}

/* ---- the best fixed variant ------------------------------------------------------------------------ */

static int is_of_suite(const struct state *s, const wlmi_case *c) {
  for (int i = 0; i < s->suite.count; i++)
    if (c->count && c->matrix && !strcmp(c->matrix, s->suite.names[i])) return 1;
  return 0;
}

/* Geometric mean of its time over the best of each case; infinite if it is no candidate in some case. */
static double mean_of(const struct state *s, const char *variant) {
  double logs = 0;
  int64_t cases = 0;
  for (int64_t i = 0; i < s->cases.count; i++) {
    const wlmi_case *c = &s->cases.list[i];
    const wlmi_measured *found = NULL;
    if (!is_of_suite(s, c)) continue;
    for (int64_t k = 0; k < c->count && !found; k++)
      if (!strcmp(c->candidates[k].variant, variant)) found = &c->candidates[k];
    if (!found) return INFINITY;
    logs += log(found->cost / c->candidates[0].cost);
    cases++;
  }
  return cases ? exp(logs / (double)cases) : INFINITY;
}

static void find_fixed(struct state *s) {
  double best = INFINITY;
  for (int64_t i = 0; i < s->cases.count; i++) {
    const wlmi_case *c = &s->cases.list[i];
    if (!is_of_suite(s, c)) continue;
    for (int64_t k = 0; k < c->count; k++) {
      const double mean = c->candidates[k].prepare > 0 ? INFINITY : mean_of(s, c->candidates[k].variant);
      if (!(mean < best)) continue;
      best = mean;
      snprintf(s->fixed, sizeof s->fixed, "%s", c->candidates[k].variant);
    }
    return; /* a candidate of all cases is one of the first case */
  }
}

/* ---- before the first case ---------------------------------------------------------------------------- */

static wlm_status load(const char *path, const wlm_context *context, struct state *s) {
  wlm_store *store = NULL;
  wlm_status status;
  WLM_TRY(wlmi_store_open(path, WLMI_STORE_READ, &store));
  WLM_TRY(wlmi_measurement_set_add(&s->set, store, wlmi_context_device_class(context)));
  status = wlmi_cases_make(s->set.records, s->set.count, &s->cases);
done:
  wlmi_store_close(store);
  return status;
}

static void close_all(void *user) {
  struct state *s = user;
  if (!s) return;
  wlmi_snapshot_clear(&s->others);
  wlmi_cases_release(&s->cases);
  wlmi_measurement_set_release(&s->set);
  wlmi_suite_file_release(&s->suite);
  wlmi_free(s);
}

static wlm_status open_all(const wlmi_cli_options *options, wlm_context *context, void **out) {
  wlm_status status;
  *out = NULL;
  if (!options->database || !*options->database)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "selection is about what was tuned: name the database, --db FILE");
  struct state *s = wlmi_alloc_zero(1, sizeof *s);
  if (!s) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "selection");
  WLM_TRY(load(options->database, context, s));
  WLM_TRY(wlmi_suite_file_read("core", &s->suite));
  find_fixed(s);
  *out = s;
  return WLM_OK;
done:
  close_all(s);
  return status;
}

/* ---- a case -------------------------------------------------------------------------------------------- */

struct round {
  const wlmi_bench_case *bench;
  struct state *state;
  wlmi_comparison comparison;
  wlmi_decision decisions[MODES];
  const char *names[METHODS];
  wlmi_method methods[METHODS];
  int count;
};

static int index_of(const struct round *r, const char *variant) {
  for (int i = 0; i < r->count; i++)
    if (!strcmp(r->names[i], variant)) return i;
  return -1;
}

static void add_name(struct round *r, const char *variant) {
  if (*variant && r->count < METHODS && index_of(r, variant) < 0) r->names[r->count++] = variant;
}

static wlm_status decide(struct round *r) {
  static const wlmi_snapshot nothing = {.case_count = 0};
  const wlm_stats *stats = wlm_matrix_stats(r->bench->upload->matrix);
  const wlm_stats estimated = {
      .size = sizeof estimated, .rows = stats->rows, .cols = stats->cols, .nnz = stats->nnz, .mean = stats->mean};
  const wlmi_snapshot *snapshots[MODES] = {
      [LOO] = &r->state->others, [ESTIMATED] = &r->state->others, [RULE] = &nothing};
  WLM_CHECK(learn_without(r->state, r->bench->context, r->bench->matrix));
  for (int mode = 0; mode < MODES; mode++) {
    WLM_CHECK(wlmi_context_select(r->bench->context, snapshots[mode], mode == ESTIMATED ? &estimated : stats,
                                  mode == ESTIMATED ? WLMI_USE_ESTIMATED : WLMI_USE_MEASURED,
                                  &r->comparison.operands.spec, &r->decisions[mode]));
    add_name(r, r->decisions[mode].variant);
  }
  return WLM_OK;
}

/* Adds the fastest candidates of this very case by the database. */
static void add_top(struct round *r) {
  const wlm_stats *stats = wlm_matrix_stats(r->bench->upload->matrix);
  char key[WLMI_SPEC_KEY];
  wlmi_spec_key(&r->comparison.operands.spec, key);
  for (int64_t i = 0; i < r->state->cases.count; i++) {
    const wlmi_case *c = &r->state->cases.list[i];
    if (c->n != r->bench->n || strcmp(c->problem, key) ||
        memcmp(c->stats->fingerprint, stats->fingerprint, sizeof stats->fingerprint))
      continue;
    for (int64_t k = 0, added = 0; k < c->count && added < TOP; k++)
      if (!(c->candidates[k].prepare > 0)) {
        add_name(r, c->candidates[k].variant);
        added++;
      }
  }
}

static wlm_status enter_all(struct round *r) {
  wlmi_compile_job jobs[METHODS];
  for (int i = 0; i < r->count; i++)
    jobs[i] = (wlmi_compile_job){.variant = r->names[i], .spec = &r->comparison.operands.spec};
  wlmi_compile_all(r->comparison.context, jobs, r->count); /* one that fails does so again below */
  for (int i = 0; i < r->count; i++) wlmi_comparison_enter(&r->comparison, r->names[i], &r->methods[i]);
  int64_t calls;
  return wlmi_comparison_time(r->comparison.operands.device, r->methods, r->count, r->comparison.samples, &calls);
}

static const wlmi_method *method_of(const struct round *r, const char *variant) {
  const int i = index_of(r, variant);
  return i < 0 ? NULL : &r->methods[i];
}

static void write_lines(const struct round *r, wlmi_text *line) {
  const wlmi_method *best = wlmi_methods_quickest(r->methods, r->count);
  for (int mode = 0; mode < MODES; mode++) {
    const wlmi_decision *d = &r->decisions[mode];
    const wlmi_method *chosen = method_of(r, d->variant);
    wlmi_results_begin(line, r->bench);
    wlmi_json_put(line,
                  "n=%jd mode=%s us=%.3f best_us=%.3f best_fixed_us=%.3f variant=%s best_variant=%s source=%s "
                  "distance=%.3f predicted_us=%.3f",
                  r->bench->n, modes[mode], wlmi_method_us(chosen), wlmi_method_us(best),
                  wlmi_method_us(method_of(r, r->state->fixed)), d->variant, best ? best->name : "",
                  wlmi_step_name(d->step), d->distance, d->predicted > 0 ? 1e6 * d->predicted : (double)NAN);
    wlmi_results_end(line);
  }
}

static wlm_status run(const wlmi_bench_case *bench, wlmi_text *line) {
  struct round r = {.bench = bench, .state = bench->state};
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = bench->n;
  wlm_status status;
  WLM_TRY(wlmi_comparison_create(bench, NULL, NULL, &problem, &r.comparison));
  WLM_TRY(wlmi_matrix_fingerprint(bench->upload->matrix)); /* the database identifies the matrix by it */
  WLM_TRY(decide(&r));
  add_name(&r, r.state->fixed);
  add_top(&r);
  WLM_TRY(enter_all(&r));
  write_lines(&r, line);
done:
  for (int i = 0; i < r.count; i++) wlmi_method_release(&r.methods[i]);
  wlmi_comparison_release(&r.comparison);
  return status;
}

const wlmi_bench_suite wlmi_suite_selection = {
    .name = "selection",
    .help = "suite core: the choice over the best candidate when tuned, left out, estimated, by rule",
    .shown = "mode us best_us best_fixed_us source variant",
    .run = run,
    .list = "core",
    .keeps_patterns = 1,
    .only_database = 1,
    .open = open_all,
    .close = close_all,
};
