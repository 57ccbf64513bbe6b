/* Decides by the built-in rules where nothing similar enough was tuned. */
#include <math.h>
#include <stdlib.h>

#include "select/rules.h"
#include "select/state.h"

/* Rows are skewed if their CV is large, or if the longest one is more than a multiprocessor's even share. */
static int is_skewed(const wlm_stats *stats, double min_cv, const wlmi_limits *limits) {
  return stats->cv >= min_cv || (double)stats->longest * limits->processors > (double)stats->nnz;
}

/* The columns of a row of B; for an SDDMM those of one head. */
static int64_t columns_of(const wlmi_selection *s) {
  return s->spec->problem.operation == WLM_SDDMM ? s->n / s->spec->problem.heads : s->n;
}

static int has_halves(const wlmi_selection *s) {
  return wlmi_ranks_as_product(s->spec) && wlmi_type_size(s->spec->problem.dense_type) == 2;
}

/* The columns that are compared with a rule's. Rules are written for f32, and a product in 16 bits moves as many bytes
 * as one in f32 with half its columns. Rules for narrow products keep the columns. */
static int64_t width_of(const wlmi_selection *s) {
  return has_halves(s) && s->n > 2 * WLMI_NARROW ? (s->n + 1) / 2 : columns_of(s);
}

/* Sampled rows have at most S edges, so what counts is how many rows there are to keep the device busy. */
static int64_t size_of(const wlmi_selection *s) {
  return s->spec->problem.sampling.sample == WLM_SAMPLE_NONE ? s->stats->nnz : s->stats->rows;
}

/* The longest row of estimated stats is a guess, on which no rule must rely. */
static int has_no_longer_row(const wlmi_selection *s, const wlmi_rule *rule) {
  const int is_bound = rule->max_longest < INT64_MAX;
  return s->stats->longest <= rule->max_longest && !(is_bound && wlmi_is_estimated(s->request));
}

/* Rows of at most that many non-zeros end together, so sorting them gains nothing. */
enum { SHORT_ROW = 41, SHORT_ROW_OF_HALVES = 12 };

/* Sorting rows pays for as many calls where no row has more than a thousand non-zeros or a fiftieth of all: one block
 * works on a row, and such a row would keep it busy after all others. Only sums were measured. */
static int pays_to_sort(const wlmi_selection *s) {
  const wlm_problem *p = &s->spec->problem;
  const int64_t longest = s->stats->longest;
  const int is_sum =
      (p->reduce == WLM_SUM || p->reduce == WLM_MEAN) && (p->message == WLM_MUL || p->message == WLM_COPY_B);
  return is_sum && p->operation == WLM_SPMM && !wlmi_is_estimated(s->request) &&
         longest > (has_halves(s) ? SHORT_ROW_OF_HALVES : SHORT_ROW) &&
         (longest <= 1000 || longest * 50 <= s->stats->nnz);
}

static int holds(const wlmi_selection *s, const wlmi_rule *rule) {
  const wlmi_limits *limits = s->request->limits;
  return rule->target == limits->target && width_of(s) <= rule->max_n && is_skewed(s->stats, rule->min_cv, limits) &&
         size_of(s) <= rule->max_size && has_no_longer_row(s, rule) && s->stats->mean >= rule->min_mean &&
         s->calls >= rule->min_calls && (!rule->min_calls || pays_to_sort(s));
}

/* Writes the rule's variant with the first valid vector or tile, or with the last if none is valid. */
static int spell_allowed(const wlmi_selection *s, const wlmi_rule *rule, wlmi_variant *variant,
                         char name[WLMI_VARIANT_NAME]) {
  for (int number = 0; wlmi_rule_spell(rule, &s->spec->problem, columns_of(s), number, name); number++) {
    wlmi_variant_recognise(s->request->variants->families, name, variant);
    if (wlmi_is_allowed(s, variant, wlmi_may_prepare(s))) return 1;
  }
  return 0;
}

static void add_entry(wlmi_selection *s, const wlmi_variant *variant, const char *why, wlmi_decision *decision) {
  wlmi_add_entry(decision, variant, wlmi_predict_variant(s, variant), WLMI_STEP_RULE, why);
}

/* All variants of the rules failed on this very matrix: takes any candidate that did not fail, or else any whose result
 * was not wrong, because tuning must not make a product impossible. */
static void add_what_is_left(wlmi_selection *s, wlmi_decision *decision) {
  const wlmi_candidate_list *list = s->request->variants->list;
  if (!wlmi_failure_count(s)) return;
  wlmi_list_candidates(s);
  for (int64_t i = 0; i < s->candidate_count && decision->entry_count < WLMI_STEP_ENTRIES; i++)
    if (!s->candidates[i].prepares)
      add_entry(s, &s->candidates[i].value, "what rules name failed here, so any that did not", decision);
  for (int64_t i = 0; list && !decision->entry_count && i < list->count; i++)
    if (!list->candidates[i].prepares && !wlmi_was_wrong(s, &list->candidates[i].value))
      add_entry(s, &list->candidates[i].value, "every kernel failed here; this one gave no wrong result", decision);
}

