#include "select/snapshot.h"

#include <string.h>

#include "core/base/memory.h"
#include "select/state.h"

/* NULL stays NULL. */
static wlm_status keep_text(wlmi_snapshot *s, const char **text) {
  int64_t index;
  if (!*text) return WLM_OK;
  const wlm_status status = wlmi_strings_keep(&s->strings, *text, &index);
  if (status == WLM_OK) *text = s->strings.texts[index];
  return status;
}

/* Each name is parsed once. */
static wlm_status keep_variant(wlmi_snapshot *s, const char **name, wlmi_variant *value) {
  const int64_t before = s->variants.count;
  int64_t index;
  WLM_CHECK(wlmi_grow((void **)&s->values, before, &s->value_capacity, sizeof *s->values, "variants"));
  WLM_CHECK(wlmi_strings_keep(&s->variants, *name, &index));
  if (index == before) wlmi_variant_recognise(s->families, *name, &s->values[index]);
  *name = s->variants.texts[index];
  *value = s->values[index];
  return WLM_OK;
}

/* keep_text for a text that is often equal to the previous candidate's, whose copy is `kept`. */
static wlm_status keep_next(wlmi_snapshot *s, const char **text, const char *before, const char *kept) {
  if (*text != before) return keep_text(s, text);
  *text = kept;
  return WLM_OK;
}

wlm_status wlmi_snapshot_set_device(wlmi_snapshot *s, const char *compiler, const char *driver) {
  s->compiler = compiler;
  s->driver = driver;
  wlm_status status = keep_text(s, &s->compiler);
  return status == WLM_OK ? keep_text(s, &s->driver) : status;
}

wlm_status wlmi_snapshot_add_case(wlmi_snapshot *s, const wlmi_case *new_case) {
  wlmi_case c = *new_case;
  wlmi_measured *candidates = NULL, before = {0}, kept = {0};
  wlm_stats *stats = NULL;
  wlm_status status;
  const int64_t total = c.count + c.failed;
  WLM_TRY(wlmi_alloc_array(total, sizeof *candidates, "snapshot", (void **)&candidates));
  if (total) memcpy(candidates, c.candidates, (size_t)total * sizeof *candidates);
  WLM_TRY(wlmi_alloc_array(1, sizeof *stats, "snapshot", (void **)&stats));
  *stats = *c.stats;
  for (int64_t i = 0; i < total; i++) {
    WLM_TRY(keep_variant(s, &candidates[i].variant, &candidates[i].value));
    WLM_TRY(keep_next(s, &candidates[i].compiler, before.compiler, kept.compiler));
    WLM_TRY(keep_next(s, &candidates[i].driver, before.driver, kept.driver));
    WLM_TRY(keep_next(s, &candidates[i].reason, before.reason, kept.reason));
    candidates[i].version = NULL;
    before = c.candidates[i];
    kept = candidates[i];
  }
  c.candidates = candidates;
  c.stats = stats;
  WLM_TRY(keep_text(s, &c.problem));
  WLM_TRY(keep_text(s, &c.matrix));
  WLM_TRY(keep_text(s, &c.borrowed));
  WLM_TRY(wlmi_grow((void **)&s->cases, s->case_count, &s->case_capacity, sizeof *s->cases, "snapshot"));
  s->cases[s->case_count++] = c;
done:
  if (status != WLM_OK) {
    wlmi_free(candidates);
    wlmi_free(stats);
  }
  return status;
}

wlm_status wlmi_snapshot_add_measurements(wlmi_snapshot *s, const wlmi_measurement_record *records, int64_t count,
                                          const char *borrowed, wlmi_keep_fn keep, void *user) {
  wlmi_measurement_record *kept = NULL;
  wlmi_cases cases = {0};
  wlm_status status;
  if (keep) {
    int64_t rest = 0;
    WLM_TRY(wlmi_alloc_array(count, sizeof *kept, "measurements", (void **)&kept));
    for (int64_t i = 0; i < count; i++)
      if (keep(user, &records[i])) kept[rest++] = records[i];
    count = rest;
  }
  WLM_TRY(wlmi_cases_make(keep ? kept : records, count, &cases));
  for (int64_t i = 0; i < cases.count; i++) {
    cases.list[i].borrowed = borrowed;
    WLM_TRY(wlmi_snapshot_add_case(s, &cases.list[i]));
  }
done:
  wlmi_cases_release(&cases);
  wlmi_free(kept);
  return status;
}

