/* Explains why a plan has its kernel, as text and as JSON. Both are written from the same facts. */
#include <math.h>
#include <time.h>

#include "core/base/hash.h"
#include "core/base/json_value.h"
#include "core/base/locale.h"
#include "core/base/text.h"
#include "core/problem/structs.h"
#include "runtime/dispatch/plan.h"

static void describe_deciding(wlmi_text *text, const wlmi_decision *c) {
  switch (c->step) {
    case WLM_STEP_FINGERPRINT:
      wlmi_text_printf(text, "this very matrix was tuned for n = %lld%s", (long long)c->tuned_n,
                       c->online ? ", by times of real calls alone" : "");
      break;
    case WLM_STEP_BUCKET:
      wlmi_text_printf(text, "%lld tuned matri%s, n = %lld, %s", (long long)c->matrices, c->matrices == 1 ? "x" : "ces",
                       (long long)c->tuned_n, c->distance == 0 ? "in the same bucket" : "in the nearest bucket");
      break;
    case WLM_STEP_MODEL:
      wlmi_text_printf(text, "predicted from %lld tuned cases, the nearest at distance %.2f", (long long)c->matrices,
                       c->distance);
      break;
    case WLM_STEP_RULE:
      wlmi_text_printf(text, "nothing %s was tuned; built-in rule: %s", c->failed ? "that works here" : "like it",
                       c->rule);
      break;
    case WLM_STEP_NAMED: wlmi_text_puts(text, "named by the caller"); break;
    case WLM_STEP_PIN:
      wlmi_text_printf(text, "pinned by hand for %s; ", c->pin_exact ? "this very matrix" : "its bucket");
      if (*c->unpinned)
        wlmi_text_printf(text, "unpinned it would be %s", c->unpinned);
      else
        wlmi_text_puts(text, "unpinned there would be no choice");
      break;
    case WLM_STEP_BUILTIN:
      wlmi_text_puts(text, "nothing could be compiled here; the kernel that the library carries");
      break;
  }
}

static void describe_step(wlmi_text *text, const wlmi_decision *c) {
  describe_deciding(text, c);
  wlmi_text_puts(text, c->like);
}

/* One candidate on one line: relative cost, time, and cost and benefit of preparing. */
static void describe_ranked(wlmi_text *text, const wlmi_ranked *r) {
  wlmi_text_printf(text, "%-40s %.3fx", r->variant, r->relative);
  if (r->seconds > 0) wlmi_text_printf(text, "  %.2f us", r->seconds * 1e6);
  if (r->spread > 0 && r->seconds > 0) wlmi_text_printf(text, " +-%.1f%%", 50 * r->spread);
  if (r->predicted > 0) wlmi_text_printf(text, "  predicted %.2f us", r->predicted * 1e6);
  if (r->prepare_seconds > 0)
    wlmi_text_printf(text, "  prepare %.2f us", r->prepare_seconds * 1e6);
  else if (r->prepare > 0)
    wlmi_text_printf(text, "  prepare %.1f calls", r->prepare);
  if (r->break_even > 0 && isfinite(r->break_even))
    wlmi_text_printf(text, ", pays from %.0f calls on", r->break_even);
  else if (r->break_even > 0)
    wlmi_text_puts(text, ", never pays");
  wlmi_text_puts(text, r->stale ? "  stale\n" : "\n");
}

static void describe_model(wlmi_text *text, const wlmi_decision *c) {
  char day[16] = "";
  const time_t made_at = (time_t)c->trained_at;
  struct tm date;
  if (!c->trained_on) return;
  if (gmtime_r(&made_at, &date)) strftime(day, sizeof day, "%Y-%m-%d", &date);
  wlmi_text_printf(text, "model     trained on %lld measurements, %s", (long long)c->trained_on, day);
  if (c->untrained) wlmi_text_printf(text, "; knows nothing of %d candidates, which tuning would try", c->untrained);
  if (c->predicted > 0 && !(c->ranked_count && c->ranked[0].seconds > 0)) /* a measured time needs no prediction */
    wlmi_text_printf(text, "\nexpected  %.2f us, mostly within a factor of %.2f", c->predicted * 1e6, exp(c->spread));
  wlmi_text_puts(text, "\n");
}

static void describe_similar(wlmi_text *text, const wlmi_similar *n) {
  wlmi_text_printf(text, "%5.2f  %s, %lld rows, %lld non-zeros, n = %lld: %s %.2f us%s\n", n->distance,
                   *n->matrix ? n->matrix : "unnamed", (long long)n->rows, (long long)n->nnz, (long long)n->n,
                   n->variant, n->seconds * 1e6, n->stale ? "  stale" : "");
}

