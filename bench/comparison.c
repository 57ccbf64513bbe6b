/* How a benchmark finds and times kernels. Every valid candidate is screened. The ten best unprepared and the ten best
 * prepared candidates are compared with float64 and timed again, interleaved; the fastest ones win (tuner/search.c).
 * Reported times are none of these: the winners and all baselines are timed once more together, which avoids selection
 * bias. */
#include "bench/comparison.h"

#include <math.h>

#include "core/base/json.h"
#include "core/base/memory.h"
#include "tuner/compile_ahead.h"
#include "tuner/timing.h"

enum { FINALISTS = 10 }; /* the default */
static const double screening_seconds = 0.3e-3, sample_seconds = 1e-3;
static const double near = 2; /* candidates within this multiple of the best screening time are timed again */

wlm_status wlmi_comparison_ones(wlm_context *context, const wlmi_upload *pattern, const wlmi_csr_host *csr,
                                wlm_type value_type, wlmi_upload *upload) {
  wlmi_csr_host ones = *csr;
  WLM_CHECK(wlmi_alloc_array(ones.nnz, sizeof *ones.values, "values", (void **)&ones.values));
  for (int64_t p = 0; p < ones.nnz; p++) ones.values[p] = 1;
  const wlm_status status = wlmi_upload_create_values(context, pattern, &ones, value_type, upload);
  wlmi_free(ones.values);
  return status;
}

wlm_status wlmi_comparison_create(const wlmi_bench_case *bench, const wlmi_comparison *first, const wlm_matrix *matrix,
                                  const wlm_problem *problem, wlmi_comparison *comparison) {
  const wlm_type type = problem->dense_type;
  wlmi_upload *values = &comparison->values;
  wlm_status status = WLM_OK;
  *comparison = (wlmi_comparison){.context = bench->context, .samples = bench->samples, .seed = bench->seed};
  if (!matrix && problem->message == WLM_COPY_B)
    WLM_TRY(wlmi_comparison_ones(bench->context, bench->upload, bench->csr, type, values));
  else if (!matrix && type != WLM_F32)
    WLM_TRY(wlmi_upload_create_values(bench->context, bench->upload, bench->csr, type, values));
  comparison->matrix = matrix = matrix ? matrix : values->matrix ? values->matrix : bench->upload->matrix;
  WLM_TRY(first ? wlmi_operands_create_beside(&first->operands, bench->context, matrix, problem, NULL, bench->seed,
                                              &comparison->operands)
                : wlmi_operands_create(bench->context, matrix, problem, NULL, bench->seed, &comparison->operands));
  WLM_TRY(wlmi_verifier_create(&comparison->operands, bench->seed, &comparison->verifier));
done:
  if (status != WLM_OK) wlmi_comparison_release(comparison);
  return status;
}

void wlmi_comparison_release(wlmi_comparison *comparison) {
  wlmi_verifier_destroy(comparison->verifier);
  wlmi_operands_release(&comparison->operands);
  wlmi_upload_release(&comparison->values);
  wlmi_text_release(&comparison->failures);
  *comparison = (wlmi_comparison){0};
}

void wlmi_comparison_note(wlmi_comparison *comparison, const wlmi_method *failed) {
  wlmi_json_string(&comparison->failures, failed->name, failed->failure);
}

void wlmi_comparison_put_failures(const wlmi_comparison *comparison, const char *key, wlmi_text *line) {
  wlmi_json_open(line, key, '{');
  wlmi_json_members(line, comparison->failures.data);
  wlmi_json_close(line, '}');
}

void wlmi_comparison_enter(wlmi_comparison *comparison, const char *variant, wlmi_method *method) {
  wlmi_method_variant(comparison->context, &comparison->operands, variant, method);
  wlmi_method_verify(method, &comparison->operands, comparison->verifier);
}

/* ---- the winners --------------------------------------------------------------------------------- */

static wlm_status compile_all(const wlmi_comparison *comparison, const wlmi_candidate_list *list) {
  wlmi_compile_job *jobs = wlmi_alloc_zero((size_t)list->count, sizeof *jobs);
  if (!jobs) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "compilations");
  for (int64_t i = 0; i < list->count; i++)
    jobs[i] = (wlmi_compile_job){.variant = list->candidates[i].variant, .spec = &comparison->operands.spec};
  wlm_status status = wlmi_compile_all(comparison->context, jobs, list->count);
  wlmi_free(jobs);
  return status;
}

struct candidates {
  wlmi_comparison *comparison;
  const wlmi_candidate_list *list;
};

static void enter(void *user, int64_t i, wlmi_method *method) {
  const struct candidates *c = user;
  wlmi_method_variant(c->comparison->context, &c->comparison->operands, c->list->candidates[i].variant, method);
}

static void glance(void *user, wlmi_method *method, double *seconds) {
  wlmi_comparison *comparison = ((struct candidates *)user)->comparison;
  wlmi_method_glance(method, &comparison->operands, comparison->verifier, seconds);
}

