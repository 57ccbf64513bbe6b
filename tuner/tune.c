/* Tuning for one matrix and width: kernels that the store lacks are screened, the best are timed again
 * (tuner/search.c), and every measurement is stored.
 *
 * A screening run is stored at once: one sample, and a result that was compared in a few rows. Finalists are stored
 * again with their samples, after their whole result was compared, and with a cold time. select/case.c uses the number
 * of samples to decide which time counts. A candidate that fails by its own fault is stored with its reason; temporary
 * failures (no descriptors left, a full disk) are only reported, and the next tuning tries the candidate again. */
#include <math.h>

#include "core/base/memory.h"
#include "core/base/threads.h"
#include "core/problem/structs.h"
#include "tuner/known.h"
#include "tuner/tune_state.h"

enum { MAX_SAMPLES = 10000, PREPARE_SAMPLES = 5, COLD_SAMPLES = 5 };
static const double max_min_sample_seconds = 60;

static wlm_status check_options(const wlm_tune_options *o) {
  if (!isfinite(o->budget_seconds) || o->budget_seconds < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "wlm_tune_options.budget_seconds is %g, must be a number of seconds, "
                     "0 = no limit",
                     o->budget_seconds);
  if (!(o->min_sample_seconds >= 0 && o->min_sample_seconds <= max_min_sample_seconds))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_tune_options.min_sample_seconds is %g, must be 0 to %g",
                     o->min_sample_seconds, max_min_sample_seconds);
  if (o->samples < 1 || o->samples > MAX_SAMPLES)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_tune_options.samples is %d, must be 1 to %d", o->samples,
                     MAX_SAMPLES);
  return WLM_OK;
}

/* ---- looks ------------------------------------------------------------------------------------------------- */

/* A kernel that wrote out of bounds may have made the device unusable; then nothing more can be measured. */
static wlm_status survived(wlmi_tuning *t, const wlmi_method *method) {
  if (!method->failure || t->device->ops->synchronize(t->device, NULL) == WLM_OK) return WLM_OK;
  return wlmi_fail_in(WLM_ERR_DEVICE, "%s left the device unusable", t->candidates[method->candidate].variant);
}

static void note_failure(wlmi_tuning *t, const wlmi_method *method) {
  if (!method->failure || t->failure != WLM_OK) return;
  t->failure = method->status;
  t->reason = wlmi_strdup(method->failure);
}

static int may_pass(const wlmi_method *method) { return method->failure && !wlmi_failure_is_lasting(method->status); }

static wlm_status after_screening(void *user, const wlmi_method *screened) {
  wlmi_tuning *t = user;
  wlm_status status;
  double prepare_seconds = 0;
  if (screened->status == WLM_ERR_CANCELLED || t->cancelled)
    return wlmi_tuning_report(t, NULL); /* it was never compiled */
  wlmi_method method = *screened;       /* a copy that shares all memory; `put` only reads the failure */
  if (!method.failure) {
    status = wlmi_method_time_prepare(&method, 1, &prepare_seconds);
    if (status != WLM_OK) wlmi_method_give_up(&method, status);
  }
  note_failure(t, &method);
  if (may_pass(&method)) {
    t->summary.put_off++;
    status = wlmi_tuning_put_off(t, &method);
    goto done;
  }
  t->summary.measured++;
  t->summary.failed += method.failure != NULL;
  t->spared |= !method.failure && !t->last_spills;
  WLM_TRY(wlmi_tuning_put(t, &method, prepare_seconds, NULL));
  WLM_TRY(survived(t, &method));
  status = wlmi_tuning_store_in_time(t);
done:
  if (method.failure != screened->failure) wlmi_method_free_failure(method.failure);
  return status;
}

/* ---- the finals ---------------------------------------------------------------------------------------- */

