#include "support/shipped.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem/spec_key.h"
#include "select/forecast.h"
#include "support/asserts.h"
#include "support/emit_fixture.h"
#include "support/folder.h"
#include "support/own.h"

static const char device_class[] = "cuda/sm_90/NVIDIA H200/132";

/* ---- the cases of suite core ---------------------------------------------------------------------------- */

/* The case of the matrix with this N; a new one if there is none. */
static shipped_case *case_of(shipped_database *d, int64_t from, int64_t n) {
  for (int64_t i = from; i < d->case_count; i++)
    if (d->cases[i].n == n) return &d->cases[i];
  d->cases = realloc(d->cases, (size_t)(d->case_count + 1) * sizeof *d->cases);
  d->cases[d->case_count] = (shipped_case){.n = n};
  return &d->cases[d->case_count++];
}

static int compare_widths(const void *left, const void *right) {
  const shipped_case *a = left, *b = right;
  return (a->n > b->n) - (a->n < b->n);
}

static void add_matrix(shipped_database *d, const char *name) {
  const int64_t from = d->case_count;
  for (int64_t i = 0; i < d->record_count; i++) {
    const wlmi_measurement_record *r = &d->records[i];
    const int is_f32_sum =
        strstr(r->problem, "dense=f32") && strstr(r->problem, "sample=none") && !strstr(r->problem, ",operation=");
    if (strcmp(r->matrix_name, name) || !is_f32_sum) continue;
    shipped_case *c = case_of(d, from, r->n);
    if (!c->problem || strcmp(c->problem, r->problem) < 0)
      *c = (shipped_case){r->matrix_name, r->problem, r->n, r->stats};
  }
  qsort(d->cases + from, (size_t)(d->case_count - from), sizeof *d->cases, compare_widths);
}

void shipped_load(shipped_database *d) {
  size_t size;
  *d = (shipped_database){0};
  GET(wlm_store *, store, wlmi_store_open(WLM_SOURCE_DIR "/share/warploom/system.db", WLMI_STORE_READ, &store));
  assert_status(WLM_OK, wlmi_store_load(store, device_class, &d->records, &d->record_count));
  assert_status(WLM_OK, wlmi_store_load_models(store, device_class, &d->models, &d->model_count));
  wlmi_store_close(store);
  FREED char *suite = (char *)read_whole(WLM_SOURCE_DIR "/bench/suites/core.txt", &size);
  suite[size - 1] = 0;
  for (char *line = strtok(suite, "\n"); line; line = strtok(NULL, "\n"))
    if (*line != '#' && strncmp(line, "n ", 2)) add_matrix(d, line);
}

void shipped_release(shipped_database *d) {
  wlmi_measurements_free(d->records, d->record_count);
  wlmi_model_records_free(d->models, d->model_count);
  free(d->cases);
}

/* ---- snapshots ---------------------------------------------------------------------------------------------- */

static int is_of_another_matrix(void *user, const wlmi_measurement_record *record) {
  return !user || strcmp(record->matrix_name, user);
}

void shipped_snapshot_make(const shipped_database *d, const char *without, int with_model, wlmi_snapshot *snapshot) {
  *snapshot = (wlmi_snapshot){.families = wlmi_generator_families(emit_generator)};
  if (!d) return;
  assert_status(WLM_OK, wlmi_snapshot_add_measurements(snapshot, d->records, d->record_count, NULL,
                                                       is_of_another_matrix, (void *)without));
  for (int64_t i = 0; with_model && i < d->model_count; i++) {
    GET(wlmi_model, model, wlmi_model_read(d->models[i].data, d->models[i].size, &model));
    assert_status(WLM_OK, wlmi_snapshot_add_model(snapshot, &model, NULL, NULL));
  }
}

/* ---- times ------------------------------------------------------------------------------------------------- */

static const wlmi_measured *measured_of(const wlmi_case *c, const char *variant) {
  for (int64_t i = 0; i < c->count; i++)
    if (!strcmp(c->candidates[i].variant, variant)) return &c->candidates[i];
  return NULL;
}

