#include "support/shipped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/**/
#include <cmocka.h>

#include "common/memory.h"
#include "common/spec_key.h"
#include "db/choice.h"
#include "support/emit_fixture.h"
#include "support/folder.h"

static const char device_class[] = "cuda/sm_90/NVIDIA H200/132";

/* ---- the cases of suite core ---------------------------------------------------------------------------- */

static int is_new(const shipped_database *d, int64_t from, const wlmi_measurement_record *r) {
  for (int64_t i = from; i < d->case_count; i++)
    if (d->cases[i].n == r->n) return 0;
  return 1;
}

static int compare_widths(const void *left, const void *right) {
  const shipped_case *a = left, *b = right;
  return (a->n > b->n) - (a->n < b->n);
}

static void add_matrix(shipped_database *d, const char *name) {
  const int64_t from = d->case_count;
  for (int64_t i = 0; i < d->record_count; i++) {
    const wlmi_measurement_record *r = &d->records[i];
    if (strcmp(r->matrix_name, name) || !is_new(d, from, r)) continue;
    d->cases = realloc(d->cases, (size_t)(d->case_count + 1) * sizeof *d->cases);
    d->cases[d->case_count++] = (shipped_case){r->matrix_name, r->problem, r->n, r->stats};
  }
  qsort(d->cases + from, (size_t)(d->case_count - from), sizeof *d->cases, compare_widths);
}

void shipped_load(shipped_database *d) {
  wlm_store *store;
  size_t size;
  *d = (shipped_database){0};
  assert_status(WLM_OK, wlmi_store_open(WLM_SOURCE_DIR "/share/warploom/system.db", WLM_STORE_READ, &store));
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

/* ---- what is known ------------------------------------------------------------------------------------------ */

static void add_case(const wlmi_choice *choice, wlmi_snapshot *snapshot) {
  const double unit = choice->stats ? 1e-12 : 1;
  wlmi_case c = {.exact = choice->stats != NULL,
                 .bucket = choice->bucket,
                 .problem = choice->problem,
                 .n = choice->n,
                 .matrices = choice->matrices};
  if (choice->stats) {
    memcpy(c.fingerprint, choice->stats->fingerprint, sizeof c.fingerprint);
    c.matrix = choice->matrix;
    c.rows = choice->stats->rows;
    c.nnz = choice->stats->nnz;
    c.place = wlmi_place_of(choice->stats, choice->n);
  }
  assert_status(WLM_OK, wlmi_snapshot_add_case(snapshot, &c));
  for (int64_t i = 0; i < choice->count; i++)
    assert_status(WLM_OK,
                  wlmi_snapshot_add_ranked(snapshot, choice->candidates[i].variant, choice->candidates[i].cost * unit,
                                           choice->candidates[i].prepare * unit));
}

void shipped_snapshot_make(const shipped_database *d, const char *without, int with_model, wlmi_snapshot *snapshot) {
  wlmi_measurement_record *kept;
  wlmi_choices choices;
  int64_t count = 0;
  *snapshot = (wlmi_snapshot){0};
  if (!d) return;
  assert_status(WLM_OK, wlmi_alloc_array(d->record_count, sizeof *kept, "measurements", (void **)&kept));
  for (int64_t i = 0; i < d->record_count; i++)
    if (!without || strcmp(d->records[i].matrix_name, without)) kept[count++] = d->records[i];
  assert_status(WLM_OK, wlmi_choices_make(kept, count, &choices));
  for (int64_t i = 0; i < choices.matrix_count; i++) add_case(&choices.matrices[i], snapshot);
  for (int64_t i = 0; i < choices.bucket_count; i++) add_case(&choices.buckets[i], snapshot);
  wlmi_choices_release(&choices);
  wlmi_free(kept);
  for (int64_t i = 0; with_model && i < d->model_count; i++) {
    wlmi_model model;
    assert_status(WLM_OK, wlmi_model_read(d->models[i].data, d->models[i].size, &model));
    assert_status(WLM_OK, wlmi_snapshot_add_model(snapshot, &model, NULL));
  }
}

/* ---- choosing ----------------------------------------------------------------------------------------------- */

typedef struct valid {
  wlmi_spec spec;
  wlmi_candidate *candidates;
  int64_t count;
} valid;

static int usable(void *user, const char *variant, int may_prepare) {
  const valid *v = user;
  for (int64_t i = 0; i < v->count; i++)
    if (!strcmp(v->candidates[i].variant, variant)) return may_prepare || !v->candidates[i].prepares;
  return 0;
}

static int64_t describe(void *user, const wlmi_candidate **candidates) {
  const valid *v = user;
  *candidates = v->candidates;
  return v->count;
}

/* The candidates of the last spec are kept, since making them takes longer than choosing. */
wlm_status shipped_choose(const shipped_case *c, const wlmi_snapshot *snapshot, int64_t calls,
                          wlmi_decision *decision) {
  static valid last;
  static char key[WLM_SPEC_KEY];
  if (!last.candidates || strcmp(key, c->problem) || last.spec.problem.n != c->n) {
    wlmi_free(last.candidates);
    assert_status(WLM_OK, wlmi_spec_from_key(c->problem, c->n, &last.spec));
    assert_status(WLM_OK,
                  wlmi_generator_describe(emit_generator, &last.spec, &emit_cuda, &last.candidates, &last.count));
    strcpy(key, c->problem);
  }
  last.spec.problem.expected_calls = calls;
  return wlmi_choose(snapshot, &c->stats, c->problem, &last.spec, &emit_cuda,
                     &(wlmi_judge){.usable = usable, .describe = describe, .user = &last}, decision);
}