static void verify(void *user, wlmi_method *method) {
  wlmi_comparison *comparison = ((struct candidates *)user)->comparison;
  wlmi_method_verify(method, &comparison->operands, comparison->verifier);
}

static wlm_status note(void *user, const wlmi_method *method) {
  if (method->failure) wlmi_comparison_note(((struct candidates *)user)->comparison, method);
  return WLM_OK;
}

wlm_status wlmi_comparison_search(wlmi_comparison *comparison, const wlmi_candidate_list *list, int finalists,
                                  wlmi_timed *screened, wlmi_finals *finals) {
  struct candidates c = {comparison, list};
  const wlmi_search_rules rules = {
      .abandon = near,
      .screening_seconds = screening_seconds,
      .round_seconds = INFINITY,
      .round_count = 1,
      .rounds = {{1, finalists, comparison->samples, near, sample_seconds}},
  };
  const wlmi_search_field field = {.device = comparison->operands.device,
                                   .count = list->count,
                                   .candidates = screened,
                                   .user = &c,
                                   .clock = wlmi_seconds,
                                   .enter = enter,
                                   .glance = glance,
                                   .verify = verify,
                                   .report = note};
  finals->count = 0;
  comparison->candidates = list->count;
  WLM_CHECK(compile_all(comparison, list));
  const wlm_status status = wlmi_search(&field, &rules, finals);
  for (int i = 0; i < finals->count; i++)
    if (finals->list[i].failure) wlmi_comparison_note(comparison, &finals->list[i]);
  return status;
}

static void take(wlmi_method *finalist, wlmi_method *winner) {
  *winner = *finalist;
  *finalist = (wlmi_method){0};
}

wlm_status wlmi_comparison_winners(wlmi_comparison *comparison, wlmi_winners *winners) {
  const wlmi_candidate_list *list = NULL;
  wlmi_timed *screened = NULL;
  wlmi_finals finals = {.count = 0};
  wlm_status status;
  *winners = (wlmi_winners){0};
  WLM_TRY(wlmi_generator_describe(wlmi_context_generator(comparison->context), &comparison->operands.spec,
                                  &comparison->operands.device->info.limits, &list));
  screened = wlmi_alloc_zero((size_t)list->count, sizeof *screened);
  if (!screened) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "candidates"));
  WLM_TRY(wlmi_comparison_search(comparison, list, FINALISTS, screened, &finals));
  wlmi_method *plain = wlmi_finals_best(&finals, WLMI_PLAIN), *prepared = wlmi_finals_best(&finals, WLMI_PREPARED);
  if (!plain)
    WLM_TRY(wlmi_fail(WLM_ERR_MISMATCH, "no candidate that needs no preparing is right: %s",
                      comparison->failures.size ? comparison->failures.data : "there is none"));
  if (prepared != plain) take(prepared, &winners->prepared);
  take(plain, &winners->plain);
done:
  wlmi_finals_release(&finals);
  wlmi_candidates_drop(list);
  wlmi_free(screened);
  return status;
}

wlm_status wlmi_comparison_winner(wlmi_comparison *comparison, wlmi_method *winner) {
  wlmi_winners winners;
  wlm_status status = wlmi_comparison_winners(comparison, &winners);
  *winner = winners.plain;
  wlmi_method_release(&winners.prepared);
  return status;
}

/* ---- baselines and the last round ------------------------------------------------------------------- */

void wlmi_comparison_check(wlmi_comparison *comparison, wlmi_method *baselines, int count) {
  for (int i = 0; i < count; i++) wlmi_method_verify(&baselines[i], &comparison->operands, comparison->verifier);
}

/* Estimates the time of a call from one call, then from several, so that the cost of a launch is not counted as work of
 * short calls. */
wlm_status wlmi_comparison_time(wlmi_device *device, wlmi_method *methods, int count, int samples, int64_t *calls) {
  const double targets[] = {screening_seconds, sample_seconds};
  *calls = 1;
  for (int step = 0; step < 2; step++) {
    double quickest = INFINITY;
    WLM_CHECK(wlmi_methods_time(device, methods, count, *calls, 1));
    for (int i = 0; i < count; i++)
      if (!methods[i].failure) quickest = fmin(quickest, methods[i].seconds);
    *calls = wlmi_calls_for(targets[step], quickest);
  }
  return wlmi_methods_time(device, methods, count, *calls, samples);
}

const wlmi_method *wlmi_method_quicker(const wlmi_method *a, const wlmi_method *b) {
  const int has_a = a && !a->failure, has_b = b && !b->failure;
  return has_a && !(has_b && b->seconds < a->seconds) ? a : has_b ? b : NULL;
}

const wlmi_method *wlmi_methods_quickest(const wlmi_method *methods, int count) {
  const wlmi_method *best = NULL;
  for (int i = 0; i < count; i++) best = wlmi_method_quicker(best, &methods[i]);
  return best;
}
