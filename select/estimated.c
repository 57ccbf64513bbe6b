/* Decides where only the size of the matrix is known: rows, columns and non-zeros.
 *
 * How row lengths vary decides which kernel is fast, but it is not known here. So the model predicts every candidate
 * for several plausible matrices of this size, the profiles: four with log-normal row lengths, from even to one huge
 * row. The candidate with the least mean loss wins. The loss in a profile is log(time / best time) plus a multiple of
 * its square, so a candidate that is very slow in one profile does not win by being a little faster in the others.
 * tests/db/test_estimated.c measures the result. */
#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "select/state.h"

static const double launch_seconds = 2.6e-6; /* host time of cuLaunchKernelEx, from case "execute" of
                                              * bench/results/h200/dispatch.jsonl */
enum { SYNTHETIC = 4, PROFILES = SYNTHETIC + 1 };
static const struct { double cv, weight; } synthetic[SYNTHETIC] = {{0.3, 2}, {1.2, 1}, {3, 1}, {10, 0.5}};
static const double square = 2;          /* weight of the squared loss */
static const double sampled_weight = 70; /* of the profile of a sampled block; the others together have 4.5 */

typedef struct profile {
  wlm_stats stats;
  double weight;
} profile;

/* ---- profiles ------------------------------------------------------------------------------------------- */

static int64_t clamp(double value, double least, double most) { return (int64_t)fmax(least, fmin(most, value)); }

static double normal_below(double z) { return 0.5 * erfc(-z / sqrt(2)); }

static double mean_of(const wlm_stats *s) { return s->rows > 0 ? (double)s->nnz / (double)s->rows : 0; }

static int64_t longest_of(const wlm_stats *size, double longest) {
  const double least = ceil(mean_of(size));
  return clamp(longest, least, fmax(least, fmin((double)size->cols, (double)size->nnz)));
}

wlm_stats wlmi_log_normal_stats(const wlm_stats *size, double cv) {
  wlm_stats s = *size;
  const double mean = fmax(mean_of(size), 1e-3), rows = fmax((double)size->rows, 1);
  const double variance = log(1 + cv * cv), sigma = sqrt(variance), middle = log(mean) - variance / 2;
  s.cv = cv;
  s.longest = longest_of(size, exp(middle + sigma * sqrt(2 * log(rows + 1))));
  s.rows_le_4 = clamp(rows * normal_below((log(4.5) - middle) / sigma), 0, rows);
  s.rows_le_16 = clamp(rows * normal_below((log(16.5) - middle) / sigma), (double)s.rows_le_4, rows);
  s.empty_rows = clamp(rows * normal_below((log(0.5) - middle) / sigma), 0, (double)s.rows_le_4);
  s.top_share = 1 - normal_below(2.326 - sigma);
  return s;
}

/* A matrix that is used once and has more columns than rows is most likely a block of a neighbour sampler: rows are
 * targets, columns are sources, each non-zero brings at most one new source, and no row is longer than the fanout. */
static int looks_sampled(const wlm_stats *s) {
  const double sources = (double)(s->cols - s->rows);
  return s->cols > s->rows && sources <= 1.3 * (double)s->nnz && mean_of(s) <= 64; /* stats are a cell's centre */
}

static wlm_stats sampled_block(const wlm_stats *size) {
  wlm_stats s = wlmi_log_normal_stats(size, 0.35);
  s.longest = longest_of(size, 1.5 * mean_of(size));
  s.top_share = 0.015;
  return s;
}

wlm_stats wlmi_moderate_stats(const wlm_stats *estimated) { return wlmi_log_normal_stats(estimated, synthetic[1].cv); }

/* Whether each launch of the call takes the host's time. */
static int is_enqueued(const wlmi_selection *s) {
  return s->request->use == WLMI_USE_ONE_CALL && s->request->limits->target == WLMI_TARGET_CUDA;
}

/* ---- the decision --------------------------------------------------------------------------------------- */

typedef struct expected {
  double loss, log_seconds, log_price; /* weighted sums over the profiles */
} expected;

/* Adds the losses of all candidates in one profile; the loss is infinite for a candidate that the model cannot predict.
 */
static void add_profile(const wlmi_selection *s, const profile *p, double *prices, expected *sums) {
  wlmi_model_case c;
  double best = INFINITY;
  wlmi_model_case_make(s->lookup.model, s->request->limits, &p->stats, s->lookup.problem, s->n, &c);
  for (int64_t i = 0; i < s->candidate_count; i++) {
    wlmi_prediction prediction;
    prices[i] = INFINITY;
    if (s->candidates[i].prepares && !wlmi_may_prepare(s)) continue;
    if (!wlmi_predict_one(&c, &s->candidates[i], s->calls, &prediction)) continue;
    const double launches = is_enqueued(s) ? launch_seconds * s->candidates[i].launches : 0;
    prices[i] = fmax(prediction.price, launches);
    sums[i].log_seconds += p->weight * log(fmax(prediction.seconds, launches));
    best = fmin(best, prices[i]);
  }
  for (int64_t i = 0; i < s->candidate_count; i++) {
    const double loss = log(prices[i] / best);
    sums[i].loss += p->weight * (loss + square * loss * loss);
    sums[i].log_price += p->weight * log(prices[i]);
  }
}

static int take_best(const wlmi_selection *s, expected *sums, double weight, wlmi_prediction best[WLMI_STEP_ENTRIES]) {
  int count = 0;
  for (; count < WLMI_STEP_ENTRIES; count++) {
    int64_t least = -1;
    for (int64_t i = 0; i < s->candidate_count; i++)
      if (isfinite(sums[i].loss) && (least < 0 || sums[i].loss < sums[least].loss)) least = i;
    if (least < 0) break;
    const double seconds = exp(sums[least].log_seconds / weight), price = exp(sums[least].log_price / weight);
    best[count] = (wlmi_prediction){&s->candidates[least], seconds, (price - seconds) * (double)s->calls, price};
    sums[least].loss = INFINITY;
  }
  return count;
}

int wlmi_select_estimated(wlmi_selection *s, wlmi_decision *decision) {
  static const char reason[] = "robust by the model, over matrices of this size";
  profile profiles[PROFILES];
  wlmi_prediction best[WLMI_STEP_ENTRIES];
  double *prices = NULL, weight = 0;
  expected *sums = NULL;
  int count = 0;
  if (!wlmi_model_is_near(&s->lookup)) return 0;
  wlmi_list_candidates(s);
  int profile_count = 0;
  for (int i = 0; i < SYNTHETIC; i++)
    profiles[profile_count++] = (profile){wlmi_log_normal_stats(s->stats, synthetic[i].cv), synthetic[i].weight};
  if (is_enqueued(s) && looks_sampled(s->stats))
    profiles[profile_count++] = (profile){sampled_block(s->stats), sampled_weight};
  prices = wlmi_alloc_zero((size_t)s->candidate_count, sizeof *prices);
  sums = wlmi_alloc_zero((size_t)s->candidate_count, sizeof *sums);
  s->out_of_memory |= !prices || !sums;
  for (int i = 0; i < profile_count && prices && sums; i++) {
    add_profile(s, &profiles[i], prices, sums);
    weight += profiles[i].weight;
  }
  if (prices && sums) count = take_best(s, sums, weight, best);
  wlmi_free(prices);
  wlmi_free(sums);
  if (count) wlmi_describe_predictions(s, best, count, 0, reason, decision);
  return count > 0;
}