/* One line about the refused candidates: how many, and why. */
static void describe_refused(wlmi_text *text, const wlmi_decision *c) {
  const int invalid = c->refused - c->refused_failed;
  if (!c->refused && !c->unprepared) return;
  wlmi_text_puts(text, "refused   ");
  if (c->refused) wlmi_text_printf(text, "%d better ranked: ", c->refused);
  if (invalid) wlmi_text_printf(text, "%d not valid for this problem", invalid);
  if (c->refused_failed)
    wlmi_text_printf(text, "%s%d failed on this very matrix", invalid ? ", " : "", c->refused_failed);
  if (c->unprepared)
    wlmi_text_printf(text, "%s%d must be prepared, which one call does not pay", c->refused ? "; " : "", c->unprepared);
  wlmi_text_puts(text, "\n");
}

static void print_bucket(const wlm_stats *s, char bucket_text[WLM_BUCKET_TEXT]) {
  wlmi_bucket bucket;
  wlmi_bucket_of(s, &bucket);
  wlmi_bucket_print(&bucket, bucket_text);
}

static void describe_matrix(wlmi_text *text, const wlm_stats *s, int estimated) {
  char bucket_text[WLM_BUCKET_TEXT];
  if (estimated) {
    wlmi_text_printf(text, "matrix    %lld x %lld, %lld non-zeros, %.2f a row; row lengths were not measured\n",
                     (long long)s->rows, (long long)s->cols, (long long)s->nnz, s->mean);
    return;
  }
  print_bucket(s, bucket_text);
  wlmi_text_printf(text, "matrix    %lld x %lld, %lld non-zeros, %.2f a row, cv %.2f, longest row %lld\n",
                   (long long)s->rows, (long long)s->cols, (long long)s->nnz, s->mean, s->cv, (long long)s->longest);
  wlmi_text_printf(text, "          %lld empty rows, %.1f%% of the non-zeros in the longest 1%% of the rows\n",
                   (long long)s->empty_rows, 100 * s->top_share);
  wlmi_text_printf(text, "bucket    %s\n", bucket_text);
  wlmi_text_printf(text, "          fingerprint %016llx%016llx\n", (unsigned long long)s->fingerprint[0],
                   (unsigned long long)s->fingerprint[1]);
}

static void as_text(wlmi_text *text, const wlm_plan *plan) {
  const wlmi_decision *c = &plan->record.decision;
  const wlm_stats *s = &plan->record.stats;
  wlmi_text_printf(text, "problem   %s, n = %lld\n", plan->record.problem_key, (long long)plan->bound.args.n);
  describe_matrix(text, s, plan->record.estimated);
  if (plan->record.transpose_bytes)
    wlmi_text_printf(text, "transpose %zu bytes beside the matrix, made in %.2f us\n", plan->record.transpose_bytes,
                     plan->record.transpose_seconds * 1e6);
  wlmi_text_printf(text, "calls     %lld expected\n", (long long)c->calls);
  wlmi_text_printf(text, "device    %s (%s)\n", plan->device->info.name, plan->device->info.arch);
  wlmi_text_printf(text, "kernel    %s\n", c->variant);
  wlmi_text_printf(text, "step      %s: ", wlmi_step_name(c->step));
  describe_step(text, c);
  if (*c->pin && c->step != WLM_STEP_PIN)
    wlmi_text_printf(text, "\npin       %s is pinned for %s but not chosen: %s", c->pin,
                     c->pin_exact ? "this very matrix" : "its bucket", c->pin_reason);
  if (c->thin_known)
    wlmi_text_printf(
        text,
        "\ntoo thin  %s knows %lld of %lld candidates, the best of them %s, and not the one chosen: tuning "
        "again goes on",
        c->thin_exact ? "this very matrix" : "the nearest bucket", (long long)c->thin_known, (long long)c->thin_of,
        c->thin_variant);
  if (*c->borrowed)
    wlmi_text_printf(text, "\nborrowed  measured on %s, the nearest class of devices; times are that one's",
                     c->borrowed);
  if (*c->stale)
    wlmi_text_printf(text, "\nstale     measured with %s; here it is %s%s%s: tune again to measure with that", c->stale,
                     plan->device->info.compiler, *plan->device->info.driver ? ", driver " : "",
                     plan->device->info.driver);
  wlmi_text_puts(text, "\n");
  if (!isnan(c->distance)) wlmi_text_printf(text, "distance  %.2f\n", c->distance);
  wlmi_text_printf(text, "splits    a row: %s; %s\n", plan->record.split,
                   plan->record.deterministic ? "same bits every time" : "not deterministic");
  if (plan->bound.prepared_size)
    wlmi_text_printf(text, "prepares  %zu bytes; %s\n", plan->bound.prepared_size,
                     plan->is_prepared ? "done" : "wlm_plan_prepare has not run");
  describe_refused(text, c);
  for (int i = 0; i < WLM_REFUSALS && *c->refusals[i].variant; i++)
    wlmi_text_printf(text, "          %s: %s\n", c->refusals[i].variant, c->refusals[i].reason);
  if (c->failed) wlmi_text_printf(text, "failed    %d on this very matrix, which are not chosen\n", c->failed);
  for (int i = 0; i < WLM_REFUSALS && i < c->failed; i++)
    wlmi_text_printf(text, "          %s: %s\n", c->failures[i].variant, c->failures[i].reason);
  describe_model(text, c);
  for (int i = 0; i < c->similar_count; i++) {
    wlmi_text_puts(text, i ? "          " : "nearest   ");
    describe_similar(text, &c->similar[i]);
  }
  for (int i = 0; i < c->ranked_count; i++) {
    wlmi_text_puts(text, i ? "          " : "ranking   ");
    describe_ranked(text, &c->ranked[i]);
  }
  if (*c->other.variant) {
    wlmi_text_puts(text, c->other.prepare > 0 ? "reused    " : "no reuse  ");
    describe_ranked(text, &c->other);
  }
}

