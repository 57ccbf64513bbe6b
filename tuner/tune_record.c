/* Stores and reports the results of a tuning. */
#include "db/store.h"
#include "tuner/tune_state.h"

static const double group_seconds = 0.2;

wlm_status wlmi_tuning_report(wlmi_tuning *t, const wlm_candidate_result *last) {
  const wlm_tune_options *o = t->options;
  const int64_t runs = t->summary.measured + t->summary.put_off;
  const int64_t done = t->reported < runs ? t->reported : runs; /* the others are finalists */
  /* Stored measurements are reported also after the caller has asked to stop. */
  if (o->progress && (last || !t->cancelled)) t->cancelled |= o->progress(o->user, done, t->fresh, last) != 0;
  if (!t->cancelled) return WLM_OK;
  return wlmi_fail(WLM_ERR_CANCELLED, "stopped after %lld of %lld candidates; what was measured is kept",
                   (long long)t->summary.measured, (long long)t->fresh);
}

static wlm_status report_stored(wlmi_tuning *t, const wlmi_measurement_record *record, double cold_seconds) {
  const double seconds = (double)record->time_ps * 1e-12;
  const wlm_candidate_result result = {
      .variant = record->variant,
      .failed = record->failed,
      .reason = record->failed ? record->reason : NULL,
      .seconds = seconds,
      .spread = record->failed ? 0 : (double)record->spread_ps / (double)record->time_ps,
      .gather_gbs = wlmi_gather_gbs(&t->operands.spec, t->operands.a.rows, t->operands.edges, seconds),
      .max_rel_err = record->max_rel_err,
      .prepare_seconds = (double)record->prepare_ps * 1e-12,
      .samples = record->samples,
      .cold_seconds = cold_seconds,
  };
  t->reported++;
  return wlmi_tuning_report(t, &result);
}

wlm_status wlmi_tuning_store(wlmi_tuning *t) {
  wlmi_measurement_record *const records = t->unstored;
  const int64_t count = t->unstored_count;
  wlm_status status = wlmi_store_put(wlmi_tuner_store(t->tuner), records, count);
  t->stored_at = wlmi_seconds();
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < count; i++) {
    if (wlmi_measurement_is_cold(&records[i])) continue;
    const int has_cold = i + 1 < count && wlmi_measurement_is_cold(&records[i + 1]);
    const wlm_status reported = report_stored(t, &records[i], has_cold ? (double)records[i + 1].time_ps * 1e-12 : 0);
    if (status == WLM_OK) status = reported;
  }
  while (t->unstored_count) wlmi_measurement_release(&records[--t->unstored_count]);
  return status;
}

wlm_status wlmi_tuning_store_in_time(wlmi_tuning *t) {
  if (!t->stored_at) t->stored_at = wlmi_seconds();
  return wlmi_seconds() - t->stored_at < group_seconds ? WLM_OK : wlmi_tuning_store(t);
}

/* Keeps a copy. */
static wlm_status keep(wlmi_tuning *t, const wlmi_measurement_record *record) {
  WLM_CHECK(wlmi_measurements_reserve(&t->unstored, t->unstored_count, &t->unstored_capacity));
  WLM_CHECK(wlmi_measurement_copy(record, &t->unstored[t->unstored_count]));
  t->unstored_count++;
  return WLM_OK;
}

static void describe_failure(const wlmi_method *method, wlmi_text *reason) {
  wlmi_text_printf(reason, "%s: %s", wlm_status_message(method->status), method->failure);
}

wlm_status wlmi_tuning_put_off(wlmi_tuning *t, const wlmi_method *method) {
  wlmi_text reason = {0};
  describe_failure(method, &reason);
  const wlm_candidate_result result = {.variant = t->candidates[method->candidate].variant,
                                       .failed = 1,
                                       .reason = reason.data,
                                       .max_rel_err = method->max_rel_err};
  wlm_status status;
  WLM_TRY(wlmi_tuning_store(t)); /* in their order */
  t->reported++;
  status = wlmi_tuning_report(t, &result);
done:
  wlmi_text_release(&reason);
  return status;
}

wlm_status wlmi_tuning_put(wlmi_tuning *t, const wlmi_method *method, double prepare_seconds, const wlmi_timing *cold) {
  char problem_key[WLMI_SPEC_KEY];
  wlmi_measurement_record record;
  wlmi_text reason = {0};
  wlm_status status;
  wlmi_spec_key(&t->operands.spec, problem_key);
  wlmi_measured_begin(t->context, t->options->matrix_name, t->stats, problem_key, t->problem->n,
                      t->candidates[method->candidate].variant, &record);
  record.clock = WLMI_CLOCK_HOT;
  record.max_rel_err = method->max_rel_err;
  record.failed = method->failure != NULL;
  if (record.failed) {
    describe_failure(method, &reason);
    record.reason = reason.data;
  } else {
    wlmi_measured_time(&record, method->seconds, method->spread, method->samples, method->calls);
    record.prepare_ps = method->prepared ? wlmi_picoseconds(prepare_seconds) : 0;
  }
  WLM_TRY(keep(t, &record));
  if (record.failed || !cold || !cold->samples) goto done;
  record.clock = WLMI_CLOCK_COLD;
  wlmi_measured_time(&record, cold->median, cold->spread, cold->samples, 1);
  status = keep(t, &record);
done:
  wlmi_text_release(&reason);
  return status;
}