static int compare_numbers(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

/* The median of measured over predicted times, for a model of another device. */
static double scale_of(wlmi_model_case *model, const wlmi_case *c, const wlmi_candidate_list *list) {
  double ratios[64];
  size_t count = 0;
  for (int64_t i = 0; i < list->count && model->model->borrowed && count < 64; i++) {
    const wlmi_measured *kept = measured_of(c, list->candidates[i].variant);
    const double predicted = kept ? wlmi_model_seconds(model, &list->candidates[i]) : 0;
    if (predicted > 0) ratios[count++] = kept->cost / WLMI_PICOSECONDS / predicted;
  }
  qsort(ratios, count, sizeof *ratios, compare_numbers);
  return count ? ratios[count / 2] : 1;
}

void shipped_times_fill(const wlmi_model *model, const wlmi_case *c, const wlmi_candidate_list *list,
                        shipped_times *t) {
  wlmi_model_case predicting;
  double slowest[2] = {0, 0}, dearest = 0, scale = 1;
  assert_true(list->count <= SHIPPED_CANDIDATES);
  if (model) {
    wlmi_model_case_make(model, &model->limits, c->stats, c->problem, c->n, &predicting);
    scale = scale_of(&predicting, c, list);
  }
  for (int64_t i = 0; i < list->count; i++) {
    const wlmi_measured *kept = measured_of(c, list->candidates[i].variant);
    t->seconds[i] = kept ? kept->cost / WLMI_PICOSECONDS : 0;
    t->prepare[i] = kept ? kept->prepare / WLMI_PICOSECONDS : 0;
    slowest[list->candidates[i].prepares] = fmax(slowest[list->candidates[i].prepares], t->seconds[i]);
    dearest = fmax(dearest, t->prepare[i]);
  }
  t->best = t->best_of_many = INFINITY;
  for (int64_t i = 0; i < list->count; i++) {
    const wlmi_candidate *candidate = &list->candidates[i];
    const int family = model ? wlmi_model_family(model, &candidate->value) : -1, is_kept = t->seconds[i] > 0;
    if (!is_kept)
      t->seconds[i] =
          fmax(slowest[candidate->prepares], model ? scale * wlmi_model_seconds(&predicting, candidate) : 0);
    if (!is_kept && candidate->prepares)
      t->prepare[i] = family >= 0 && model->prepare[family] > 0 ? model->prepare[family] * t->seconds[i] : dearest;
    if (!(t->seconds[i] > 0)) t->seconds[i] = INFINITY;
    if (!candidate->prepares) t->best = fmin(t->best, t->seconds[i]);
    t->best_of_many = fmin(t->best_of_many, t->seconds[i] + t->prepare[i] / SHIPPED_CALLS);
  }
}

void shipped_group_of(const char *matrix, char group[128]) {
  size_t size;
  FREED char *text = (char *)read_whole(WLM_SOURCE_DIR "/bench/suites/groups.tsv", &size);
  text[size - 1] = 0;
  snprintf(group, 128, "%s", matrix);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    char *tab = strchr(line, '\t');
    if (*line != '#' && tab && !strncmp(matrix, line, (size_t)(tab - line))) snprintf(group, 128, "%s", tab + 1);
  }
}

/* ---- choosing ----------------------------------------------------------------------------------------------- */

wlm_status shipped_choose(const shipped_case *c, const wlmi_snapshot *snapshot, wlmi_use use, int64_t calls,
                          wlmi_decision *decision) {
  GET(wlmi_spec, spec, wlmi_spec_from_key(c->problem, c->n, &spec));
  spec.problem.policy.expected_calls = calls;
  OWN(wlmi_candidates, list, wlmi_generator_describe(emit_generator, &spec, &emit_cuda, &list));
  const wlmi_variant_set variants = wlmi_variants_of_list(list);
  const wlmi_request request = {&c->stats, use, c->problem, &spec, &emit_cuda, &variants};
  const wlm_status status = wlmi_select(snapshot, &request, decision);
  return status;
}
