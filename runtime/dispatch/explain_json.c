#include <math.h>

#include "core/base/hash.h"
#include "core/base/json_value.h"
#include "core/csr/stats.h"
#include "runtime/dispatch/explain.h"

/* With six decimals. */
static json_t *distance(double value) { return wlmi_json_of_real(round(value * 1e6) / 1e6); }

/* The same; null if it is 0 or infinite, which means none. */
static json_t *number(double value) { return value > 0 ? distance(value) : json_null(); }

static json_t *text_or_null(const char *text) { return wlmi_json_of_text(*text ? text : NULL); }

static json_t *ranked_json(const void *item) {
  const wlmi_ranked *r = item;
  const char *pays = isfinite(r->break_even) ? "reused" : "never";
  return json_pack("{s:o,s:o,s:o,s:o,s:b,s:o,s:b,s:o,s:o,s:o,s:o}", "variant", wlmi_json_of_text(r->variant),
                   "relative", number(r->relative), "us", number(r->seconds * 1e6), "spread", number(r->spread),
                   "stale", r->stale, "predicted_us", number(r->predicted * 1e6), "prepares", r->prepare > 0,
                   "prepare_us", number(r->prepare_seconds * 1e6), "prepare_calls", number(r->prepare), "break_even",
                   number(r->break_even), "pays", text_or_null(r->break_even == 0 ? "" : pays));
}

static json_t *similar_json(const void *item) {
  const wlmi_similar *n = item;
  return json_pack("{s:o,s:I,s:I,s:I,s:o,s:o,s:o,s:b}", "matrix", text_or_null(n->matrix), "rows", (json_int_t)n->rows,
                   "nnz", (json_int_t)n->nnz, "n", (json_int_t)n->n, "distance", distance(n->distance), "variant",
                   text_or_null(n->variant), "us", number(n->seconds * 1e6), "stale", n->stale);
}

static json_t *refusal_json(const void *item) {
  const wlmi_refusal *r = item;
  return json_pack("{s:o,s:o}", "variant", wlmi_json_of_text(r->variant), "reason", text_or_null(r->reason));
}

static json_t *list(int count, const void *items, size_t size, json_t *(*make)(const void *item)) {
  json_t *array = json_array();
  for (int i = 0; i < count; i++)
    if (json_array_append_new(array, make((const char *)items + (size_t)i * size))) {
      json_decref(array);
      return NULL;
    }
  return array;
}

static json_t *matrix_json(const wlm_plan *plan) {
  const wlm_stats *s = &plan->reason.stats;
  char bucket[WLMI_BUCKET_TEXT], fingerprint[WLMI_HASH_HEX];
  wlmi_explain_bucket(s, bucket);
  wlmi_hash_to_hex((wlmi_hash){s->fingerprint[0], s->fingerprint[1]}, fingerprint);
  return json_pack(
      "{s:o,s:I,s:I,s:I,s:I,s:o,s:o,s:I,s:o,s:I,s:o,s:s,s:o,s:o,s:I}", "problem",
      wlmi_json_of_text(plan->reason.problem_key), "n", (json_int_t)plan->bound.args.n, "rows", (json_int_t)s->rows,
      "cols", (json_int_t)s->cols, "nnz", (json_int_t)s->nnz, "mean", wlmi_json_of_real(s->mean), "cv",
      wlmi_json_of_real(s->cv), "longest", (json_int_t)s->longest, "device", wlmi_json_of_text(plan->device->info.name),
      "empty_rows", (json_int_t)s->empty_rows, "top_share", wlmi_json_of_real(s->top_share), "bucket", bucket,
      "fingerprint", wlmi_json_of_text(wlmi_stats_has_fingerprint(s) ? fingerprint : NULL), "transpose_us",
      number(plan->reason.transpose_seconds * 1e6), "transpose_bytes", (json_int_t)plan->reason.transpose_bytes);
}

static json_t *thin_json(const wlmi_decision *c) {
  if (!c->thin_known) return json_null();
  return json_pack("{s:I,s:I,s:o}", "known", (json_int_t)c->thin_known, "of", (json_int_t)c->thin_of, "variant",
                   text_or_null(c->thin_variant));
}

static json_t *step_json(const wlm_plan *plan) {
  const wlmi_decision *c = &plan->reason.decision;
  wlmi_text why = {0};
  wlmi_explain_step(&why, c);
  json_t *step =
      json_pack("{s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:o,s:o,s:o,s:o,s:o}", "variant", wlmi_json_of_text(c->variant),
                "step", wlmi_step_name(c->step), "why", wlmi_json_of_text(why.data), "pin", text_or_null(c->pin),
                "unpinned", text_or_null(c->unpinned), "pin_refused", text_or_null(c->pin_reason), "borrowed",
                text_or_null(c->borrowed), "like", text_or_null(c->like), "online", c->online, "stale",
                text_or_null(c->stale), "compiler", text_or_null(plan->device->info.compiler), "driver",
                text_or_null(plan->device->info.driver), "thin", thin_json(c), "distance", distance(c->distance));
  wlmi_text_release(&why);
  return step;
}

static json_t *kernel_json(const wlm_plan *plan) {
  const wlmi_decision *c = &plan->reason.decision;
  const int failures = c->failed < WLMI_REFUSALS ? c->failed : WLMI_REFUSALS;
  int refusals = 0;
  while (refusals < WLMI_REFUSALS && *c->refusals[refusals].variant) refusals++;
  return json_pack("{s:s,s:b,s:I,s:I,s:b,s:i,s:i,s:i,s:o,s:i,s:o}", "split", plan->reason.split, "deterministic",
                   plan->reason.deterministic, "expected_calls", (json_int_t)c->calls, "prepared_bytes",
                   (json_int_t)plan->bound.prepared_size, "is_prepared", plan->is_prepared, "refused", c->refused,
                   "refused_failed", c->refused_failed, "unprepared", c->unprepared, "refusals",
                   list(refusals, c->refusals, sizeof *c->refusals, refusal_json), "failed", c->failed, "failures",
                   list(failures, c->failures, sizeof *c->failures, refusal_json));
}

static json_t *model_json(const wlmi_decision *c) {
  if (!c->trained_on) return json_null();
  return json_pack("{s:I,s:I,s:i}", "trained_at", (json_int_t)c->trained_at, "measurements", (json_int_t)c->trained_on,
                   "untrained", c->untrained);
}

static json_t *ranking_json(const wlm_plan *plan) {
  const wlmi_decision *c = &plan->reason.decision;
  return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "expected_us", number(wlmi_decision_seconds(c) * 1e6),
                   "predicted_us", number(c->predicted * 1e6), "spread", number(c->spread), "model", model_json(c),
                   "nearest", list(c->similar_count, c->similar, sizeof *c->similar, similar_json), "ranking",
                   list(c->ranked_count, c->ranked, sizeof *c->ranked, ranked_json), "other",
                   *c->other.variant ? ranked_json(&c->other) : json_null());
}

wlm_status wlmi_explain_json(wlmi_text *text, const wlm_plan *plan) {
  json_t *const parts[] = {matrix_json(plan), step_json(plan), kernel_json(plan), ranking_json(plan)};
  json_t *all = json_object();
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    text->failed |= json_object_update(all, parts[i]) != 0;
    json_decref(parts[i]);
  }
  wlmi_json_dump(all, JSON_COMPACT | JSON_REAL_PRECISION(15), text);
  wlmi_text_puts(text, "\n");
  return WLM_OK;
}
