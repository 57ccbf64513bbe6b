/* Finds the fastest of many candidates: screening of all, then successive halving of the best.
 *
 * Screening. Each candidate runs once for its result, which is compared in a few rows; the host's clock times that
 * call. A candidate is dropped if it takes `abandon` times the best of its kind, beyond what loading may cost, and does
 * so again in further calls, because the machine may have been busy. What a launch costs is taken from the candidates
 * that were not dropped: on some hosts it is twenty times a short kernel's work. It is not counted in the time of a
 * dropped one. Otherwise a sample decides, replayed from one captured graph: as many calls as the best so far fits into
 * `screening_seconds`, the same number for all candidates that are compared. A sample clearly above the best, or far
 * off what the model predicts, is taken again. A call so long that launching it costs nothing needs no graph: its
 * second call is the sample. Disturbances only add time, so the least time of a candidate counts; the spread of its
 * times, which shows noise, is stored too.
 *
 * Halving. A screening sample errs by some percent, so the best candidates are timed again, interleaved sample by
 * sample, so that a drift of the clock affects all alike. Each round keeps fewer of them and times them longer. Before
 * the last round each result is compared with float64 as a whole, and a wrong one is replaced by the next candidate.
 * After it the results are checked again: a kernel may be wrong in some calls only.
 * The finalists' times come from the last round only, which avoids selection bias. On a busy host this round is played
 * up to three times, and the calmest one counts.
 *
 * Candidates that must be prepared are compared with the best of all, the others with the best of those that need no
 * preparation: a caller who cannot prepare needs their winner, however slow it is beside prepared ones. */
#include "tuner/search.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "tuner/timing.h"

static const double launch_seconds = 20e-6;   /* the least that a single call may cost besides its work */
static const double load_seconds = 2e-3;      /* the most that the first call costs besides */
static const double long_seconds = 1e-3;      /* a call this long hides the cost of its launch */
static const double patience_seconds = 20e-3; /* time for further runs of a slow candidate */
static const double far_off = 4;              /* multiple of the predicted time */
static const double clearly_slower = 1.3;     /* times the best */
static const double calm = 0.1;               /* at most this share of a round is lost to other programs */
enum { LEAST_FINAL_SAMPLES = 3, SHORT_CALLS = 3, SCREENING_SAMPLES = 2, MOST_REPEATS = 2 };

typedef struct search {
  const wlmi_search_field *field;
  const wlmi_search_rules *rules;
  double best[WLMI_KINDS];
  double launch; /* the most that a single call cost besides its work, among those that have a sample */
  int warm;      /* whether there is a sample */
} search;

static double best_for(const double best[WLMI_KINDS], int kind) {
  return kind == WLMI_PLAIN ? best[WLMI_PLAIN] : fmin(best[WLMI_PLAIN], best[WLMI_PREPARED]);
}

/* ---- screening ---------------------------------------------------------------------------------------- */

/* The times of one candidate, all of single calls or all of samples. */
typedef struct runs {
  double least, most;
  int count;
} runs;

static void add_run(runs *r, double seconds) {
  r->least = r->count ? fmin(r->least, seconds) : seconds;
  r->most = r->count ? fmax(r->most, seconds) : seconds;
  r->count++;
}

static void keep_runs(const runs *r, wlmi_method *method) {
  method->seconds = r->least;
  method->spread = r->least > 0 ? (r->most - r->least) / r->least : 0;
}

static int is_unexpected(double seconds, double expected) { return expected > 0 && seconds > far_off * expected; }

/* Calls it again while calls take longer than the limit and patience_seconds are not used up. */
static wlm_status call_again(search *s, wlmi_method *method, double limit, double first_call) {
  double spent = first_call;
  runs calls = {0};
  for (int k = 0; k < SHORT_CALLS && (!k || (calls.least > limit && spent < patience_seconds)); k++) {
    double seconds;
    WLM_CHECK(wlmi_method_call(s->field->device, method, s->field->clock, &seconds));
    add_run(&calls, seconds);
    spent += seconds;
  }
  keep_runs(&calls, method);
  if (first_call < method->seconds) method->seconds = first_call;
  return WLM_OK;
}

static wlm_status take_samples(search *s, wlmi_method *method, double best, double expected) {
  runs samples = {0};
  for (int k = 0;
       k < SCREENING_SAMPLES && (!k || samples.least > clearly_slower * best || is_unexpected(samples.least, expected));
       k++) {
    double seconds;
    WLM_CHECK(wlmi_method_sample(s->field->device, method, method->calls, !s->warm, &seconds));
    add_run(&samples, seconds);
    s->warm = 1;
  }
  keep_runs(&samples, method);
  return WLM_OK;
}

