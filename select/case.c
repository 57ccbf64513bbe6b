/* The newest measurement of a variant has the current version. Among those with this version, the measurements with the
 * newest version of that measurement's compiler count. If the newest of them failed, the variant may not be chosen.
 * Otherwise its time is the median of those that count. All others are superseded and may be pruned.
 *
 * The cost of preparing is kept separately, because whether it pays depends on the number of calls, which is known only
 * at plan creation. Unprepared candidates are ranked by themselves and come first.
 *
 * The tuner screens all candidates with a short run and times the best of them again. If a variant was timed again,
 * only those times count; if some of its measurements are not noisy, only these count. Disturbances only add time, so
 * among screening runs and among noisy measurements the least time counts. If any candidate of a kind (prepared or
 * unprepared) was timed again, one that was only screened cannot win: a lower screening time is assumed to be noise and
 * is raised to just above the best precise time.
 *
 * Ties: a candidate within the spread of the fastest, and within WLMI_CASE_TIE of it, ties with it. Among these the
 * first by name wins, so that noise does not change the decision.
 *
 * Everything is sorted by its full content before it is summed, so the result is bit for bit independent of the order
 * of the input. */
#include "select/case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "select/compiler.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
/* Returns from a comparison at the first difference. */
#define ORDER_BY(comparison)  \
  do {                        \
    int order = (comparison); \
    if (order) return order;  \
  } while (0)

/* Equal texts from one database have one address, so most comparisons end at the pointers. */
static int compare_texts(const char *a, const char *b) { return a == b ? 0 : strcmp(a ? a : "", b ? b : ""); }

static int compare_fingerprints(const wlm_stats *a, const wlm_stats *b) {
  ORDER_BY(COMPARE(a->fingerprint[0], b->fingerprint[0]));
  return COMPARE(a->fingerprint[1], b->fingerprint[1]);
}

static int compare_matrices(const wlmi_measurement_record *a, const wlmi_measurement_record *b) {
  ORDER_BY(compare_texts(a->problem, b->problem));
  ORDER_BY(COMPARE(a->n, b->n));
  return compare_fingerprints(&a->stats, &b->stats);
}

/* Newest first; among equally new ones the failed one first, then the greater version. */
static int compare_records(const void *left, const void *right) {
  const wlmi_measurement_record *a = *(const wlmi_measurement_record *const *)left;
  const wlmi_measurement_record *b = *(const wlmi_measurement_record *const *)right;
  ORDER_BY(compare_matrices(a, b));
  ORDER_BY(compare_texts(a->variant, b->variant));
  ORDER_BY(COMPARE(wlmi_measurement_is_cold(a), wlmi_measurement_is_cold(b)));
  ORDER_BY(COMPARE(b->made_at, a->made_at));
  ORDER_BY(COMPARE(!!b->failed, !!a->failed));
  ORDER_BY(compare_texts(b->version, a->version));
  ORDER_BY(COMPARE(a->time_ps, b->time_ps));
  ORDER_BY(COMPARE(a->spread_ps, b->spread_ps));
  ORDER_BY(COMPARE(a->prepare_ps, b->prepare_ps));
  ORDER_BY(compare_texts(a->compiler, b->compiler));
  return compare_texts(a->driver, b->driver);
}

static int compare_candidates(const void *left, const void *right) {
  const wlmi_measured *a = left, *b = right;
  ORDER_BY(COMPARE(a->failed, b->failed));
  ORDER_BY(COMPARE(a->prepare > 0, b->prepare > 0));
  ORDER_BY(COMPARE(a->cost, b->cost));
  return compare_texts(a->variant, b->variant);
}

static int compare_numbers(const void *left, const void *right) {
  return COMPARE(*(const int64_t *)left, *(const int64_t *)right);
}

static int64_t median(int64_t *values, int64_t count) {
  qsort(values, (size_t)count, sizeof *values, compare_numbers);
  int64_t low = values[(count - 1) / 2], high = values[count / 2];
  return low + (high - low) / 2;
}

/* Raises the times of screened candidates above the best precise time of their kind. */
static void raise_screened_times(wlmi_measured *candidates, int64_t total) {
  double best[2] = {INFINITY, INFINITY};
  for (int64_t i = 0; i < total; i++)
    if (candidates[i].precise && !candidates[i].failed)
      best[candidates[i].prepare > 0] = fmin(best[candidates[i].prepare > 0], candidates[i].cost);
  for (int64_t i = 0; i < total; i++) {
    wlmi_measured *c = &candidates[i];
    const double least = best[c->prepare > 0] * (1 + WLMI_CASE_TIE);
    if (!c->precise && !c->failed && isfinite(least)) c->cost = fmax(c->cost, least);
  }
}

