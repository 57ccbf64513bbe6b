/* How a benchmark finds and times kernels. Every valid candidate is screened. The ten best unprepared and the ten best
 * prepared candidates are compared with float64 and timed again, interleaved; the fastest ones win (tuner/search.c).
 * Reported times are none of these: the winners and all baselines are timed once more together, which avoids selection
 * bias. */
#include "bench/contest.h"

#include <math.h>

#include "common/json.h"
#include "common/memory.h"
#include "tuner/compile_ahead.h"
#include "tuner/timing.h"

enum { FINALISTS = 10 }; /* the default */
static const double screening_seconds = 0.3e-3, sample_seconds = 1e-3;
static const double near = 2; /* candidates within this multiple of the best screening time are timed again */

static wlm_status create(const wlmi_contest *first, const wlm_matrix *matrix, const wlm_problem *problem,
                         wlmi_contest *contest) {
  wlm_status status;
  WLM_TRY(first ? wlmi_operands_create_beside(&first->operands, contest->context, matrix, problem, NULL, contest->seed,
                                              &contest->operands)
                : wlmi_operands_create(contest->context, matrix, problem, NULL, contest->seed, &contest->operands));
  WLM_TRY(wlmi_verifier_create(&contest->operands, contest->seed, &contest->verifier));
done:
  if (status != WLM_OK) wlmi_contest_release(contest);
  return status;
}

wlm_status wlmi_contest_create(const wlmi_bench_case *bench, const wlm_matrix *matrix, const wlm_problem *problem,
                               wlmi_contest *contest) {
  *contest = (wlmi_contest){.context = bench->context, .samples = bench->samples, .seed = bench->seed};
  return create(NULL, matrix, problem, contest);
}

wlm_status wlmi_contest_create_beside(const wlmi_contest *first, const wlm_matrix *matrix, const wlm_problem *problem,
                                      wlmi_contest *contest) {
  *contest = (wlmi_contest){.context = first->context, .samples = first->samples, .seed = first->seed};
  return create(first, matrix, problem, contest);
}

void wlmi_contest_release(wlmi_contest *contest) {
  wlmi_verifier_destroy(contest->verifier);
  wlmi_operands_release(&contest->operands);
  wlmi_text_release(&contest->failures);
  *contest = (wlmi_contest){0};
}

void wlmi_contest_note(wlmi_contest *contest, const wlmi_entrant *failed) {
  wlmi_json_string(&contest->failures, failed->name, failed->failure);
}

void wlmi_contest_put_failures(const wlmi_contest *contest, const char *key, wlmi_text *line) {
  wlmi_json_open(line, key, '{');
  wlmi_json_members(line, contest->failures.data);
  wlmi_json_close(line, '}');
}

void wlmi_contest_enter(wlmi_contest *contest, const char *variant, wlmi_entrant *entrant) {
  wlmi_entrant_variant(contest->context, &contest->operands, variant, entrant);
  wlmi_entrant_verify(entrant, &contest->operands, contest->verifier);
}

/* ---- the winners --------------------------------------------------------------------------------- */

static wlm_status compile_all(const wlmi_contest *contest, const wlmi_candidate_list *list) {
  wlmi_compile_job *jobs = wlmi_alloc_zero((size_t)list->count, sizeof *jobs);
  if (!jobs) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "compilations");
  for (int64_t i = 0; i < list->count; i++)
    jobs[i] = (wlmi_compile_job){.variant = list->candidates[i].variant, .spec = &contest->operands.spec};
  wlm_status status = wlmi_compile_all(contest->context, jobs, list->count);
  wlmi_free(jobs);
  return status;
}

struct candidates {
  wlmi_contest *contest;
  const wlmi_candidate_list *list;
};

static void enter(void *user, int64_t i, wlmi_entrant *entrant) {
  const struct candidates *c = user;
  wlmi_entrant_variant(c->contest->context, &c->contest->operands, c->list->candidates[i].variant, entrant);
}

static void glance(void *user, wlmi_entrant *entrant, double *seconds) {
  wlmi_contest *contest = ((struct candidates *)user)->contest;
  wlmi_entrant_glance(entrant, &contest->operands, contest->verifier, seconds);
}

static void verify(void *user, wlmi_entrant *entrant) {
  wlmi_contest *contest = ((struct candidates *)user)->contest;
  wlmi_entrant_verify(entrant, &contest->operands, contest->verifier);
}