wlm_status wlmi_snapshot_add_pin(wlmi_snapshot *s, const wlmi_pin *new_pin) {
  wlmi_pin pin = *new_pin;
  WLM_CHECK(keep_text(s, &pin.problem));
  WLM_CHECK(keep_variant(s, &pin.variant, &pin.value));
  WLM_CHECK(wlmi_grow((void **)&s->pins, s->pin_count, &s->pin_capacity, sizeof *s->pins, "snapshot"));
  s->pins[s->pin_count++] = pin;
  return WLM_OK;
}

wlm_status wlmi_snapshot_add_model(wlmi_snapshot *s, wlmi_model *model, const char *borrowed, const char *stale) {
  model->borrowed = borrowed;
  model->stale = stale;
  WLM_CHECK(keep_text(s, &model->borrowed));
  WLM_CHECK(keep_text(s, &model->stale));
  WLM_CHECK(wlmi_grow((void **)&s->models, s->model_count, &s->model_capacity, sizeof *s->models, "snapshot"));
  wlmi_model_set_families(model, s->families);
  s->models[s->model_count++] = *model;
  *model = (wlmi_model){0};
  return WLM_OK;
}

void wlmi_snapshot_clear(wlmi_snapshot *s) {
  for (int64_t i = 0; i < s->case_count; i++) {
    wlmi_free((void *)s->cases[i].candidates);
    wlmi_free((void *)s->cases[i].stats);
  }
  for (int64_t i = 0; i < s->model_count; i++) wlmi_model_release(&s->models[i]);
  wlmi_free(s->cases);
  wlmi_free(s->models);
  wlmi_free(s->pins);
  wlmi_free(s->values);
  wlmi_strings_release(&s->strings);
  wlmi_strings_release(&s->variants);
  memset(s, 0, sizeof *s);
}

/* ---- stale ---- */

int wlmi_snapshot_is_stale(const wlmi_snapshot *s, const char *compiler, const char *driver) {
  compiler = compiler ? compiler : "";
  driver = driver ? driver : "";
  if (!s->driver || (!*compiler && !*driver)) return 0;
  return (s->compiler && *s->compiler && strcmp(compiler, s->compiler)) || strcmp(driver, s->driver);
}

void wlmi_snapshot_stale(const wlmi_snapshot *s, const char *compiler, const char *driver, wlmi_text *stale) {
  if (!wlmi_snapshot_is_stale(s, compiler, driver)) return;
  wlmi_text_printf(stale, "%s%s%s", compiler ? compiler : "", driver && *driver ? ", driver " : "",
                   driver ? driver : "");
}

/* ---- sharing ---- */

wlm_status wlmi_snapshot_create(wlmi_snapshot **snapshot) {
  *snapshot = wlmi_alloc_zero(1, sizeof **snapshot);
  if (!*snapshot) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "snapshot");
  atomic_init(&(*snapshot)->references, 1);
  return WLM_OK;
}

wlmi_snapshot *wlmi_snapshot_retain(wlmi_snapshot *snapshot) {
  atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
  return snapshot;
}

void wlmi_snapshot_release(wlmi_snapshot *snapshot) {
  if (!snapshot || atomic_fetch_sub_explicit(&snapshot->references, 1, memory_order_acq_rel) > 1) return;
  wlmi_snapshot_clear(snapshot);
  wlmi_free(snapshot);
}

/* ---- pins ---- */

/* Pins: a user's explicit choice overrides all measurements. */
static int fits(const wlmi_pin *pin, const wlm_stats *stats, const wlmi_bucket *here) {
  if (pin->exact) return !memcmp(pin->fingerprint, stats->fingerprint, sizeof pin->fingerprint);
  return pin->bucket.version == here->version && pin->bucket.log2_rows == here->log2_rows &&
         pin->bucket.half_log2_mean == here->half_log2_mean && pin->bucket.cv_class == here->cv_class;
}

const wlmi_pin *wlmi_pin_find(const wlmi_snapshot *s, const wlm_stats *stats, const char *problem, int64_t n) {
  const wlmi_pin *found = NULL;
  wlmi_bucket here;
  wlmi_bucket_of(stats, &here);
  for (int64_t i = 0; i < s->pin_count; i++) {
    const wlmi_pin *pin = &s->pins[i];
    if (pin->n != n || (found && (found->exact || !pin->exact)) || strcmp(pin->problem, problem) ||
        !fits(pin, stats, &here))
      continue;
    found = pin;
  }
  return found;
}