/* Sorts and counts the candidates and moves the winner to the front. */
static void rank(wlmi_case *c, wlmi_measured *candidates, int64_t total) {
  raise_screened_times(candidates, total);
  qsort(candidates, (size_t)total, sizeof *candidates, compare_candidates);
  c->candidates = candidates;
  c->count = 0;
  while (c->count < total && !candidates[c->count].failed) c->count++;
  c->failed = total - c->count;
  if (!c->count) return;
  double fastest = candidates[0].cost, limit = fastest + fmin(candidates[0].spread, WLMI_CASE_TIE * fastest);
  int64_t winner = 0;
  for (int64_t i = 1; i < c->count && candidates[i].cost <= limit; i++) {
    if (!candidates[i].prepare != !candidates[0].prepare) break;
    if (candidates[i].precise < candidates[0].precise) continue;
    if (compare_texts(candidates[i].variant, candidates[winner].variant) < 0) winner = i;
  }
  wlmi_measured first = candidates[winner];
  memmove(candidates + 1, candidates, (size_t)winner * sizeof *candidates);
  candidates[0] = first;
}

int wlmi_measured_is_verified(const wlmi_measured *candidate) { return candidate->precise || candidate->online; }

/* ---- one matrix ---- */

/* Among one variant's measurements on a matrix, newest first, the newest with the current version and compiler. */
static const wlmi_measurement_record *head_of(const wlmi_measurement_record **records, int64_t count) {
  const wlmi_measurement_record *newest = records[0], *head = newest;
  for (int64_t i = 1; i < count; i++)
    if (!compare_texts(records[i]->version, newest->version) &&
        wlmi_compiler_same(records[i]->compiler, newest->compiler) &&
        wlmi_compiler_compare(records[i]->compiler, head->compiler) > 0)
      head = records[i];
  return head;
}

static int is_current(const wlmi_measurement_record *record, const wlmi_measurement_record *head) {
  return !record->failed && !compare_texts(record->version, head->version) &&
         wlmi_compiler_same(record->compiler, head->compiler) &&
         !wlmi_compiler_compare(record->compiler, head->compiler);
}

static int is_precise(const wlmi_measurement_record *record) {
  return record->samples >= WLMI_PRECISE_SAMPLES && !wlmi_measurement_is_online(record);
}

enum { NOISY_SCREENING, SCREENING, NOISY_PRECISE, PRECISE };

static int grade_of(const wlmi_measurement_record *record) {
  const int noisy = wlmi_measurement_is_noisy(record);
  return is_precise(record) ? (noisy ? NOISY_PRECISE : PRECISE) : noisy ? NOISY_SCREENING : SCREENING;
}

static int best_grade(const wlmi_measurement_record **records, int64_t count, const wlmi_measurement_record *head) {
  int best = NOISY_SCREENING;
  for (int64_t i = 0; i < count; i++)
    if (is_current(records[i], head) && grade_of(records[i]) > best) best = grade_of(records[i]);
  return best;
}

/* Whether a measurement counts for its variant; `grade` is the best grade of the variant's measurements. */
static int counts(const wlmi_measurement_record *record, const wlmi_measurement_record *head, int grade) {
  if (head->failed) return record == head;
  return is_current(record, head) && grade_of(record) == grade;
}

/* One variant's measurements on a matrix, newest first. `times` has room for three numbers a record. */
static wlmi_measured candidate_of(const wlmi_measurement_record **records, int64_t count, int64_t *times) {
  const wlmi_measurement_record *head = head_of(records, count);
  wlmi_measured candidate = {.variant = head->variant,
                             .version = head->version,
                             .compiler = head->compiler,
                             .driver = head->driver,
                             .reason = head->reason,
                             .count = count,
                             .failed = 1};
  if (head->failed) return candidate;
  const int grade = best_grade(records, count, head);
  candidate.precise = grade >= NOISY_PRECISE;
  int64_t *spreads = times + count, *prepares = spreads + count, used = 0;
  for (int64_t i = 0; i < count; i++) {
    if (!counts(records[i], head, grade)) continue;
    candidate.online = wlmi_measurement_is_online(records[i]) && (!used || candidate.online);
    times[used] = records[i]->time_ps;
    spreads[used] = records[i]->spread_ps;
    prepares[used++] = records[i]->prepare_ps;
  }
  const double middle = (double)median(times, used); /* which sorts them */
  candidate.cost = grade == PRECISE || candidate.online ? middle : (double)times[0];
  candidate.spread = (double)median(spreads, used);
  candidate.prepare = (double)median(prepares, used);
  candidate.count = used;
  candidate.failed = 0;
  return candidate;
}

/* The first record behind `begin` that is of another matrix, problem, N or variant. */
static int64_t end_of_variant(const wlmi_measurement_record **records, int64_t begin, int64_t count) {
  int64_t end = begin + 1;
  while (end < count && !compare_matrices(records[begin], records[end]) &&
         !compare_texts(records[begin]->variant, records[end]->variant) &&
         wlmi_measurement_is_cold(records[begin]) == wlmi_measurement_is_cold(records[end]))
    end++;
  return end;
}

