/* How a figure is made. First every valid candidate is timed once ("screening"), with as many calls in a sample as
 * its own quickness asks for; what takes twice the best is dropped there. The ten best of those that need no preparing,
 * and the ten best of those that do, must then be right against float64, and are timed again, all interleaved; the
 * quickest are the winners. The times that are reported are neither of these: the winners and all that they are
 * compared with are timed once more, side by side. A winner's time is thus never the least of many looks. */
#include "bench/contest.h"

#include <math.h>
#include <stdlib.h>

#include "common/memory.h"
#include "tuner/compile_ahead.h"

enum { FINALISTS = 10, MAX_CALLS = 4096 };
static const double screening_seconds = 0.3e-3, sample_seconds = 1e-3;
static const double slow = 2, launch_seconds = 10e-6; /* what one call alone may cost besides its work */

enum { PLAIN, PREPARED, KINDS }; /* whether a candidate must be prepared */

struct screened {
  const char *variant;
  double seconds; /* infinite where it failed */
  int kind;
};

static int64_t calls_for(double target, double seconds) {
  double calls = seconds > 0 ? ceil(target / seconds) : MAX_CALLS;
  return calls < 1 ? 1 : calls > MAX_CALLS ? MAX_CALLS : (int64_t)calls;
}

wlm_status wlm_contest_create(const wlm_bench_case *bench, const wlm_matrix *matrix, const wlm_problem *problem,
                              wlm_contest *contest) {
  wlm_status status;
  *contest = (wlm_contest){.context = bench->context, .samples = bench->samples};
  WLM_TRY(wlm_operands_create(bench->context, matrix, problem, bench->seed, &contest->operands));
  WLM_TRY(wlm_verifier_create(&contest->operands, bench->seed, &contest->verifier));
done:
  if (status != WLM_OK) wlm_contest_release(contest);
  return status;
}

void wlm_contest_release(wlm_contest *contest) {
  wlm_verifier_destroy(contest->verifier);
  wlm_operands_release(&contest->operands);
  wlm_text_release(&contest->failures);
  *contest = (wlm_contest){0};
}

void wlm_contest_note(wlm_contest *contest, const wlm_entrant *failed) {
  if (contest->failures.size) wlm_text_puts(&contest->failures, ",");
  wlm_text_json_string(&contest->failures, failed->name);
  wlm_text_puts(&contest->failures, ":");
  wlm_text_json_string(&contest->failures, failed->failure);
}

void wlm_contest_enter(wlm_contest *contest, const char *variant, wlm_entrant *entrant, double *max_rel_err) {
  wlm_entrant_variant(contest->context, &contest->operands, variant, entrant);
  wlm_entrant_verify(entrant, &contest->operands, contest->verifier, max_rel_err);
}

/* ---- screening ---------------------------------------------------------------------------------- */

static int go_on(void *user) {
  (void)user;
  return 0;
}

static wlm_status compile_all(const wlm_contest *contest, const wlm_names *candidates) {
  wlm_compile_job *jobs = wlm_alloc_zero((size_t)candidates->count, sizeof *jobs);
  if (!jobs) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "compilations");
  for (int64_t i = 0; i < candidates->count; i++) jobs[i].variant = candidates->names[i];
  wlm_compile_ahead(contest->context, &contest->operands.spec, jobs, candidates->count, go_on, NULL);
  for (int64_t i = 0; i < candidates->count; i++) wlm_free(jobs[i].detail); /* making the plan tells it again */
  wlm_free(jobs);
  return WLM_OK;
}

static wlm_status screen(wlm_device *device, const wlm_entrant *entrant, double best, double *seconds) {
  wlm_status status = wlm_entrant_sample(device, entrant, 1, seconds);
  if (status != WLM_OK || *seconds > slow * best + launch_seconds) return status;
  int64_t calls = calls_for(screening_seconds, *seconds);
  return calls > 1 ? wlm_entrant_sample(device, entrant, calls, seconds) : WLM_OK;
}