static wlm_status screen(search *s, wlmi_method *method, double best, double expected, double first_call) {
  const double limit = s->warm ? s->rules->abandon * best + fmax(s->launch, launch_seconds) : INFINITY;
  method->samples = 1;
  method->calls = 1;
  method->seconds = first_call;
  method->spread = 0;
  if (first_call > s->rules->abandon * best + load_seconds && first_call > patience_seconds &&
      !is_unexpected(first_call, expected))
    return WLM_OK;
  wlm_status status = call_again(s, method, limit, first_call);
  const double single = method->seconds;
  if (status == WLM_OK && single > limit) method->seconds -= s->launch; /* so that the model learns the work */
  if (status != WLM_OK || single > limit || single > long_seconds) return status;
  method->calls = wlmi_calls_for(s->rules->screening_seconds, fmin(best, single));
  status = take_samples(s, method, best, expected);
  if (status == WLM_OK) s->launch = fmax(s->launch, single - method->seconds);
  return status;
}

static void set_up(const wlmi_search_field *field, int64_t i, wlmi_method *method) {
  field->enter(field->user, i, method);
  method->candidate = i;
}

static wlm_status screen_one(search *s, int64_t i) {
  const wlmi_search_field *field = s->field;
  wlmi_timed *candidate = &field->candidates[i];
  wlmi_method method;
  double first_call = 0;
  set_up(field, i, &method);
  candidate->kind = method.prepared ? WLMI_PREPARED : WLMI_PLAIN;
  if (!method.failure) field->glance(field->user, &method, &first_call);
  if (!method.failure) {
    wlm_status status = screen(s, &method, best_for(s->best, candidate->kind), candidate->expected, first_call);
    if (status != WLM_OK) wlmi_method_give_up(&method, status);
  }
  candidate->seconds = method.failure ? INFINITY : fmax(method.seconds, 1e-12);
  s->best[candidate->kind] = fmin(s->best[candidate->kind], candidate->seconds);
  wlm_status status = field->report(field->user, &method);
  wlmi_method_release(&method);
  return status;
}

static wlm_status screen_all(search *s) {
  const wlmi_search_field *field = s->field;
  for (int64_t i = 0, begun = 0; i < field->count; i++) {
    if (field->candidates[i].seconds > 0) continue;
    if (begun && field->out_of_time && field->out_of_time(field->user)) break;
    begun = 1;
    WLM_CHECK(screen_one(s, i));
  }
  return WLM_OK;
}

/* ---- halving ------------------------------------------------------------------------------------------ */

typedef struct place {
  double seconds;
  int64_t i;
} place;

static int by_seconds(const void *left, const void *right) {
  const place *a = left, *b = right;
  if (a->seconds != b->seconds) return a->seconds < b->seconds ? -1 : 1;
  return (a->i > b->i) - (a->i < b->i);
}

/* The candidates with a time, the fastest first. */
static wlm_status sort_screened(const wlmi_search_field *field, place **places, int64_t *count) {
  *count = 0;
  WLM_CHECK(wlmi_alloc_array(field->count, sizeof **places, "candidates", (void **)places));
  for (int64_t i = 0; i < field->count; i++)
    if (field->candidates[i].seconds > 0 && isfinite(field->candidates[i].seconds))
      (*places)[(*count)++] = (place){field->candidates[i].seconds, i};
  qsort(*places, (size_t)*count, sizeof **places, by_seconds);
  return WLM_OK;
}

static int finalists_by_seconds(const void *left, const void *right) {
  const wlmi_method *a = left, *b = right;
  if (!a->failure != !b->failure) return a->failure ? 1 : -1;
  if (a->seconds != b->seconds) return a->seconds < b->seconds ? -1 : 1;
  return (a->candidate > b->candidate) - (a->candidate < b->candidate);
}

static int kind_of(const wlmi_method *method) { return method->prepared ? WLMI_PREPARED : WLMI_PLAIN; }

static void find_best(const wlmi_finals *finals, double best[WLMI_KINDS]) {
  best[WLMI_PLAIN] = best[WLMI_PREPARED] = INFINITY;
  for (int i = 0; i < finals->count; i++)
    if (!finals->list[i].failure)
      best[kind_of(&finals->list[i])] = fmin(best[kind_of(&finals->list[i])], finals->list[i].seconds);
}