/* The first name in alphabetical order, whatever the order of the records. */
static const char *common_name(const wlmi_measurement_record **records, int64_t count) {
  const char *name = records[0]->matrix_name;
  for (int64_t i = 1; i < count; i++)
    if (compare_texts(records[i]->matrix_name, name) < 0) name = records[i]->matrix_name;
  return name;
}

/* Records with equal fingerprints may have statistics that were rounded differently; the smallest are used for all. */
static const wlm_stats *common_stats(const wlmi_measurement_record **records, int64_t count) {
  const wlm_stats *chosen = &records[0]->stats;
  for (int64_t i = 1; i < count; i++) {
    const wlm_stats *other = &records[i]->stats;
    int order = COMPARE(other->cv, chosen->cv);
    if (order < 0 || (order == 0 && other->top_share < chosen->top_share)) chosen = other;
  }
  return chosen;
}

static void rank_all(const wlmi_measurement_record **records, int64_t count, int64_t *times, wlmi_cases *out) {
  wlmi_measured *next = out->candidates;
  for (int64_t begin = 0, end; begin < count; begin = end) {
    wlmi_case *c = &out->list[out->count++];
    wlmi_measured *first = next;
    for (end = begin; end < count && !compare_matrices(records[begin], records[end]);) {
      int64_t from = end;
      end = end_of_variant(records, from, count);
      *next++ = candidate_of(records + from, end - from, times);
    }
    *c = (wlmi_case){.problem = records[begin]->problem,
                     .n = records[begin]->n,
                     .stats = common_stats(records + begin, end - begin),
                     .matrix = common_name(records + begin, end - begin)};
    c->point = wlmi_point_of(c->stats, c->n);
    rank(c, first, next - first);
  }
}

wlm_status wlmi_cases_make(const wlmi_measurement_record *records, int64_t count, wlmi_cases *cases) {
  const wlmi_measurement_record **sorted = NULL;
  int64_t *times = NULL;
  wlmi_cases out = {0};
  wlm_status status;
  static const char what[] = "ranking measurements";
  WLM_TRY(wlmi_alloc_array(count, sizeof *sorted, what, (void **)&sorted));
  WLM_TRY(wlmi_alloc_array(count, 3 * sizeof *times, what, (void **)&times));
  WLM_TRY(wlmi_alloc_array(count, sizeof *out.list, what, (void **)&out.list));
  WLM_TRY(wlmi_alloc_array(count, sizeof *out.candidates, what, (void **)&out.candidates));
  int64_t hot = 0;
  for (int64_t i = 0; i < count; i++)
    if (!wlmi_measurement_is_cold(&records[i]) && !wlmi_measurement_is_passing(&records[i]))
      sorted[hot++] = &records[i];
  qsort(sorted, (size_t)hot, sizeof *sorted, compare_records);
  rank_all(sorted, hot, times, &out);
  *cases = out;
  out = (wlmi_cases){0};
done:
  wlmi_free(sorted);
  wlmi_free(times);
  wlmi_cases_release(&out);
  if (status != WLM_OK) *cases = (wlmi_cases){0};
  return status;
}

void wlmi_cases_release(wlmi_cases *cases) {
  wlmi_free(cases->list);
  wlmi_free(cases->candidates);
  *cases = (wlmi_cases){0};
}

static int compare_with_case(const void *record, const void *element) {
  const wlmi_measurement_record *r = record;
  const wlmi_case *c = element;
  ORDER_BY(compare_texts(r->problem, c->problem));
  ORDER_BY(COMPARE(r->n, c->n));
  return compare_fingerprints(&r->stats, c->stats);
}

const wlmi_case *wlmi_cases_find(const wlmi_cases *cases, const wlmi_measurement_record *record) {
  if (!cases->count) return NULL;
  return bsearch(record, cases->list, (size_t)cases->count, sizeof *cases->list, compare_with_case);
}

wlm_status wlmi_cases_superseded(const wlmi_measurement_record *records, int64_t count, char *superseded) {
  const wlmi_measurement_record **sorted;
  WLM_CHECK(wlmi_alloc_array(count, sizeof *sorted, "sorting measurements", (void **)&sorted));
  int64_t used = 0;
  for (int64_t i = 0; i < count; i++) {
    superseded[i] = (char)wlmi_measurement_is_passing(&records[i]);
    if (!superseded[i]) sorted[used++] = &records[i];
  }
  qsort(sorted, (size_t)used, sizeof *sorted, compare_records);
  for (int64_t begin = 0, end; begin < used; begin = end) {
    end = end_of_variant(sorted, begin, used);
    const wlmi_measurement_record *head = head_of(sorted + begin, end - begin);
    const int grade = best_grade(sorted + begin, end - begin, head);
    for (int64_t i = begin; i < end; i++) superseded[sorted[i] - records] = !counts(sorted[i], head, grade);
  }
  wlmi_free(sorted);
  return WLM_OK;
}