static int quicker(const void *left, const void *right) {
  const struct screened *a = left, *b = right;
  return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

/* What a candidate is held against: of those without preparing the best of their own, otherwise of all. */
static double best_for(const double best[KINDS], int kind) {
  return kind == PLAIN ? best[PLAIN] : fmin(best[PLAIN], best[PREPARED]);
}

/* The quickest first. */
static wlm_status screen_all(wlm_contest *contest, const wlm_names *candidates, struct screened *screened,
                             double best[KINDS]) {
  best[PLAIN] = best[PREPARED] = INFINITY;
  for (int64_t i = 0; i < candidates->count; i++) {
    wlm_entrant entrant;
    double seconds = INFINITY;
    wlm_entrant_variant(contest->context, &contest->operands, candidates->names[i], &entrant);
    const int kind = entrant.prepared ? PREPARED : PLAIN;
    if (!entrant.failure && screen(contest->operands.device, &entrant, best_for(best, kind), &seconds) != WLM_OK)
      wlm_entrant_fail(&entrant, wlm_error_detail());
    if (entrant.failure) {
      wlm_contest_note(contest, &entrant);
      seconds = INFINITY;
    }
    best[kind] = fmin(best[kind], seconds);
    screened[i] = (struct screened){candidates->names[i], seconds, kind};
    wlm_entrant_release(&entrant);
  }
  qsort(screened, (size_t)candidates->count, sizeof *screened, quicker);
  if (isfinite(best[PLAIN])) return WLM_OK;
  return wlm_fail(WLM_ERR_DEVICE, "no candidate runs unprepared: %s",
                  contest->failures.size ? contest->failures.data : "there is none");
}

/* ---- the winners --------------------------------------------------------------------------------- */

struct finals {
  wlm_entrant entrants[KINDS * FINALISTS];
  double errors[KINDS * FINALISTS];
  int count;
};

static void enter_finals(wlm_contest *contest, const struct screened *screened, const double best[KINDS],
                         struct finals *finals) {
  int entered[KINDS] = {0};
  for (int64_t i = 0; i < contest->candidates; i++) {
    const struct screened *s = &screened[i];
    if (entered[s->kind] == FINALISTS || !(s->seconds <= slow * best_for(best, s->kind))) continue;
    entered[s->kind]++;
    wlm_contest_enter(contest, s->variant, &finals->entrants[finals->count], &finals->errors[finals->count]);
    finals->count++;
  }
}

/* The quickest of those without preparing, or of all; -1 where there is none. */
static int quickest_of(const struct finals *finals, int kind) {
  int best = -1;
  for (int i = 0; i < finals->count; i++) {
    const wlm_entrant *entrant = &finals->entrants[i];
    if (entrant->failure || (kind == PLAIN && entrant->prepared)) continue;
    if (best < 0 || entrant->seconds < finals->entrants[best].seconds) best = i;
  }
  return best;
}

static void take(struct finals *finals, int i, wlm_entrant *winner, double *max_rel_err) {
  *winner = finals->entrants[i];
  *max_rel_err = finals->errors[i];
  finals->entrants[i] = (wlm_entrant){0};
}

static wlm_status play_finals(wlm_contest *contest, const struct screened *screened, const double best[KINDS],
                              wlm_winners *winners) {
  struct finals finals = {.count = 0};
  wlm_status status;
  enter_finals(contest, screened, best, &finals);
  int64_t calls = calls_for(sample_seconds, screened[0].seconds);
  WLM_TRY(wlm_entrants_time(contest->operands.device, finals.entrants, finals.count, calls, contest->samples));
  for (int i = 0; i < finals.count; i++)
    if (finals.entrants[i].failure) wlm_contest_note(contest, &finals.entrants[i]);
  const int plain = quickest_of(&finals, PLAIN), prepared = quickest_of(&finals, PREPARED);
  if (plain < 0) WLM_TRY(wlm_fail(WLM_ERR_MISMATCH, "none of the quickest is right: %s", contest->failures.data));
  take(&finals, plain, &winners->plain, &winners->plain_error);
  if (prepared != plain) take(&finals, prepared, &winners->prepared, &winners->prepared_error);
done:
  for (int i = 0; i < finals.count; i++) wlm_entrant_release(&finals.entrants[i]);
  return status;
}

wlm_status wlm_contest_winners(wlm_contest *contest, wlm_winners *winners) {
  wlm_names candidates = {0};
  struct screened *screened = NULL;
  double best[KINDS];
  wlm_status status;
  *winners = (wlm_winners){0};
  WLM_TRY(wlm_generator_candidates(wlm_context_generator(contest->context), &contest->operands.spec,
                                   &contest->operands.device->info.limits, &candidates));
  contest->candidates = candidates.count;
  WLM_TRY(wlm_alloc_array(candidates.count, sizeof *screened, "candidates", (void **)&screened));
  WLM_TRY(compile_all(contest, &candidates));
  WLM_TRY(screen_all(contest, &candidates, screened, best));
  WLM_TRY(play_finals(contest, screened, best, winners));
done:
  wlm_free(screened);
  wlm_names_release(&candidates);
  return status;
}

void wlm_winners_release(wlm_winners *winners) {
  wlm_entrant_release(&winners->plain);
  wlm_entrant_release(&winners->prepared);
}

wlm_status wlm_contest_winner(wlm_contest *contest, wlm_entrant *winner, double *max_rel_err) {
  wlm_winners winners;
  wlm_status status = wlm_contest_winners(contest, &winners);
  *winner = winners.plain;
  *max_rel_err = winners.plain_error;
  wlm_entrant_release(&winners.prepared);
  return status;
}

/* ---- rivals and the last round ------------------------------------------------------------------- */

void wlm_contest_check(const wlm_contest *contest, wlm_entrant *rivals, int count) {
  double error;
  for (int i = 0; i < count; i++) wlm_entrant_verify(&rivals[i], &contest->operands, contest->verifier, &error);
}

/* First a call alone, then some, so that what a launch costs does not pass for the work of short calls. */
wlm_status wlm_contest_time(wlm_device *device, wlm_entrant *entrants, int count, int samples, int64_t *calls) {
  const double targets[] = {screening_seconds, sample_seconds};
  *calls = 1;
  for (int step = 0; step < 2; step++) {
    double quickest = INFINITY;
    wlm_status status = wlm_entrants_time(device, entrants, count, *calls, 1);
    if (status != WLM_OK) return status;
    for (int i = 0; i < count; i++)
      if (!entrants[i].failure) quickest = fmin(quickest, entrants[i].seconds);
    *calls = calls_for(targets[step], quickest);
  }
  return wlm_entrants_time(device, entrants, count, *calls, samples);
}
