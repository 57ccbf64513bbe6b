#include "cli/overview.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

const char *const wlmi_way_names[WLM_WAYS] = {"GE-SpMM", "one fixed", "rules", "borrowed", "predicted"};

const wlmi_measured *wlmi_overview_winner(const wlmi_overview_case *c) {
  return isnan(c->best) ? NULL : &c->choice->candidates[0];
}

/* The best time; the winner may be slightly slower, if they tie. */
static double best_of(const wlmi_case *choice) {
  double best = INFINITY;
  for (int64_t i = 0; i < choice->count && !(choice->candidates[i].prepare > 0); i++)
    best = fmin(best, choice->candidates[i].cost);
  return isfinite(best) ? best : (double)NAN;
}

/* ---- the best fixed variant ------------------------------------------------------------------------- */

typedef struct entry {
  const char *variant;
  double log_ratio;
} entry;

static int compare_entries(const void *left, const void *right) {
  const entry *a = left, *b = right;
  int order = strcmp(a->variant, b->variant);
  return order ? order : (a->log_ratio > b->log_ratio) - (a->log_ratio < b->log_ratio);
}

/* Among the variants measured in the most cases, the one with the least geometric mean. */
static const char *best_fixed(entry *entries, int64_t count) {
  const char *best = NULL;
  double least = INFINITY;
  int64_t most = 0;
  qsort(entries, (size_t)count, sizeof *entries, compare_entries);
  for (int64_t begin = 0, end; begin < count; begin = end) {
    double logs = 0;
    for (end = begin; end < count && !strcmp(entries[begin].variant, entries[end].variant); end++)
      logs += entries[end].log_ratio;
    const double mean = logs / (double)(end - begin);
    if (end - begin < most || (end - begin == most && mean >= least)) continue;
    most = end - begin;
    least = mean;
    best = entries[begin].variant;
  }
  return best;
}

static wlm_status find_fixed(wlmi_overview_problem *problem) {
  entry *entries = NULL;
  int64_t capacity = 0, count = 0;
  wlm_status status;
  for (int64_t i = 0; i < problem->count; i++) capacity += problem->cases[i].choice->count;
  WLM_TRY(wlmi_alloc_array(capacity, sizeof *entries, "variants", (void **)&entries));
  for (int64_t i = 0; i < problem->count; i++) {
    const wlmi_overview_case *c = &problem->cases[i];
    for (int64_t k = 0; k < c->choice->count; k++)
      if (!(c->choice->candidates[k].prepare > 0))
        entries[count++] = (entry){c->choice->candidates[k].variant, log(c->choice->candidates[k].cost / c->best)};
  }
  problem->fixed = best_fixed(entries, count);
  for (int64_t i = 0; i < problem->count && problem->fixed; i++)
    problem->cases[i].chosen[WLM_WAY_FIXED] = wlmi_overview_find(problem->cases[i].choice, problem->fixed);
done:
  wlmi_free(entries);
  return status;
}

/* ---- all of it -------------------------------------------------------------------------------------- */

static int compare_problems(const void *left, const void *right) {
  const wlmi_overview_problem *a = left, *b = right;
  if (a->count != b->count) return a->count < b->count ? 1 : -1;
  return strcmp(a->key, b->key);
}

/* The choices are ordered by problem. */
static void split_by_problem(wlmi_overview *overview) {
  for (int64_t i = 0; i < overview->case_count; i++) {
    const char *key = overview->cases[i].choice->problem;
    if (!i || strcmp(key, overview->cases[i - 1].choice->problem))
      overview->problems[overview->problem_count++] = (wlmi_overview_problem){.key = key, .cases = &overview->cases[i]};
    overview->problems[overview->problem_count - 1].count++;
  }
  qsort(overview->problems, (size_t)overview->problem_count, sizeof *overview->problems, compare_problems);
}

wlm_status wlmi_overview_make(const wlmi_class *of, int64_t l2_bytes, wlmi_overview *overview) {
  const int64_t count = of->choices.matrix_count;
  wlm_status status;
  *overview = (wlmi_overview){.of = of, .case_count = count};
  WLM_TRY(wlmi_alloc_array(count, sizeof *overview->cases, "cases", (void **)&overview->cases));
  WLM_TRY(wlmi_alloc_array(count, sizeof *overview->problems, "problems", (void **)&overview->problems));
  for (int64_t i = 0; i < count; i++) {
    const wlmi_case *choice = &of->choices.matrices[i];
    overview->cases[i] = (wlmi_overview_case){.choice = choice, .best = best_of(choice)};
    overview->cases[i].chosen[WLM_WAY_GE_SPMM] =
        wlmi_overview_find(choice, choice->n >= 64 ? "row_crc/cf=2,rows=8" : "row_crc/cf=1,rows=4");
  }
  split_by_problem(overview);
  for (int64_t i = 0; i < overview->problem_count; i++) WLM_TRY(find_fixed(&overview->problems[i]));
  status = wlmi_overview_choose(overview, l2_bytes);
done:
  if (status != WLM_OK) wlmi_overview_release(overview);
  return status;
}

void wlmi_overview_release(wlmi_overview *overview) {
  wlmi_free(overview->cases);
  wlmi_free(overview->problems);
  *overview = (wlmi_overview){0};
}

/* ---- ratios ------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

wlm_status wlmi_ratios_make(const wlmi_overview_problem *problem, wlmi_way way, wlmi_ratios *ratios) {
  double logs = 0, most = 0;
  *ratios = (wlmi_ratios){.mean = (double)NAN};
  wlm_status status = wlmi_alloc_array(problem->count, sizeof *ratios->sorted, "ratios", (void **)&ratios->sorted);
  for (int64_t i = 0; i < problem->count && status == WLM_OK; i++) {
    const wlmi_overview_case *c = &problem->cases[i];
    if (isnan(c->best)) continue;
    ratios->cases++;
    if (!c->chosen[way]) continue;
    const double ratio = c->chosen[way]->cost / c->best;
    logs += log(ratio);
    if (ratio > most) ratios->worst = c;
    most = fmax(most, ratio);
    ratios->sorted[ratios->count++] = ratio;
  }
  if (!ratios->count) return status;
  ratios->mean = exp(logs / (double)ratios->count);
  qsort(ratios->sorted, (size_t)ratios->count, sizeof *ratios->sorted, compare_numbers);
  return status;
}

void wlmi_ratios_release(wlmi_ratios *ratios) {
  wlmi_free(ratios->sorted);
  *ratios = (wlmi_ratios){0};
}
