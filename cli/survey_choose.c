/* What would have been chosen, asked of the chooser itself (runtime/dispatch/choose.h) with a snapshot that lacks the
 * matrix. For each matrix the buckets are derived anew from the measurements of all others; those from which nothing
 * can be borrowed because they lie too far away are left out first, which changes no answer and most of the work. */
#include <stdlib.h>
#include <string.h>

#include "cli/survey.h"
#include "common/memory.h"
#include "common/spec_key.h"
#include "runtime/dispatch/choose.h"

/* What was not measured on the matrix has no time there, so it cannot be chosen. */
static int was_measured(void *user, const char *variant, int may_prepare) {
  const wlm_survey_case *c = user;
  (void)may_prepare;
  return wlm_survey_find(c->choice, variant) != NULL;
}

static wlm_limits limits_of(const wlm_device_record *device) {
  const int host = device->kind && !strcmp(device->kind, "host");
  return (wlm_limits){.target = host ? WLM_TARGET_HOST : WLM_TARGET_CUDA, .processors = device->processors};
}

/* A problem of another version has no rules, and what the chooser finds unusable stays NULL. */
static void choose(const wlm_snapshot *snapshot, const wlm_limits *limits, wlm_survey_case *c, wlm_way way) {
  const wlm_judge judge = {.usable = was_measured, .user = c};
  wlm_decision decision;
  wlm_spec spec;
  if (wlm_spec_from_key(c->choice->problem, c->choice->n, &spec) != WLM_OK ||
      wlm_choose(snapshot, c->choice->stats, c->choice->problem, &spec, limits, &judge, &decision) != WLM_OK)
    return;
  c->chosen[way] = wlm_survey_find(c->choice, decision.variant);
}

static wlm_status add_buckets(const wlm_choices *choices, wlm_snapshot *snapshot) {
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < choices->bucket_count; i++) {
    const wlm_choice *bucket = &choices->buckets[i];
    const wlm_case c = {
        .bucket = bucket->bucket, .problem = bucket->problem, .n = bucket->n, .matrices = bucket->matrices};
    if (!bucket->count) continue;
    WLM_TRY(wlm_snapshot_add_case(snapshot, &c));
    for (int64_t k = 0; k < bucket->count; k++)
      WLM_TRY(wlm_snapshot_add_ranked(snapshot, bucket->candidates[k].variant, bucket->candidates[k].cost,
                                      bucket->candidates[k].prepare));
  }
done:
  return status;
}

static int same_matrix(const wlm_stats *a, const wlm_stats *b) {
  return !memcmp(a->fingerprint, b->fingerprint, sizeof a->fingerprint);
}

/* `others` has room for all records; their strings stay those of the class. */
static wlm_status learn_without(const wlm_class *of, const wlm_choice *matrix, wlm_measurement_record *others,
                                wlm_snapshot *snapshot) {
  wlm_choices choices = {0};
  int64_t count = 0;
  wlm_status status;
  for (int64_t i = 0; i < of->count; i++) {
    wlm_bucket bucket;
    wlm_bucket_of(&of->records[i].stats, &bucket);
    if (!same_matrix(&of->records[i].stats, matrix->stats) &&
        wlm_bucket_distance(&bucket, 1, &matrix->bucket, 1) <= WLM_FAR)
      others[count++] = of->records[i];
  }
  WLM_TRY(wlm_choices_make(others, count, &choices));
  status = add_buckets(&choices, snapshot);
done:
  wlm_choices_release(&choices);
  return status;
}

static int compare_fingerprints(const void *left, const void *right) {
  const wlm_survey_case *a = *(wlm_survey_case *const *)left, *b = *(wlm_survey_case *const *)right;
  return memcmp(a->choice->stats->fingerprint, b->choice->stats->fingerprint, sizeof a->choice->stats->fingerprint);
}

wlm_status wlm_survey_choose(wlm_survey *survey) {
  const wlm_snapshot nothing = {0};
  wlm_measurement_record *others = NULL;
  wlm_survey_case **order = NULL;
  wlm_status status;
  if (!survey->case_count) return WLM_OK;
  const wlm_limits limits = limits_of(&survey->of->records->device);
  WLM_TRY(wlm_alloc_array(survey->of->count, sizeof *others, "measurements", (void **)&others));
  WLM_TRY(wlm_alloc_array(survey->case_count, sizeof *order, "cases", (void **)&order));
  for (int64_t i = 0; i < survey->case_count; i++) order[i] = &survey->cases[i];
  qsort(order, (size_t)survey->case_count, sizeof *order, compare_fingerprints);
  for (int64_t begin = 0, end; begin < survey->case_count; begin = end) {
    wlm_snapshot unseen = {0};
    status = learn_without(survey->of, order[begin]->choice, others, &unseen);
    for (end = begin; end < survey->case_count && !compare_fingerprints(&order[begin], &order[end]); end++) {
      if (status != WLM_OK) break;
      choose(&nothing, &limits, order[end], WLM_WAY_RULE);
      choose(&unseen, &limits, order[end], WLM_WAY_UNSEEN);
    }
    wlm_snapshot_release(&unseen);
    if (status != WLM_OK) break;
  }
done:
  wlm_free(others);
  wlm_free(order);
  return status;
}
