#include "cli/tune_outcomes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "select/case.h"

typedef struct wlmi_tune_outcome {
  wlm_candidate_result result;
  char *variant, *reason; /* copies */
} outcome;

/* A finalist's precise time replaces its screening time. */
void wlmi_tune_outcomes_keep(wlmi_tune_outcomes *o, const wlm_candidate_result *result) {
  int64_t i = 0;
  while (i < o->count && strcmp(o->list[i].result.variant, result->variant)) i++;
  if (i == o->count) {
    if (wlmi_grow((void **)&o->list, o->count, &o->capacity, sizeof *o->list, "results") != WLM_OK) o->failed = 1;
    if (o->failed) return;
    o->list[o->count++] = (outcome){.variant = wlmi_strdup(result->variant)};
  }
  outcome *kept = &o->list[i];
  wlmi_free(kept->reason);
  kept->reason = wlmi_strdup(result->reason);
  kept->result = *result;
  kept->result.variant = kept->variant ? kept->variant : "";
  kept->result.reason = kept->reason;
}

void wlmi_tune_outcomes_release(wlmi_tune_outcomes *o) {
  for (int64_t i = 0; i < o->count; i++) {
    wlmi_free(o->list[i].variant);
    wlmi_free(o->list[i].reason);
  }
  wlmi_free(o->list);
}

static int is_only_screened(const wlm_candidate_result *r) { return !r->failed && r->samples <= 1; }

/* Finalists come first, because candidates that were only screened cannot win. */
static int by_time(const void *left, const void *right) {
  const wlm_candidate_result *a = &((const outcome *)left)->result, *b = &((const outcome *)right)->result;
  const int left_precise = !is_only_screened(a), right_precise = !is_only_screened(b);
  if (a->failed != b->failed) return a->failed - b->failed;
  if (left_precise != right_precise) return right_precise - left_precise;
  if (a->seconds != b->seconds) return a->seconds < b->seconds ? -1 : 1;
  return strcmp(a->variant, b->variant);
}

/* Ranks the results as a choice ranks them (select/case.h). Returns the winner, or NULL where no unprepared candidate
 * was timed again. */
static const wlm_candidate_result *winner_of(const wlmi_tune_outcomes *o) {
  wlmi_measurement_record *records = NULL;
  wlmi_cases cases = {0};
  const wlm_candidate_result *winner = NULL;
  if (wlmi_alloc_array(o->count, sizeof *records, "results", (void **)&records) != WLM_OK) return NULL;
  for (int64_t i = 0; i < o->count; i++) {
    const wlm_candidate_result *r = &o->list[i].result;
    records[i] = (wlmi_measurement_record){.variant = o->list[i].variant,
                                           .failed = r->failed,
                                           .samples = r->samples,
                                           .time_ps = llround(r->seconds * 1e12),
                                           .spread_ps = llround(r->spread * r->seconds * 1e12),
                                           .prepare_ps = llround(r->prepare_seconds * 1e12)};
  }
  if (wlmi_cases_make(records, o->count, &cases) == WLM_OK && cases.count && cases.list->count) {
    const wlmi_measured *best = cases.list->candidates;
    for (int64_t i = 0; i < o->count && best->precise && best->prepare <= 0; i++)
      if (o->list[i].variant == best->variant) winner = &o->list[i].result;
  }
  wlmi_cases_release(&cases);
  wlmi_free(records);
  return winner;
}

void wlmi_tune_outcomes_report(wlmi_tune_outcomes *o, wlmi_report *report, char starred[WLMI_VARIANT_NAME]) {
  wlmi_table table;
  int64_t screened = 0;
  if (o->count) qsort(o->list, (size_t)o->count, sizeof *o->list, by_time);
  const wlm_candidate_result *winner = winner_of(o);
  snprintf(starred, WLMI_VARIANT_NAME, "%s", winner ? winner->variant : "");
  wlmi_table_begin(&table,
                   "= ,variant,us,spread=,=spread,samples,cold_us=cold us,prepare_us=prepare us,gbs=GB/s,"
                   "max_rel_err=error,failed=,reason=failed");
  for (int64_t i = 0; i < o->count; i++) {
    const wlm_candidate_result *r = &o->list[i].result;
    char spread[32];
    snprintf(spread, sizeof spread, is_only_screened(r) ? "screened" : "%.1f%%", r->spread * 100);
    const double timed = r->failed ? NAN : 1;
    wlmi_table_add(&table, "%s %s %.2f %g %s %d", r == winner ? "*" : "", r->variant, timed * r->seconds * 1e6,
                   timed * r->spread, r->failed ? "" : spread, r->samples);
    wlmi_table_real(&table, r->cold_seconds > 0 ? "%.2f" : "", r->cold_seconds > 0 ? r->cold_seconds * 1e6 : NAN);
    wlmi_table_real(&table, r->prepare_seconds > 0 ? "%.2f" : "", timed * r->prepare_seconds * 1e6);
    wlmi_table_add(&table, "%.2f %.1e", timed * r->gather_gbs, r->max_rel_err);
    wlmi_table_flag(&table, r->failed);
    wlmi_table_text(&table, r->reason);
    screened += is_only_screened(r);
  }
  wlmi_report_table(report, "candidates", &table, 0);
  if (winner && winner != &o->list->result && o->list->result.prepare_seconds <= 0)
    wlmi_report_line(report,
                     "*: among times that differ by less than their spread and 2 %%, the first name is chosen, so that "
                     "noise changes no choice");
  if (screened)
    wlmi_report_line(report, "screened: timed once, to find the candidates worth timing again; such a time cannot win");
}

/* Reports the measurements, and how the time was spent. */
void wlmi_tune_summary_report(const wlmi_tune_summary *s, wlmi_report *report) {
  const int64_t unmeasured = s->candidates - s->known - s->measured, left = unmeasured - s->put_off;
  wlmi_report_members(report, "measured=%jd known=%jd finalists=%jd seconds=%.2f", s->measured, s->known, s->finalists,
                      s->total);
  if (s->repeats)
    wlmi_report_line(
        report,
        "busy: the finalists were measured %d times; in the calmest round the calling thread ran %.0f %% of the time",
        s->repeats + 1, 100 * (1 - s->lost));
  if (s->nothing) wlmi_report_line(report, "nothing to tune: A has no non-zeros or B has no columns");
  if (s->put_off)
    wlmi_report_line(report, "%jd of %jd candidates could not be measured for now; the same command tries them again",
                     s->put_off, s->candidates);
  if (left > 0)
    wlmi_report_line(report, "%jd of %jd candidates are left%s; the same command goes on", left, s->candidates,
                     left > s->unlikely ? "" : ", which the model takes for slow");
  if (!report->json) return;
  wlmi_report_members(report, "variants=%jd left=%jd unlikely=%jd repeats=%d lost=%.3f", s->candidates, unmeasured,
                      s->unlikely, s->repeats, s->lost);
  wlmi_report_object(report, "split");
  wlmi_report_members(report, "making=%.3f compiling=%.3f entering=%.3f checking=%.3f", s->making, s->compiling,
                      s->entering, s->checking);
  wlmi_report_close(report);
}