/* Whether a candidate takes part in a round in which `better` ones of its kind do. A screening time that is too low by
 * chance must not exclude all others. */
static int has_place(const wlmi_search_round *round, int better, double seconds, double best) {
  return better < round->least || (better < round->most && seconds <= round->within * best);
}

static void enter(const wlmi_search_field *field, const place *place, wlmi_method *finalist) {
  set_up(field, place->i, finalist);
  finalist->seconds = place->seconds;
}

/* Sets up the best screened candidates again. The first few that fail now are kept to be reported; the others keep
 * their screening time. */
static wlm_status enter_first(search *s, const wlmi_search_round *round, wlmi_finals *finals) {
  const wlmi_search_field *field = s->field;
  int entered[WLMI_KINDS] = {0}, failed = 0;
  place *places;
  int64_t count;
  WLM_CHECK(sort_screened(field, &places, &count));
  for (int k = 0; k < WLMI_KINDS; k++) s->best[k] = INFINITY;
  for (int64_t p = count - 1; p >= 0; p--) s->best[field->candidates[places[p].i].kind] = places[p].seconds;
  for (int64_t p = 0; p < count; p++) {
    const int kind = field->candidates[places[p].i].kind;
    if (!has_place(round, entered[kind], places[p].seconds, best_for(s->best, kind))) continue;
    wlmi_method finalist;
    enter(field, &places[p], &finalist);
    entered[kind] += !finalist.failure;
    failed += finalist.failure != NULL;
    if (finalist.failure && failed > WLMI_SEARCH_FAILURES)
      wlmi_method_release(&finalist);
    else
      finals->list[finals->count++] = finalist;
  }
  wlmi_free(places);
  return WLM_OK;
}

/* Keeps the best of the sorted list. Failed ones move to its end, to be reported; the others are released. */
static void keep_best(const search *s, const wlmi_search_round *round, int last, wlmi_finals *finals) {
  const wlmi_search_field *field = s->field;
  double best[WLMI_KINDS];
  int kept[WLMI_KINDS] = {0}, count = 0;
  find_best(finals, best);
  for (int i = 0; i < finals->count; i++) {
    wlmi_method *finalist = &finals->list[i];
    const int kind = kind_of(finalist);
    const int stays = finalist->failure || has_place(round, kept[kind], finalist->seconds, best_for(best, kind));
    if (stays && last && !finalist->failure) field->verify(field->user, finalist);
    kept[kind] += stays && !finalist->failure;
    if (stays)
      finals->list[count++] = *finalist;
    else
      wlmi_method_release(finalist);
  }
  finals->count = count;
}

/* The number of samples for which the round has time; each sample includes a warm-up replay. */
static int samples_for(const search *s, const wlmi_search_round *round, int last, const wlmi_finals *finals,
                       int64_t calls) {
  double each = 0;
  for (int i = 0; i < finals->count; i++)
    if (!finals->list[i].failure) each += 2 * (double)calls * finals->list[i].seconds;
  const int least = last && round->samples > LEAST_FINAL_SAMPLES ? LEAST_FINAL_SAMPLES : last ? round->samples : 1;
  const double fit = each > 0 ? s->rules->round_seconds / each : round->samples;
  return fit < least ? least : fit > round->samples ? round->samples : (int)fit;
}

static wlm_status play(const search *s, const wlmi_search_round *round, int last, wlmi_finals *finals) {
  double best[WLMI_KINDS];
  find_best(finals, best);
  const double quickest = fmin(best[WLMI_PLAIN], best[WLMI_PREPARED]);
  if (!isfinite(quickest)) return WLM_OK;
  const int64_t calls = wlmi_calls_for(round->sample_seconds, quickest);
  const int samples = samples_for(s, round, last, finals, calls);
  const wlm_status status = wlmi_methods_time(s->field->device, finals->list, finals->count, calls, samples);
  qsort(finals->list, (size_t)finals->count, sizeof *finals->list, finalists_by_seconds);
  return status;
}

static int has_passed(const wlmi_finals *finals, int kind) {
  for (int i = 0; i < finals->count; i++)
    if (!finals->list[i].failure && kind_of(&finals->list[i]) == kind) return 1;
  return 0;
}

static int was_tried(const wlmi_finals *finals, int64_t i) {
  for (int k = 0; k < finals->count; k++)
    if (finals->list[k].candidate == i) return 1;
  return 0;
}

