#include "support/shipped.h"

#include <stdlib.h>
#include <string.h>

#include "core/problem/spec_key.h"
#include "select/forecast.h"
#include "support/asserts.h"
#include "support/emit_fixture.h"
#include "support/folder.h"

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
  char *suite = (char *)read_whole(WLM_SOURCE_DIR "/bench/suites/core.txt", &size);
  suite[size - 1] = 0;
  for (char *line = strtok(suite, "\n"); line; line = strtok(NULL, "\n"))
    if (*line != '#' && strncmp(line, "n ", 2)) add_matrix(d, line);
  free(suite);
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

/* ---- choosing ----------------------------------------------------------------------------------------------- */

wlm_status shipped_choose(const shipped_case *c, const wlmi_snapshot *snapshot, wlmi_use use, int64_t calls,
                          wlmi_decision *decision) {
  GET(wlmi_spec, spec, wlmi_spec_from_key(c->problem, c->n, &spec));
  spec.problem.policy.expected_calls = calls;
  GET(const wlmi_candidate_list *, list, wlmi_generator_describe(emit_generator, &spec, &emit_cuda, &list));
  const wlmi_variant_set variants = wlmi_variants_of_list(list);
  const wlmi_request request = {&c->stats, use, c->problem, &spec, &emit_cuda, &variants};
  const wlm_status status = wlmi_select(snapshot, &request, decision);
  wlmi_candidates_drop(list);
  return status;
}