/* Whether a is the better one where neither is what rules name: of the family that they name, then the one whose
 * columns fit n better. */
static int fits_better(const wlmi_selection *s, const wlmi_candidate *a, const wlmi_candidate *b, uint8_t family) {
  if ((a->value.family == family) != (b->value.family == family)) return a->value.family == family;
  return wlmi_candidate_misfit(a, s->n) < wlmi_candidate_misfit(b, s->n);
}

/* None of the kernels that rules name is a candidate, because the problem allows few or an archive has few: takes those
 * that fit best. `family` is the one that rules name. */
static void add_what_fits(wlmi_selection *s, uint8_t family, wlmi_decision *decision) {
  const int is_archived = s->request->limits->any_width != 0;
  if (!is_archived && wlmi_failure_count(s)) return;
  wlmi_list_candidates(s);
  for (int64_t added = 0; added < s->candidate_count && decision->entry_count < WLMI_STEP_ENTRIES; added++) {
    const wlmi_candidate *best = NULL;
    for (int64_t i = 0; i < s->candidate_count; i++) {
      const wlmi_candidate *c = &s->candidates[i];
      int is_there = c->prepares;
      for (int e = 0; e < decision->entry_count; e++)
        is_there |= wlmi_variant_same(&decision->entries[e].variant, &c->value);
      if (!is_there && (!best || fits_better(s, c, best, family))) best = c;
    }
    if (best)
      add_entry(s, &best->value,
                is_archived ? "the kernel of the archive that fits best"
                            : "what rules name does not serve this problem; of what does, this fits best",
                decision);
  }
}

const wlmi_rule *wlmi_rule_for(const wlmi_selection *s, wlmi_variant *variant) {
  char name[WLMI_VARIANT_NAME];
  for (int i = 0; i < wlmi_rule_count; i++)
    if (holds(s, &wlmi_rules[i]) && spell_allowed(s, &wlmi_rules[i], variant, name)) return &wlmi_rules[i];
  return NULL;
}

int wlmi_select_by_rule(wlmi_selection *s, wlmi_decision *decision) {
  char name[WLMI_VARIANT_NAME];
  wlmi_variant variant;
  uint8_t family = 0; /* of the first rule that holds */
  decision->distance = (double)NAN;
  for (int i = 0; i < wlmi_rule_count; i++) {
    if (!holds(s, &wlmi_rules[i])) continue;
    if (!spell_allowed(s, &wlmi_rules[i], &variant, name)) {
      if (wlmi_failed_here(s, &variant)) wlmi_refuse(s, &variant, name, decision);
      if (!family) family = variant.family;
      continue;
    }
    add_entry(s, &variant, wlmi_rules[i].why, decision);
    break;
  }
  if (!decision->entry_count) add_what_fits(s, family, decision);
  if (!decision->entry_count) add_what_is_left(s, decision);
  decision->step = WLMI_STEP_RULE;
  decision->rule = decision->entries[0].reason;
  return decision->entry_count > 0;
}

void wlmi_add_rule_entries(wlmi_selection *s, wlmi_decision *decision) {
  enum { MOST = 2 };
  char name[WLMI_VARIANT_NAME];
  wlmi_variant variant;
  const int before = decision->entry_count;
  for (int i = 0; i < wlmi_rule_count && decision->entry_count < before + MOST; i++)
    if (!wlmi_rules[i].min_calls && holds(s, &wlmi_rules[i]) && spell_allowed(s, &wlmi_rules[i], &variant, name))
      add_entry(s, &variant, wlmi_rules[i].why, decision);
}

/* ---- scattering ----------------------------------------------------------------------------------------- */

/* How far a block's non-zeros are from those that give 64 blocks for each multiprocessor. */
static int64_t share_misfit(const wlmi_candidate *c, const wlmi_request *request) {
  const int64_t wanted = request->stats->nnz / (64 * (int64_t)request->limits->processors) + 1;
  return llabs(c->pass.units_per_block - wanted);
}

void wlmi_select_scatter(const wlmi_request *request, wlmi_decision *decision) {
  static const char rule[] = "a matrix that is used once is scattered, not transposed";
  const wlmi_candidate_list *list = request->variants->list;
  const wlm_problem *p = &request->spec->problem;
  const wlmi_candidate *best = NULL;
  *decision = (wlmi_decision){.step = WLMI_STEP_RULE,
                              .families = request->variants->families,
                              .distance = (double)NAN,
                              .calls = p->policy.expected_calls,
                              .rule = rule};
  for (int64_t i = 0; list && i < list->count; i++) {
    const wlmi_candidate *c = &list->candidates[i];
    if (!c->walks_a) continue;
    const int64_t difference = best ? wlmi_candidate_misfit(c, p->n) - wlmi_candidate_misfit(best, p->n) : -1;
    if (difference < 0 || (difference == 0 && share_misfit(c, request) < share_misfit(best, request))) best = c;
  }
  if (best) wlmi_add_entry(decision, &best->value, 0, WLMI_STEP_RULE, rule);
}
