/* Tuning: every valid candidate, in seeded order, compiled many at a time, checked, timed and stored one by one.
 *
 * Compiling and timing take turns, batch by batch, so that compilers don't disturb a timed host kernel and a
 * budget that runs out still leaves measurements. A candidate that fails is a measurement too: it says why. Each
 * is on the disk before the next one begins. */
#include <math.h>
#include <time.h>

#include "common/memory.h"
#include "common/sampling.h"
#include "db/store.h"
#include "tuner/compile_ahead.h"
#include "tuner/timing.h"
#include "tuner/verify.h"

enum { BATCH_PER_THREAD = 8, MAX_SAMPLES = 10000 };
static const double hopeless = 3; /* times the best: not worth more samples */
static const double max_min_sample_seconds = 60;

typedef struct tuning {
  wlm_context *context;
  const wlm_matrix *matrix;
  const wlm_problem *problem;
  const wlm_tune_options *options;
  wlm_device *device;
  wlm_operands operands;
  wlm_verifier *verifier;
  wlm_store *store;
  wlm_names names;
  wlm_compile_job *jobs;
  int64_t done;
  int cancelled;        /* progress said so, which it need not repeat */
  double started, best; /* seconds; best = of one call of what needs no preparing, 0 = none yet */
} tuning;

static wlm_status check_options(const wlm_tune_options *o) {
  if (o->size != sizeof *o)
    return wlm_fail(WLM_ERR_INVALID_ARGUMENT,
                    "wlm_tune_options.size is %zu (expected %zu): initialise it with "
                    "WLM_TUNE_OPTIONS_INIT of this version",
                    o->size, sizeof *o);
  if (!isfinite(o->budget_seconds) || o->budget_seconds < 0)
    return wlm_fail(WLM_ERR_INVALID_ARGUMENT,
                    "wlm_tune_options.budget_seconds is %g, must be a number of seconds, "
                    "0 = no limit",
                    o->budget_seconds);
  if (!(o->min_sample_seconds >= 0 && o->min_sample_seconds <= max_min_sample_seconds))
    return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_tune_options.min_sample_seconds is %g, must be 0 to %g",
                    o->min_sample_seconds, max_min_sample_seconds);
  if (o->samples < 1 || o->samples > MAX_SAMPLES)
    return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_tune_options.samples is %d, must be 1 to %d", o->samples,
                    MAX_SAMPLES);
  return WLM_OK;
}

/* Fisher-Yates, so that a budget cuts a random part of the candidates and the same one for the same seed. */
static void shuffle(wlm_names *names, uint64_t seed) {
  for (int64_t i = names->count - 1; i > 0; i--) {
    int64_t j = (int64_t)(wlm_sample_hash(seed + 1, i) % (uint64_t)(i + 1));
    char *name = names->names[i];
    names->names[i] = names->names[j];
    names->names[j] = name;
  }
}

static wlm_status prepare(tuning *t) {
  wlm_status status;
  const wlm_device_info *info = &t->device->info;
  const char *path = wlm_context_database_path(t->context);
  const uint64_t seed = t->options->seed;
  if (!*info->compiler)
    return wlm_fail(WLM_ERR_NO_COMPILER, "tuning compiles kernels, and there is no compiler for the device %s",
                    info->name);
  if (!*path)
    return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "tuning stores what it measures, and the context has no user database");
  WLM_TRY(wlm_store_open(path, WLM_STORE_WRITE, &t->store));
  WLM_TRY(wlm_operands_create(t->context, t->matrix, t->problem, seed, &t->operands));
  WLM_TRY(wlm_generator_candidates(wlm_context_generator(t->context), &t->operands.spec, &info->limits, &t->names));
  if (!t->names.count)
    WLM_TRY(wlm_fail(WLM_ERR_UNSUPPORTED, "no family has a kernel for this problem on the device %s", info->name));
  shuffle(&t->names, seed);
  WLM_TRY(wlm_verifier_create(&t->operands, seed, &t->verifier));
  WLM_TRY(wlm_alloc_array(t->names.count, sizeof *t->jobs, "candidates", (void **)&t->jobs));
  for (int64_t i = 0; i < t->names.count; i++) t->jobs[i] = (wlm_compile_job){.variant = t->names.names[i]};
done:
  return status;
}

static void cleanup(tuning *t) {
  for (int64_t i = 0; t->jobs && i < t->names.count; i++) wlm_free(t->jobs[i].detail);
  wlm_free(t->jobs);
  wlm_verifier_destroy(t->verifier);
  wlm_operands_release(&t->operands);
  wlm_names_release(&t->names);
  wlm_store_close(t->store);
}

static wlm_status report(tuning *t, const wlm_candidate_result *last) {
  const wlm_tune_options *o = t->options;
  if (o->progress && !t->cancelled) t->cancelled = o->progress(o->user, t->done, t->names.count, last) != 0;
  if (!t->cancelled) return WLM_OK;
  return wlm_fail(WLM_ERR_CANCELLED, "stopped after %lld of %lld candidates; what was measured is kept",
                  (long long)t->done, (long long)t->names.count);
}

static int out_of_budget(const tuning *t) {
  return t->options->budget_seconds > 0 && t->done && wlm_seconds() - t->started > t->options->budget_seconds;
}

static int compile_tick(void *user) { return report(user, NULL) != WLM_OK || out_of_budget(user); }

/* What came out of one candidate. */
typedef struct outcome {
  wlm_timing call, preparing;
  double max_rel_err;
} outcome;

/* Checked before it is timed: a wrong kernel never gets a time. The preparing is timed whatever the problem's
 * expected_calls are: what is measured serves every caller, and choosing weighs it. */