/* ---- JSON ---- */

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
  const wlm_stats *s = &plan->record.stats;
  char bucket[WLM_BUCKET_TEXT], fingerprint[WLM_HASH_HEX];
  print_bucket(s, bucket);
  wlmi_hash_to_hex((wlmi_hash){s->fingerprint[0], s->fingerprint[1]}, fingerprint);
  return json_pack("{s:o,s:I,s:I,s:I,s:I,s:o,s:o,s:I,s:o,s:I,s:o,s:s,s:s,s:o,s:I}", "problem",
                   wlmi_json_of_text(plan->record.problem_key), "n", (json_int_t)plan->bound.args.n, "rows",
                   (json_int_t)s->rows, "cols", (json_int_t)s->cols, "nnz", (json_int_t)s->nnz, "mean",
                   wlmi_json_of_real(s->mean), "cv", wlmi_json_of_real(s->cv), "longest", (json_int_t)s->longest,
                   "device", wlmi_json_of_text(plan->device->info.name), "empty_rows", (json_int_t)s->empty_rows,
                   "top_share", wlmi_json_of_real(s->top_share), "bucket", bucket, "fingerprint", fingerprint,
                   "transpose_us", number(plan->record.transpose_seconds * 1e6), "transpose_bytes",
                   (json_int_t)plan->record.transpose_bytes);
}

static json_t *thin_json(const wlmi_decision *c) {
  if (!c->thin_known) return json_null();
  return json_pack("{s:I,s:I,s:b,s:o}", "known", (json_int_t)c->thin_known, "of", (json_int_t)c->thin_of, "exact",
                   c->thin_exact, "variant", text_or_null(c->thin_variant));
}

static json_t *step_json(const wlm_plan *plan) {
  const wlmi_decision *c = &plan->record.decision;
  wlmi_text why = {0};
  describe_step(&why, c);
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
  const wlmi_decision *c = &plan->record.decision;
  const int failures = c->failed < WLM_REFUSALS ? c->failed : WLM_REFUSALS;
  int refusals = 0;
  while (refusals < WLM_REFUSALS && *c->refusals[refusals].variant) refusals++;
  return json_pack("{s:s,s:b,s:I,s:I,s:b,s:i,s:i,s:i,s:o,s:i,s:o}", "split", plan->record.split, "deterministic",
                   plan->record.deterministic, "expected_calls", (json_int_t)c->calls, "prepared_bytes",
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
  const wlmi_decision *c = &plan->record.decision;
  return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "predicted_us", number(c->predicted * 1e6), "spread", number(c->spread),
                   "model", model_json(c), "nearest",
                   list(c->similar_count, c->similar, sizeof *c->similar, similar_json), "ranking",
                   list(c->ranked_count, c->ranked, sizeof *c->ranked, ranked_json), "other",
                   *c->other.variant ? ranked_json(&c->other) : json_null());
}

static void as_json(wlmi_text *text, const wlm_plan *plan) {
  json_t *const parts[] = {matrix_json(plan), step_json(plan), kernel_json(plan), ranking_json(plan)};
  json_t *all = json_object();
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    text->failed |= json_object_update(all, parts[i]) != 0;
    json_decref(parts[i]);
  }
  wlmi_json_dump(all, JSON_COMPACT | JSON_REAL_PRECISION(15), text);
  wlmi_text_puts(text, "\n");
}

wlm_status wlm_plan_explain(const wlm_plan *plan, int json, char **out) {
  wlmi_text text = {0};
  if (out) *out = NULL;
  const wlm_status status = wlmi_need("wlm_plan_explain", "plan text", plan, out);
  if (status != WLM_OK) return status;
  const wlmi_c_locale locale = wlmi_c_locale_enter();
  (json ? as_json : as_text)(&text, plan->mode ? plan->mode->current(plan) : plan);
  wlmi_c_locale_leave(locale);
  return wlmi_text_take(&text, out);
}