/* If no finalist of a kind passed, adds the next candidate that does, the fastest first. Failed ones are kept too. */
static wlm_status add_replacements(const search *s, wlmi_finals *finals, int *added) {
  const wlmi_search_field *field = s->field;
  place *places;
  int64_t count;
  wlm_status status = sort_screened(field, &places, &count);
  *added = 0;
  for (int64_t p = 0; status == WLM_OK && p < count && finals->count < WLMI_SEARCH_FINALISTS; p++) {
    if (has_passed(finals, field->candidates[places[p].i].kind) || was_tried(finals, places[p].i)) continue;
    wlmi_method *finalist = &finals->list[finals->count++];
    enter(field, &places[p], finalist);
    if (!finalist->failure) field->verify(field->user, finalist);
    *added += !finalist->failure;
  }
  wlmi_free(places);
  return status;
}

/* Gives the methods the times of another round of the same finalists. */
static void take_times(wlmi_finals *finals, const wlmi_finals *from) {
  for (int i = 0; i < finals->count; i++)
    for (int k = 0; k < from->count; k++) {
      wlmi_method *to = &finals->list[i];
      const wlmi_method *method = &from->list[k];
      if (method->candidate != to->candidate || to->failure) continue;
      to->seconds = method->seconds;
      to->spread = fmax(method->spread, finals->lost);
      to->samples = method->samples;
      to->calls = method->calls;
    }
  qsort(finals->list, (size_t)finals->count, sizeof *finals->list, finalists_by_seconds);
}

/* Plays the last round again while other programs disturb it. Choosing a whole round by what it lost, and not the least
 * time of each candidate, favours none. */
static wlm_status play_calmly(const search *s, const wlmi_search_round *round, wlmi_finals *finals) {
  const wlmi_search_field *field = s->field;
  wlmi_finals calmest = {.lost = INFINITY};
  wlmi_stretch stretch;
  for (finals->repeats = 0;; finals->repeats++) {
    wlmi_stretch_begin(field->device, field->clock, &stretch);
    WLM_CHECK(play(s, round, 1, finals));
    finals->lost = wlmi_stretch_lost(&stretch);
    if (finals->lost < calmest.lost) calmest = *finals;
    if (calmest.lost <= calm || finals->repeats == MOST_REPEATS) break;
    if (field->out_of_time && field->out_of_time(field->user)) break;
  }
  finals->lost = calmest.lost > calm ? calmest.lost : 0;
  take_times(finals, &calmest);
  return WLM_OK;
}

/* Runs the last round until one of each kind passes or all were tried. */
static wlm_status play_last(const search *s, const wlmi_search_round *round, wlmi_finals *finals) {
  const wlmi_search_field *field = s->field;
  int added = 0;
  keep_best(s, round, 1, finals);
  WLM_CHECK(add_replacements(s, finals, &added));
  do {
    WLM_CHECK(play_calmly(s, round, finals));
    if (!field->check_again) break;
    field->check_again(field->user, finals);
    qsort(finals->list, (size_t)finals->count, sizeof *finals->list, finalists_by_seconds);
    WLM_CHECK(add_replacements(s, finals, &added));
  } while (added);
  return WLM_OK;
}

wlm_status wlmi_search(const wlmi_search_field *field, const wlmi_search_rules *rules, wlmi_finals *finals) {
  search s = {.field = field, .rules = rules, .best = {INFINITY, INFINITY}};
  if (finals) finals->count = 0;
  for (int64_t i = 0; i < field->count; i++)
    if (field->candidates[i].seconds > 0)
      s.best[field->candidates[i].kind] = fmin(s.best[field->candidates[i].kind], field->candidates[i].seconds);
  WLM_CHECK(screen_all(&s));
  if (!finals) return WLM_OK;
  const int last = rules->round_count - 1;
  const int first = field->in_a_hurry && field->in_a_hurry(field->user) ? last : 0;
  WLM_CHECK(enter_first(&s, &rules->rounds[first], finals));
  for (int r = first; r < last; r++) {
    keep_best(&s, &rules->rounds[r], 0, finals);
    WLM_CHECK(play(&s, &rules->rounds[r], 0, finals));
  }
  return play_last(&s, &rules->rounds[last], finals);
}

void wlmi_finals_release(wlmi_finals *finals) {
  for (int i = 0; i < finals->count; i++) wlmi_method_release(&finals->list[i]);
  finals->count = 0;
}

wlmi_method *wlmi_finals_best(wlmi_finals *finals, int kind) {
  for (int i = 0; i < finals->count; i++)
    if (!finals->list[i].failure && (kind != WLMI_PLAIN || !finals->list[i].prepared)) return &finals->list[i];
  return NULL;
}