static wlm_status check_and_time(tuning *t, const char *variant, outcome *out) {
  wlm_status status;
  wlm_plan *plan = NULL;
  const wlm_timing_options options = {t->options->min_sample_seconds, t->options->samples, hopeless * t->best};
  WLM_TRY(wlm_plan_create_variant(t->context, t->matrix, t->problem, variant, &plan));
  WLM_TRY(wlm_operands_bind(&t->operands, plan));
  WLM_TRY(wlm_verify(t->verifier, plan, &out->max_rel_err));
  WLM_TRY(wlm_time_plan(&t->operands, plan, &options, &out->call));
  WLM_TRY(wlm_time_prepare(&t->operands, plan, t->options->min_sample_seconds, &out->preparing));
done:
  wlm_plan_destroy(plan);
  return status;
}

static wlm_measurement_record record_of(const tuning *t, const wlm_compile_job *job, char *problem_key) {
  const wlm_device_info *info = &t->device->info;
  wlm_spec_key(&t->operands.spec, problem_key);
  wlm_measurement_record record = {
      .matrix_name = (char *)t->options->matrix_name,
      .stats = *wlm_matrix_stats(t->matrix),
      .variant = (char *)job->variant,
      .source_hash = (char *)job->source_hash,
      .problem = problem_key,
      .n = t->problem->n,
      .compiler = (char *)info->compiler,
      .driver = (char *)info->driver,
      .clock = "hot",
      .max_rel_err = NAN,
      .made_at = (int64_t)time(NULL),
  };
  wlm_context_device_record(t->context, &record.device);
  return record;
}

static int64_t picoseconds(double seconds) { return seconds > 1e-12 ? (int64_t)(seconds * 1e12 + 0.5) : 1; }

static void record_times(wlm_measurement_record *record, const outcome *out) {
  const wlm_timing *timing = &out->call;
  record->time_ps = picoseconds(timing->median);
  record->prepare_ps = out->preparing.samples ? picoseconds(out->preparing.median) : 0;
  record->spread_ps = (int64_t)(timing->median * timing->spread * 1e12 + 0.5);
  record->samples = timing->samples;
  record->calls_per_sample = timing->calls;
}

/* One candidate from its compiled form to the disk and the caller. */
static wlm_status measure(tuning *t, const wlm_compile_job *job) {
  char problem_key[WLM_SPEC_KEY];
  outcome out = {.max_rel_err = NAN};
  wlm_text reason = {0};
  wlm_status status = job->status;
  if (status == WLM_OK)
    status = check_and_time(t, job->variant, &out);
  else
    wlm_fail(status, "%s", job->detail ? job->detail : "");
  wlm_measurement_record record = record_of(t, job, problem_key);
  if (isfinite(out.max_rel_err)) record.max_rel_err = out.max_rel_err;
  record.failed = status != WLM_OK;
  if (record.failed) {
    wlm_text_printf(&reason, "%s: %s", wlm_status_message(status), wlm_error_detail());
    record.reason = reason.data;
    out.call = (wlm_timing){0}; /* timed, perhaps, before its preparing failed */
  } else {
    record_times(&record, &out);
    if (!record.prepare_ps && (t->best == 0 || out.call.median < t->best)) t->best = out.call.median;
  }
  const wlm_candidate_result result = {
      .variant = job->variant,
      .failed = record.failed,
      .reason = reason.data,
      .seconds = out.call.median,
      .spread = out.call.spread,
      .gather_gbs = wlm_gather_gbs(&t->operands.spec, t->operands.a.rows, t->operands.edges, out.call.median),
      .max_rel_err = out.max_rel_err,
      .prepare_seconds = record.prepare_ps ? out.preparing.median : 0,
  };
  WLM_TRY(wlm_store_put(t->store, &record, 1));
  t->done++;
  /* A kernel that wrote out of bounds may have taken the device with it: then nothing after it can be measured. */
  if (record.failed && t->device->ops->synchronize(t->device, NULL) != WLM_OK)
    WLM_TRY(wlm_fail_in(WLM_ERR_DEVICE, "%s left the device unusable", job->variant));
  status = report(t, &result);
done:
  wlm_text_release(&reason);
  return status;
}

static wlm_status measure_all(tuning *t) {
  const int64_t batch = (int64_t)BATCH_PER_THREAD * wlm_compile_threads();
  while (t->done < t->names.count && !out_of_budget(t)) {
    int64_t first = t->done, count = t->names.count - first < batch ? t->names.count - first : batch;
    wlm_compile_ahead(t->context, &t->operands.spec, t->jobs + first, count, compile_tick, t);
    wlm_status status = report(t, NULL); /* before an interrupted compiler is taken for a failed one */
    for (int64_t i = first; i < first + count && status == WLM_OK && !out_of_budget(t); i++)
      status = measure(t, &t->jobs[i]);
    if (status != WLM_OK) return status;
  }
  return WLM_OK;
}

wlm_status wlm_tune(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                    const wlm_tune_options *options) {
  static const wlm_tune_options defaults = WLM_TUNE_OPTIONS_INIT;
  tuning t = {.context = context, .matrix = matrix, .problem = problem, .options = options ? options : &defaults};
  wlm_status status = check_options(t.options);
  if (status != WLM_OK) return status;
  t.device = wlm_context_device(context);
  t.started = wlm_seconds();
  WLM_TRY(prepare(&t));
  if (wlm_matrix_stats(matrix)->rows && problem->n) status = measure_all(&t); /* nothing to tell apart otherwise */
done:
  cleanup(&t);
  if (!t.done) return status;
  if (status == WLM_OK) return wlm_context_refresh(context);
  wlm_text failure = {0};
  wlm_text_puts(&failure, wlm_error_detail());
  wlm_context_refresh(context);
  wlm_fail(status, "%s", failure.data ? failure.data : "");
  wlm_text_release(&failure);
  return status;
}