static wlm_status keep_finalist(wlmi_tuning *t, wlmi_method *method) {
  const wlmi_buffer *flush = wlmi_tuning_out_of_budget(t) ? NULL : wlmi_tuner_flush_buffer(t->tuner);
  double prepare_seconds = 0;
  wlmi_timing cold = {0};
  if (!method->failure) {
    wlm_status status = wlmi_method_time_prepare(method, PREPARE_SAMPLES, &prepare_seconds);
    if (status == WLM_OK && flush && flush->size) {
      status = wlmi_method_time_cold(t->device, method, flush, COLD_SAMPLES, &cold.median, &cold.spread);
      cold.samples = status == WLM_OK ? COLD_SAMPLES : 0;
    }
    if (status != WLM_OK) wlmi_method_give_up(method, status);
  }
  note_failure(t, method);
  if (may_pass(method)) return WLM_OK; /* it keeps its screening time, which cannot win */
  t->summary.finalists += !method->failure;
  if (!method->failure) t->most_spread = fmax(t->most_spread, method->spread);
  wlm_status status = wlmi_tuning_put(t, method, prepare_seconds, &cold);
  return status == WLM_OK ? survived(t, method) : status;
}

/* The error if no kernel passed the full comparison. */
static wlm_status no_winner(const wlmi_tuning *t) {
  const char *reason = t->reason ? t->reason : "each failed before; tune with --again to measure them again";
  if (t->failure != WLM_OK && !wlmi_failure_is_lasting(t->failure))
    return wlmi_fail(t->failure, "no kernel could be measured: %s; tune again once that is mended", reason);
  return wlmi_fail(t->failure == WLM_OK ? WLM_ERR_NOT_FOUND : t->failure,
                   "none of %lld kernels gave a right result, so the matrix stays untuned: %s", (long long)t->count,
                   reason);
}

static void warn_of_noise(const wlmi_tuning *t) {
  if (!wlmi_spread_is_noisy(t->most_spread, WLMI_PRECISE_SAMPLES)) return;
  if (t->summary.lost >= t->most_spread)
    wlmi_log(
        WLM_LOG_WARNING,
        "this machine is busy: the best kernels were measured %d times, and in the calmest time the calling thread ran "
        "%.0f %% of the time; the next tune measures them again",
        t->summary.repeats + 1, 100 * (1 - t->summary.lost));
  else
    wlmi_log(
        WLM_LOG_WARNING,
        "this machine is busy: the times of one kernel spread by %.0f %%; the next tune measures such kernels again",
        100 * t->most_spread);
}

static wlm_status search(wlmi_tuning *t) {
  const double long_look = t->options->min_sample_seconds, look = fmin(long_look, 0.5e-3);
  const int samples = t->options->samples < WLMI_PRECISE_SAMPLES ? WLMI_PRECISE_SAMPLES : t->options->samples;
  const wlmi_search_rules rules = {
      .abandon = 2,
      .screening_seconds = fmin(long_look, 0.2e-3),
      .round_seconds = 0.3,
      .round_count = 3,
      .rounds = {{6, 16, 2, 1.3, look}, {4, 8, 3, 1.15, look}, {2, 4, samples, 1.1, long_look}},
  };
  wlmi_search_field field = wlmi_tuning_field(t);
  wlmi_finals finals = {.count = 0};
  field.report = after_screening;
  wlm_status status = wlmi_search(&field, &rules, &finals);
  t->summary.repeats = finals.repeats;
  t->summary.lost = finals.lost;
  for (int i = 0; i < finals.count && status == WLM_OK; i++) status = keep_finalist(t, &finals.list[i]);
  wlmi_finals_release(&finals);
  if (status != WLM_OK) return status;
  warn_of_noise(t);
  return t->summary.finalists ? WLM_OK : no_winner(t);
}

/* ---- beginning and end --------------------------------------------------------------------------------- */

