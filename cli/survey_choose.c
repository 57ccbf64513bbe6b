/* What would have been chosen, asked of the chooser itself (runtime/dispatch/choose.h) with a snapshot that lacks the
 * matrix.
 *
 * Borrowed: for each matrix the buckets are derived anew from the measurements of all others; those from which nothing
 * can be borrowed because they lie too far away are left out first, which changes no answer and most of the work.
 *
 * Predicted: training takes its time, so the matrices are dealt into a few parts, and each part is asked of a model
 * that was trained on the others. */
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/survey.h"
#include "common/memory.h"
#include "common/spec_key.h"
#include "runtime/dispatch/choose.h"
#include "tuner/train.h"

enum { PARTS = 4 };

/* ---- asking --------------------------------------------------------------------------------------------- */

typedef struct asking {
  const wlmi_snapshot *snapshot;
  wlmi_limits limits;
  wlmi_generator *generator; /* NULL = there is no model in the snapshot */
  const wlmi_spec *spec;
  const wlmi_survey_case *of;
  wlmi_candidate *candidates;
} asking;

/* What was not measured on the matrix has no time there, so it cannot be chosen. */
static int was_measured(void *user, const char *variant, int may_prepare) {
  const asking *a = user;
  (void)may_prepare;
  return wlmi_survey_find(a->of->choice, variant) != NULL;
}

static int64_t describe(void *user, const wlmi_candidate **candidates) {
  asking *a = user;
  int64_t count = 0, kept = 0;
  wlmi_free(a->candidates);
  a->candidates = NULL;
  if (a->generator && wlmi_generator_describe(a->generator, a->spec, &a->limits, &a->candidates, &count) != WLM_OK)
    return 0;
  for (int64_t i = 0; i < count; i++)
    if (was_measured(a, a->candidates[i].variant, 0)) a->candidates[kept++] = a->candidates[i];
  *candidates = a->candidates;
  return kept;
}

/* What was measured was valid, so beyond kind and architecture the limits forbid nothing. */
static wlmi_limits limits_of(const wlmi_device_record *device) {
  const int host = device->kind && !strcmp(device->kind, "host");
  wlmi_limits limits = {.target = host ? WLM_TARGET_HOST : WLM_TARGET_CUDA, .processors = device->processors};
  if (host) return limits;
  limits.arch = device->arch && !strncmp(device->arch, "sm_", 3) ? atoi(device->arch + 3) : 0;
  limits.threads_per_block = 1024;
  limits.shared_bytes = INT32_MAX;
  return limits;
}

/* A problem of another version has no rules, and what the chooser finds unusable stays NULL. Only this step counts
 * where one is asked for (-1 = any). */
static void ask(asking *a, wlmi_survey_case *c, wlmi_way way, int step) {
  const wlmi_judge judge = {.usable = was_measured, .describe = describe, .user = a};
  wlmi_decision decision;
  wlmi_spec spec;
  a->of = c;
  a->spec = &spec;
  if (wlmi_spec_from_key(c->choice->problem, c->choice->n, &spec) == WLM_OK &&
      wlmi_choose(a->snapshot, c->choice->stats, c->choice->problem, &spec, &a->limits, &judge, &decision) == WLM_OK &&
      (step < 0 || (int)decision.step == step))
    c->chosen[way] = wlmi_survey_find(c->choice, decision.variant);
  wlmi_free(a->candidates);
  a->candidates = NULL;
}

/* ---- borrowed ------------------------------------------------------------------------------------------- */

static wlm_status add_buckets(const wlmi_choices *choices, wlmi_snapshot *snapshot) {
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < choices->bucket_count; i++) {
    const wlmi_choice *bucket = &choices->buckets[i];
    const wlmi_case c = {
        .bucket = bucket->bucket, .problem = bucket->problem, .n = bucket->n, .matrices = bucket->matrices};
    if (!bucket->count) continue;
    WLM_TRY(wlmi_snapshot_add_case(snapshot, &c));
    for (int64_t k = 0; k < bucket->count; k++)
      WLM_TRY(wlmi_snapshot_add_ranked(snapshot, bucket->candidates[k].variant, bucket->candidates[k].cost,
                                       bucket->candidates[k].prepare));
  }
done:
  return status;
}

static int same_matrix(const wlm_stats *a, const wlm_stats *b) {
  return !memcmp(a->fingerprint, b->fingerprint, sizeof a->fingerprint);
}

