/* Explains why a plan has its kernel, as text and as JSON. Both are written from the same facts. */
#include <math.h>
#include <time.h>

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

/* Writes null if the number is 0 or infinite, which means none. */
static void put_number(wlmi_text *text, const char *key, double value) {
  wlmi_text_printf(text, ",\"%s\":", key);
  if (value > 0 && isfinite(value))
    wlmi_text_printf(text, "%.6f", value);
  else
    wlmi_text_puts(text, "null");
}

/* writes null for an empty text */
static void put_text(wlmi_text *text, const char *key, const char *value) {
  wlmi_text_printf(text, ",\"%s\":", key);
  wlmi_text_json_string(text, *value ? value : NULL);
}

static void put_ranked_entry(wlmi_text *text, const wlmi_ranked *r) {
  wlmi_text_puts(text, "{\"variant\":");
  wlmi_text_json_string(text, r->variant);
  put_number(text, "relative", r->relative);
  put_number(text, "us", r->seconds * 1e6);
  put_number(text, "spread", r->spread);
  wlmi_text_printf(text, ",\"stale\":%s", r->stale ? "true" : "false");
  put_number(text, "predicted_us", r->predicted * 1e6);
  wlmi_text_printf(text, ",\"prepares\":%s", r->prepare > 0 ? "true" : "false");
  put_number(text, "prepare_us", r->prepare_seconds * 1e6);
  put_number(text, "prepare_calls", r->prepare);
  put_number(text, "break_even", r->break_even);
  put_text(text, "pays", r->break_even == 0 ? "" : isfinite(r->break_even) ? "reused" : "never");
  wlmi_text_puts(text, "}");
}

static void put_list(wlmi_text *text, const char *key, int count, const void *items,
                     void (*put)(wlmi_text *text, const void *items, int i)) {
  wlmi_text_printf(text, ",\"%s\":[", key);
  for (int i = 0; i < count; i++) {
    if (i) wlmi_text_puts(text, ",");
    put(text, items, i);
  }
  wlmi_text_puts(text, "]");
}

static void put_similar(wlmi_text *text, const void *items, int i) {
  const wlmi_similar *n = (const wlmi_similar *)items + i;
  wlmi_text_puts(text, "{\"matrix\":");
  wlmi_text_json_string(text, *n->matrix ? n->matrix : NULL);
  wlmi_text_printf(text, ",\"rows\":%lld,\"nnz\":%lld,\"n\":%lld,\"distance\":%.6f", (long long)n->rows,
                   (long long)n->nnz, (long long)n->n, n->distance);
  put_text(text, "variant", n->variant);
  put_number(text, "us", n->seconds * 1e6);
  wlmi_text_printf(text, ",\"stale\":%s}", n->stale ? "true" : "false");
}

static void put_refusal(wlmi_text *text, const void *items, int i) {
  const wlmi_refusal *r = (const wlmi_refusal *)items + i;
  wlmi_text_puts(text, "{\"variant\":");
  wlmi_text_json_string(text, r->variant);
  put_text(text, "reason", r->reason);
  wlmi_text_puts(text, "}");
}

static void put_ranked(wlmi_text *text, const void *items, int i) {
  put_ranked_entry(text, (const wlmi_ranked *)items + i);
}

static void put_model(wlmi_text *text, const wlmi_decision *c) {
  if (!c->trained_on) {
    wlmi_text_puts(text, ",\"model\":null");
    return;
  }
  wlmi_text_printf(text, ",\"model\":{\"trained_at\":%lld,\"measurements\":%lld,\"untrained\":%d",
                   (long long)c->trained_at, (long long)c->trained_on, c->untrained);
  wlmi_text_puts(text, "}");
}

static void put_matrix(wlmi_text *text, const wlm_stats *s) {
  char bucket_text[WLM_BUCKET_TEXT];
  print_bucket(s, bucket_text);
  wlmi_text_printf(text,
                   ",\"empty_rows\":%lld,\"top_share\":%.17g,\"bucket\":\"%s\",\"fingerprint\":\"%016llx%016llx\"",
                   (long long)s->empty_rows, s->top_share, bucket_text, (unsigned long long)s->fingerprint[0],
                   (unsigned long long)s->fingerprint[1]);
}