/* Moves candidates without measurements to the front. Returns how many of the others were finalists. */
static int64_t sort_out_known(wlmi_tuning *t) {
  int64_t precise = 0;
  for (int64_t i = 0; i < t->count; i++) {
    wlmi_timed candidate = t->candidates[i];
    precise += candidate.samples >= WLMI_PRECISE_SAMPLES;
    if (candidate.is_known) continue;
    candidate.seconds = 0; /* of a noisy measurement */
    t->candidates[i] = t->candidates[t->fresh];
    t->candidates[t->fresh++] = candidate;
  }
  t->summary.candidates = t->count;
  t->summary.known = t->count - t->fresh;
  return precise;
}

static wlm_status begin_search(wlmi_tuning *t) {
  t->jobs = wlmi_alloc_zero((size_t)t->fresh, sizeof *t->jobs);
  if (!t->jobs) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "candidates");
  WLM_CHECK(wlmi_tuning_order(t));
  WLM_CHECK(wlmi_verifier_create(&t->operands, t->options->seed, &t->verifier));
  for (int64_t i = 0; i < t->fresh; i++)
    t->jobs[i] = (wlmi_compile_job){.variant = t->candidates[i].variant, .spec = &t->operands.spec};
  t->summary.making = wlmi_seconds() - t->started;
  if (t->device->info.limits.target != WLMI_TARGET_CUDA) return WLM_OK;
  return wlmi_compile_begin(t->context, t->jobs, t->fresh, &t->compiling);
}

static wlm_status find_candidates(wlmi_tuning *t, const wlmi_spec *spec, const char *key, int64_t *precise) {
  const wlmi_hash known_key = wlmi_known_key(t->stats->fingerprint, key, t->problem->n);
  wlmi_free(t->candidates);
  t->candidates = NULL;
  t->fresh = 0;
  const wlm_status status = wlmi_tuner_candidates(t->tuner, spec, known_key, &t->candidates, &t->count);
  if (status == WLM_OK) *precise = sort_out_known(t);
  return status;
}

static int wants_to_stop(void *user) { return wlmi_tuning_report(user, NULL) != WLM_OK; }

static wlm_status tune(wlmi_tuning *t) {
  int64_t precise;
  char key[WLMI_SPEC_KEY];
  wlmi_spec spec;
  wlmi_matrix_view view;
  WLM_CHECK(wlmi_context_spec(t->context, t->matrix, t->problem, &spec));
  WLM_CHECK(wlmi_matrix_fingerprint(t->matrix));
  WLM_CHECK(wlmi_matrix_see(t->matrix, &spec.problem, &view));
  t->stats = view.stats;
  t->summary.nothing = !t->stats->nnz || !t->problem->n;
  if (t->summary.nothing) return WLM_OK;
  wlmi_spec_key(&spec, key);
  WLM_CHECK(find_candidates(t, &spec, key, &precise));
  if (!t->fresh && precise) return WLM_OK;
  WLM_CHECK(wlmi_turn_take(&t->device->info, wants_to_stop, t, &t->turn));
  if (t->turn.waits) { /* the other tuning may have measured the same */
    t->summary.waited = t->turn.seconds;
    t->started += t->turn.seconds;
    WLM_CHECK(wlmi_tuner_reread(t->tuner));
    WLM_CHECK(find_candidates(t, &spec, key, &precise));
    if (!t->fresh && precise) return WLM_OK;
  }
  WLM_CHECK(wlmi_operands_create(t->context, t->matrix, t->problem, t->args, t->options->seed, &t->operands));
  WLM_CHECK(begin_search(t));
  return search(t);
}

static void release(wlmi_tuning *t) {
  wlmi_turn_end(&t->turn);
  wlmi_compile_end(t->compiling);
  for (int64_t i = 0; t->jobs && i < t->fresh; i++) wlmi_free(t->jobs[i].detail);
  wlmi_free(t->jobs);
  wlmi_free(t->reason);
  wlmi_free(t->candidates);
  wlmi_measurements_free(t->unstored, t->unstored_count);
  wlmi_verifier_destroy(t->verifier);
  wlmi_operands_release(&t->operands);
}

