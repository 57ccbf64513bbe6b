/* How a figure is made. First every valid candidate is timed once ("screening"), with as many calls in a sample as
 * its own quickness asks for; what takes twice the best is dropped there. The ten best must then be right against
 * float64, and are timed again, interleaved; the quickest of them is the winner. The times that are reported are
 * neither of these: the winner and all that it is compared with are timed once more, side by side. A winner's time is
 * thus never the least of many looks. */
#include "bench/contest.h"

#include <math.h>
#include <stdlib.h>

#include "common/memory.h"
#include "tuner/compile_ahead.h"

enum { FINALISTS = 10, MAX_CALLS = 4096 };
static const double screening_seconds = 0.3e-3, sample_seconds = 1e-3;
static const double slow = 2, launch_seconds = 10e-6; /* what one call alone may cost besides its work */

struct screened {
  const char *variant;
  double seconds; /* infinite where it failed */
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
  wlm_operands *operands = &contest->operands;
  wlm_entrant_variant(contest->context, operands, variant, entrant);
  if (entrant->failure) return;
  if (wlm_operands_bind(operands, entrant->plan) != WLM_OK ||
      wlm_verify(contest->verifier, entrant->plan, max_rel_err) != WLM_OK)
    wlm_entrant_fail(entrant, wlm_error_detail());
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

/* The quickest first. */
static wlm_status screen_all(wlm_contest *contest, const wlm_names *candidates, struct screened *screened) {
  double best = INFINITY;
  for (int64_t i = 0; i < candidates->count; i++) {
    wlm_entrant entrant;
    double seconds = INFINITY;
    wlm_entrant_variant(contest->context, &contest->operands, candidates->names[i], &entrant);
    if (!entrant.failure && screen(contest->operands.device, &entrant, best, &seconds) != WLM_OK)
      wlm_entrant_fail(&entrant, wlm_error_detail());
    if (entrant.failure) {
      wlm_contest_note(contest, &entrant);
      seconds = INFINITY;
    }
    best = fmin(best, seconds);
    screened[i] = (struct screened){candidates->names[i], seconds};
    wlm_entrant_release(&entrant);
  }
  qsort(screened, (size_t)candidates->count, sizeof *screened, quicker);
  if (isfinite(best)) return WLM_OK;
  return wlm_fail(WLM_ERR_DEVICE, "no candidate runs: %s",
                  candidates->count ? contest->failures.data : "there is none");
}

/* ---- the winner ---------------------------------------------------------------------------------- */

static wlm_status play_finals(wlm_contest *contest, const struct screened *screened, wlm_entrant *winner,
                              double *max_rel_err) {
  wlm_entrant finalists[FINALISTS] = {0};
  double errors[FINALISTS] = {0};
  int count = 0, best = -1;
  wlm_status status;
  for (int64_t i = 0; i < contest->candidates && count < FINALISTS; i++) {
    if (!(screened[i].seconds <= slow * screened[0].seconds)) break;
    wlm_contest_enter(contest, screened[i].variant, &finalists[count], &errors[count]);
    count++;
  }
  int64_t calls = calls_for(sample_seconds, screened[0].seconds);
  WLM_TRY(wlm_entrants_time(contest->operands.device, finalists, count, calls, contest->samples));
  for (int i = 0; i < count; i++) {
    if (finalists[i].failure)
      wlm_contest_note(contest, &finalists[i]);
    else if (best < 0 || finalists[i].seconds < finalists[best].seconds)
      best = i;
  }
  if (best < 0) WLM_TRY(wlm_fail(WLM_ERR_MISMATCH, "none of the quickest is right: %s", contest->failures.data));
  *max_rel_err = errors[best];
  *winner = finalists[best];
  finalists[best] = (wlm_entrant){0};
done:
  for (int i = 0; i < count; i++) wlm_entrant_release(&finalists[i]);
  return status;
}

wlm_status wlm_contest_winner(wlm_contest *contest, wlm_entrant *winner, double *max_rel_err) {
  wlm_names candidates = {0};
  struct screened *screened = NULL;
  wlm_status status;
  WLM_TRY(wlm_generator_candidates(wlm_context_generator(contest->context), &contest->operands.spec,
                                   &contest->operands.device->info.limits, &candidates));
  contest->candidates = candidates.count;
  WLM_TRY(wlm_alloc_array(candidates.count, sizeof *screened, "candidates", (void **)&screened));
  WLM_TRY(compile_all(contest, &candidates));
  WLM_TRY(screen_all(contest, &candidates, screened));
  WLM_TRY(play_finals(contest, screened, winner, max_rel_err));
done:
  wlm_free(screened);
  wlm_names_release(&candidates);
  return status;
}

/* ---- rivals and the last round ------------------------------------------------------------------- */

/* One plain run of an entrant into a C full of large numbers; C is then on the host. */
static wlm_status run_once(const wlm_operands *operands, const wlm_entrant *entrant, float *c, size_t size) {
  wlm_device *device = operands->device;
  wlm_status status;
  WLM_TRY(device->ops->fill(device, operands->c.memory, 0x7e, size));
  WLM_TRY(entrant->enqueue(entrant->user, NULL));
  WLM_TRY(device->ops->synchronize(device, NULL));
  WLM_TRY(device->ops->copy_out(device, c, operands->c.memory, size));
done:
  return status;
}

wlm_status wlm_contest_check(const wlm_contest *contest, const wlm_entrant *verified, wlm_entrant *rivals, int count) {
  const wlm_operands *operands = &contest->operands;
  int64_t elements = operands->a.rows * operands->spec.problem.n;
  size_t size = (size_t)elements * sizeof(float);
  float *ours = NULL, *theirs = NULL;
  wlm_status status;
  WLM_TRY(wlm_alloc_array(elements, sizeof *ours, "C", (void **)&ours));
  WLM_TRY(wlm_alloc_array(elements, sizeof *theirs, "C", (void **)&theirs));
  WLM_TRY(run_once(operands, verified, ours, size));
  for (int i = 0; i < count; i++) {
    double difference = 0, norm = 0;
    if (rivals[i].failure) continue;
    if (run_once(operands, &rivals[i], theirs, size) != WLM_OK) {
      wlm_entrant_fail(&rivals[i], wlm_error_detail());
      continue;
    }
    for (int64_t j = 0; j < elements; j++) {
      difference += ((double)theirs[j] - ours[j]) * ((double)theirs[j] - ours[j]);
      norm += (double)ours[j] * ours[j];
    }
    if (!(difference <= 1e-10 * norm)) wlm_entrant_fail(&rivals[i], "its result differs from the verified one");
  }
done:
  wlm_free(ours);
  wlm_free(theirs);
  return status;
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