/* `others` has room for all records; their strings stay those of the class. */
static wlm_status learn_without(const wlmi_class *of, const wlmi_choice *matrix, wlmi_measurement_record *others,
                                wlmi_snapshot *snapshot) {
  wlmi_choices choices = {0};
  int64_t count = 0;
  wlm_status status;
  for (int64_t i = 0; i < of->count; i++) {
    wlmi_bucket bucket;
    wlmi_bucket_of(&of->records[i].stats, &bucket);
    if (!same_matrix(&of->records[i].stats, matrix->stats) &&
        wlmi_bucket_distance(&bucket, 1, &matrix->bucket, 1) <= WLM_FAR)
      others[count++] = of->records[i];
  }
  WLM_TRY(wlmi_choices_make(others, count, &choices));
  status = add_buckets(&choices, snapshot);
done:
  wlmi_choices_release(&choices);
  return status;
}

static int compare_fingerprints(const void *left, const void *right) {
  const wlmi_survey_case *a = *(wlmi_survey_case *const *)left, *b = *(wlmi_survey_case *const *)right;
  return memcmp(a->choice->stats->fingerprint, b->choice->stats->fingerprint, sizeof a->choice->stats->fingerprint);
}

static wlm_status borrow(wlmi_survey *survey) {
  const wlmi_snapshot nothing = {0};
  asking rule = {.snapshot = &nothing, .limits = limits_of(&survey->of->records->device)};
  wlmi_measurement_record *others = NULL;
  wlmi_survey_case **order = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(survey->of->count, sizeof *others, "measurements", (void **)&others));
  WLM_TRY(wlmi_alloc_array(survey->case_count, sizeof *order, "cases", (void **)&order));
  for (int64_t i = 0; i < survey->case_count; i++) order[i] = &survey->cases[i];
  qsort(order, (size_t)survey->case_count, sizeof *order, compare_fingerprints);
  for (int64_t begin = 0, end; begin < survey->case_count; begin = end) {
    wlmi_snapshot unseen = {0};
    asking borrowed = {.snapshot = &unseen, .limits = rule.limits};
    status = learn_without(survey->of, order[begin]->choice, others, &unseen);
    for (end = begin; end < survey->case_count && !compare_fingerprints(&order[begin], &order[end]); end++) {
      if (status != WLM_OK) break;
      ask(&rule, order[end], WLM_WAY_RULE, -1);
      ask(&borrowed, order[end], WLM_WAY_BORROWED, -1);
    }
    wlmi_snapshot_release(&unseen);
    if (status != WLM_OK) break;
  }
done:
  wlmi_free(others);
  wlmi_free(order);
  return status;
}

/* ---- predicted ------------------------------------------------------------------------------------------ */

static int part_of(const wlm_stats *stats) { return (int)((stats->fingerprint[0] ^ stats->fingerprint[1]) % PARTS); }

static wlm_status train_without(const wlmi_class *of, int part, wlmi_measurement_record *others, const asking *a,
                                int64_t l2_bytes, wlmi_snapshot *snapshot) {
  wlmi_models models = {0};
  int64_t count = 0;
  wlm_status status;
  for (int64_t i = 0; i < of->count; i++)
    if (part_of(&of->records[i].stats) != part) others[count++] = of->records[i];
  WLM_TRY(wlmi_models_train(a->generator, &a->limits, l2_bytes, others, count, &models));
  for (int64_t i = 0; i < models.count; i++) WLM_TRY(wlmi_snapshot_add_model(snapshot, &models.models[i], NULL));
done:
  wlmi_models_release(&models);
  return status;
}

static wlm_status predict(wlmi_survey *survey, int64_t l2_bytes) {
  const char *folder = getenv("WARPLOOM_TEMPLATES");
  asking a = {.limits = limits_of(&survey->of->records->device)};
  wlmi_measurement_record *others = NULL;
  wlmi_progress progress;
  wlm_status status;
  WLM_TRY(wlmi_generator_create(folder && *folder ? folder : NULL, &a.generator));
  WLM_TRY(wlmi_alloc_array(survey->of->count, sizeof *others, "measurements", (void **)&others));
  wlmi_progress_begin(&progress, 1, 0);
  wlmi_progress_next(&progress, "report: training");
  for (int part = 0; part < PARTS && status == WLM_OK; part++) {
    wlmi_snapshot trained = {0};
    a.snapshot = &trained;
    wlmi_progress_show(&progress, part, PARTS, "each time without a part of the matrices");
    status = train_without(survey->of, part, others, &a, l2_bytes, &trained);
    for (int64_t i = 0; i < survey->case_count && status == WLM_OK; i++)
      if (part_of(survey->cases[i].choice->stats) == part)
        ask(&a, &survey->cases[i], WLM_WAY_PREDICTED, WLM_STEP_MODEL);
    wlmi_snapshot_release(&trained);
  }
  wlmi_progress_end(&progress);
done:
  wlmi_free(others);
  wlmi_generator_destroy(a.generator);
  return status;
}

wlm_status wlmi_survey_choose(wlmi_survey *survey, int64_t l2_bytes) {
  if (!survey->case_count) return WLM_OK;
  const wlm_status status = borrow(survey);
  return status == WLM_OK && l2_bytes ? predict(survey, l2_bytes) : status;
}