/* Calls `then`, whose status counts only if `status` is WLM_OK. */
static wlm_status afterwards(wlm_status status, wlm_status (*then)(void *), void *user) {
  if (status == WLM_OK) return then(user);
  wlmi_text failure = {0};
  wlmi_text_puts(&failure, wlm_error_detail());
  then(user);
  wlmi_fail(status, "%s", failure.data ? failure.data : "");
  wlmi_text_release(&failure);
  return status;
}

static wlm_status store(void *tuning) { return wlmi_tuning_store(tuning); }
static wlm_status refresh(void *context) { return wlm_context_refresh(context); }

wlm_status wlmi_tuner_run(wlmi_tuner *tuner, const wlm_matrix *matrix, const wlm_problem *problem,
                          const wlm_execute_args *args, const wlm_tune_options *options, double share_seconds,
                          wlmi_tune_summary *summary) {
  static const wlm_tune_options defaults = WLM_TUNE_OPTIONS_INIT;
  wlm_context *context = wlmi_tuner_context(tuner);
  wlmi_tuning t = {.tuner = tuner,
                   .context = context,
                   .matrix = matrix,
                   .problem = problem,
                   .args = args,
                   .options = options ? options : &defaults,
                   .device = wlmi_context_device(context),
                   .share = share_seconds,
                   .started = wlmi_seconds()};
  t.turn.file = -1;
  wlm_status status = check_options(t.options);
  if (status == WLM_OK) status = tune(&t);
  status = afterwards(status, store, &t);
  t.summary.total = wlmi_seconds() - t.started;
  t.summary.unlikely = t.fresh - t.summary.measured < t.doubtful ? t.fresh - t.summary.measured : t.doubtful;
  const wlmi_tune_summary *sum = &t.summary;
  wlmi_log(
      WLM_LOG_INFO,
      "tuned n = %lld on %s in %.2f s: making %.2f, compiling %.2f, entering %.2f, checking %.2f, the rest timing; "
      "%lld of %lld candidates measured, %lld finalists",
      (long long)problem->n, t.options->matrix_name ? t.options->matrix_name : "a matrix", sum->total, sum->making,
      sum->compiling, sum->entering, sum->checking, (long long)sum->measured, (long long)sum->candidates,
      (long long)sum->finalists);
  if (summary) *summary = t.summary;
  release(&t);
  return status;
}

wlm_status wlm_tune(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                    const wlm_execute_args *args, const wlm_tune_options *options) {
  wlm_tune_options o = WLM_TUNE_OPTIONS_INIT;
  wlm_problem p;
  wlmi_tuner *tuner = NULL;
  wlmi_tune_summary summary = {0};
  wlm_status status;
  WLM_TRY(wlmi_need("wlm_tune", "context matrix problem", context, matrix, problem));
  WLM_TRY(wlmi_matrix_with_arrays(matrix, context, "wlm_tune"));
  WLM_TRY(wlmi_struct_read(&wlmi_struct_problem, problem, &p));
  WLM_TRY(wlmi_check_comparable(&p));
  p.b_order = p.c_order = WLM_ROW_MAJOR; /* copies between orders take as long with every kernel */
  if (options) WLM_TRY(wlmi_struct_read(&wlmi_struct_tune_options, options, &o));
  WLM_TRY(check_options(&o));
  WLM_TRY(wlmi_tuner_create(context, o.again, &tuner));
  const int threads = wlmi_threads_begin();
  status = wlmi_tuner_run(tuner, matrix, &p, args, &o, o.budget_seconds > 0 ? o.budget_seconds : INFINITY, &summary);
  wlmi_threads_end(threads);
done:
  wlmi_tuner_destroy(tuner);
  return wlmi_finish(summary.measured || summary.finalists ? afterwards(status, refresh, context) : status);
}