static wlm_status note(void *user, int64_t i, const wlmi_entrant *entrant) {
  (void)i;
  if (entrant->failure) wlmi_contest_note(((struct candidates *)user)->contest, entrant);
  return WLM_OK;
}

wlm_status wlmi_contest_search(wlmi_contest *contest, const wlmi_candidate_list *list, int finalists,
                               wlmi_screened *screened, wlmi_finals *finals) {
  struct candidates c = {contest, list};
  const wlmi_search_rules rules = {
      .abandon = near,
      .screening_seconds = screening_seconds,
      .round_seconds = INFINITY,
      .round_count = 1,
      .rounds = {{1, finalists, contest->samples, near, sample_seconds}},
  };
  const wlmi_search_field field = {.device = contest->operands.device,
                                   .count = list->count,
                                   .screened = screened,
                                   .user = &c,
                                   .clock = wlmi_seconds,
                                   .enter = enter,
                                   .glance = glance,
                                   .verify = verify,
                                   .tell = note};
  wlm_status status;
  finals->count = 0;
  contest->candidates = list->count;
  WLM_TRY(compile_all(contest, list));
  status = wlmi_search(&field, &rules, finals);
  for (int i = 0; i < finals->count; i++)
    if (finals->list[i].entrant.failure) wlmi_contest_note(contest, &finals->list[i].entrant);
done:
  return status;
}

static void take(wlmi_finalist *finalist, wlmi_entrant *winner) {
  *winner = finalist->entrant;
  finalist->entrant = (wlmi_entrant){0};
}

wlm_status wlmi_contest_winners(wlmi_contest *contest, wlmi_winners *winners) {
  const wlmi_candidate_list *list = NULL;
  wlmi_screened *screened = NULL;
  wlmi_finals finals = {.count = 0};
  wlm_status status;
  *winners = (wlmi_winners){0};
  WLM_TRY(wlmi_generator_describe(wlmi_context_generator(contest->context), &contest->operands.spec,
                                  &contest->operands.device->info.limits, &list));
  screened = wlmi_alloc_zero((size_t)list->count, sizeof *screened);
  if (!screened) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "candidates"));
  WLM_TRY(wlmi_contest_search(contest, list, FINALISTS, screened, &finals));
  wlmi_finalist *plain = wlmi_finals_best(&finals, WLM_PLAIN), *prepared = wlmi_finals_best(&finals, WLM_PREPARED);
  if (!plain)
    WLM_TRY(wlmi_fail(WLM_ERR_MISMATCH, "no candidate that needs no preparing is right: %s",
                      contest->failures.size ? contest->failures.data : "there is none"));
  if (prepared != plain) take(prepared, &winners->prepared);
  take(plain, &winners->plain);
done:
  wlmi_finals_release(&finals);
  wlmi_candidates_drop(list);
  wlmi_free(screened);
  return status;
}

wlm_status wlmi_contest_winner(wlmi_contest *contest, wlmi_entrant *winner) {
  wlmi_winners winners;
  wlm_status status = wlmi_contest_winners(contest, &winners);
  *winner = winners.plain;
  wlmi_entrant_release(&winners.prepared);
  return status;
}

/* ---- baselines and the last round ------------------------------------------------------------------- */

void wlmi_contest_check(wlmi_contest *contest, wlmi_entrant *baselines, int count) {
  for (int i = 0; i < count; i++) wlmi_entrant_verify(&baselines[i], &contest->operands, contest->verifier);
}

/* Estimates the time of a call from one call, then from several, so that the cost of a launch is not counted as work of
 * short calls. */
wlm_status wlmi_contest_time(wlmi_device *device, wlmi_entrant *entrants, int count, int samples, int64_t *calls) {
  const double targets[] = {screening_seconds, sample_seconds};
  *calls = 1;
  for (int step = 0; step < 2; step++) {
    double quickest = INFINITY;
    wlm_status status = wlmi_entrants_time(device, entrants, count, *calls, 1);
    if (status != WLM_OK) return status;
    for (int i = 0; i < count; i++)
      if (!entrants[i].failure) quickest = fmin(quickest, entrants[i].seconds);
    *calls = wlmi_calls_for(targets[step], quickest);
  }
  return wlmi_entrants_time(device, entrants, count, *calls, samples);
}