static void as_json(wlmi_text *text, const wlm_plan *plan) {
  const wlmi_decision *c = &plan->record.decision;
  const wlm_stats *s = &plan->record.stats;
  wlmi_text why = {0};
  describe_step(&why, c);
  wlmi_text_puts(text, "{\"problem\":");
  wlmi_text_json_string(text, plan->record.problem_key);
  wlmi_text_printf(text,
                   ",\"n\":%lld,\"rows\":%lld,\"cols\":%lld,\"nnz\":%lld,\"mean\":%.17g,\"cv\":%.17g,\"longest\":%lld,"
                   "\"device\":",
                   (long long)plan->bound.args.n, (long long)s->rows, (long long)s->cols, (long long)s->nnz, s->mean,
                   s->cv, (long long)s->longest);
  wlmi_text_json_string(text, plan->device->info.name);
  put_matrix(text, s);
  put_number(text, "transpose_us", plan->record.transpose_seconds * 1e6);
  wlmi_text_printf(text, ",\"transpose_bytes\":%zu", plan->record.transpose_bytes);
  wlmi_text_puts(text, ",\"variant\":");
  wlmi_text_json_string(text, c->variant);
  wlmi_text_printf(text, ",\"step\":\"%s\",\"why\":", wlmi_step_name(c->step));
  wlmi_text_json_string(text, why.data);
  put_text(text, "pin", c->pin);
  put_text(text, "unpinned", c->unpinned);
  put_text(text, "pin_refused", c->pin_reason);
  put_text(text, "borrowed", c->borrowed);
  put_text(text, "like", c->like);
  wlmi_text_printf(text, ",\"online\":%s", c->online ? "true" : "false");
  put_text(text, "stale", c->stale);
  put_text(text, "compiler", plan->device->info.compiler);
  put_text(text, "driver", plan->device->info.driver);
  if (c->thin_known) {
    wlmi_text_printf(text, ",\"thin\":{\"known\":%lld,\"of\":%lld,\"exact\":%s", (long long)c->thin_known,
                     (long long)c->thin_of, c->thin_exact ? "true" : "false");
    put_text(text, "variant", c->thin_variant);
    wlmi_text_puts(text, "}");
  } else {
    wlmi_text_puts(text, ",\"thin\":null");
  }
  if (isnan(c->distance))
    wlmi_text_puts(text, ",\"distance\":null");
  else
    wlmi_text_printf(text, ",\"distance\":%.6f", c->distance);
  wlmi_text_printf(text,
                   ",\"split\":\"%s\",\"deterministic\":%s,\"expected_calls\":%lld,\"prepared_bytes\":"
                   "%zu,\"is_prepared\":%s,\"refused\":%d",
                   plan->record.split, plan->record.deterministic ? "true" : "false", (long long)c->calls,
                   plan->bound.prepared_size, plan->is_prepared ? "true" : "false", c->refused);
  wlmi_text_printf(text, ",\"refused_failed\":%d,\"unprepared\":%d", c->refused_failed, c->unprepared);
  int refusals = 0;
  while (refusals < WLM_REFUSALS && *c->refusals[refusals].variant) refusals++;
  put_list(text, "refusals", refusals, c->refusals, put_refusal);
  wlmi_text_printf(text, ",\"failed\":%d", c->failed);
  put_list(text, "failures", c->failed < WLM_REFUSALS ? c->failed : WLM_REFUSALS, c->failures, put_refusal);
  put_number(text, "predicted_us", c->predicted * 1e6);
  put_number(text, "spread", c->spread);
  put_model(text, c);
  put_list(text, "nearest", c->similar_count, c->similar, put_similar);
  put_list(text, "ranking", c->ranked_count, c->ranked, put_ranked);
  wlmi_text_puts(text, ",\"other\":");
  if (*c->other.variant)
    put_ranked_entry(text, &c->other);
  else
    wlmi_text_puts(text, "null");
  wlmi_text_puts(text, "}\n");
  wlmi_text_release(&why);
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
