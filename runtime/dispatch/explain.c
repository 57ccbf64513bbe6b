#include "runtime/dispatch/explain.h"

#include <math.h>
#include <time.h>

#include "core/csr/stats.h"
#include "runtime/dispatch/layout.h"

static void describe_deciding(wlmi_text *text, const wlmi_decision *c) {
  switch (c->step) {
    case WLMI_STEP_FINGERPRINT:
      wlmi_text_printf(text, "this very matrix was tuned for this n%s",
                       c->online ? ", by times of real calls alone" : "");
      break;
    case WLMI_STEP_SIMILAR: wlmi_text_puts(text, "a matrix with nearly the same statistics was tuned"); break;
    case WLMI_STEP_MODEL:
      wlmi_text_printf(text, "predicted from %lld tuned cases, the nearest at distance %.2f", (long long)c->cases,
                       c->distance);
      if (c->rule) wlmi_text_printf(text, "; it keeps the kernel of the rules: %s", c->rule);
      break;
    case WLMI_STEP_RULE:
      wlmi_text_printf(text, "nothing %s was tuned for this n; built-in rule: %s",
                       c->failed ? "that works here" : "like it", c->rule);
      break;
    case WLMI_STEP_NAMED: wlmi_text_puts(text, "named by the caller"); break;
    case WLMI_STEP_PIN:
      wlmi_text_printf(text, "pinned by hand for %s; ", c->pin_exact ? "this very matrix" : "its bucket");
      if (*c->unpinned)
        wlmi_text_printf(text, "unpinned it would be %s", c->unpinned);
      else
        wlmi_text_puts(text, "unpinned there would be no choice");
      break;
    case WLMI_STEP_BUILTIN:
      wlmi_text_puts(text, "nothing could be compiled here; the kernel that the library carries");
      break;
    case WLMI_STEP_ONLY: wlmi_text_puts(text, "the operation has one kernel"); break;
  }
}

void wlmi_explain_step(wlmi_text *text, const wlmi_decision *c) {
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

void wlmi_explain_bucket(const wlm_stats *s, char bucket_text[WLMI_BUCKET_TEXT]) {
  wlmi_bucket bucket;
  wlmi_bucket_of(s, &bucket);
  wlmi_bucket_print(&bucket, bucket_text);
}

static void describe_matrix(wlmi_text *text, const wlm_stats *s, int estimated) {
  char bucket_text[WLMI_BUCKET_TEXT];
  if (estimated) {
    wlmi_text_printf(text, "matrix    %lld x %lld, %lld non-zeros, %.2f a row; row lengths were not measured\n",
                     (long long)s->rows, (long long)s->cols, (long long)s->nnz, s->mean);
    return;
  }
  wlmi_explain_bucket(s, bucket_text);
  wlmi_text_printf(text, "matrix    %lld x %lld, %lld non-zeros, %.2f a row, cv %.2f, longest row %lld\n",
                   (long long)s->rows, (long long)s->cols, (long long)s->nnz, s->mean, s->cv, (long long)s->longest);
  wlmi_text_printf(text, "          %lld empty rows, %.1f%% of the non-zeros in the longest 1%% of the rows\n",
                   (long long)s->empty_rows, 100 * s->top_share);
  wlmi_text_printf(text, "bucket    %s\n", bucket_text);
  if (wlmi_stats_has_fingerprint(s))
    wlmi_text_printf(text, "          fingerprint %016llx%016llx\n", (unsigned long long)s->fingerprint[0],
                     (unsigned long long)s->fingerprint[1]);
}

/* What becomes of column-major arrays. */
static void describe_orders(wlmi_text *text, const wlm_plan *plan) {
  const wlmi_arrays *arrays = &plan->shape.arrays;
  const char *before = "columns   ";
  for (int i = 0; i < arrays->count; i++) {
    const wlmi_array *array = &arrays->list[i];
    if (!array->by_columns || array->columns < 2) continue;
    wlmi_text_printf(text, "%s%s %s", before, array->name,
                     wlmi_is_copied(&plan->bound.layout, array) ? "is copied by rows" : "stays where it is");
    before = ", ";
  }
  if (*before == ',') wlmi_text_puts(text, "\n");
}

void wlmi_explain_text(wlmi_text *text, const wlm_plan *plan) {
  const wlmi_decision *c = &plan->reason.decision;
  const wlm_stats *s = &plan->reason.stats;
  wlmi_text_printf(text, "problem   %s, n = %lld\n", plan->reason.problem_key, (long long)plan->bound.args.n);
  describe_matrix(text, s, plan->reason.estimated);
  if (plan->reason.transpose_bytes)
    wlmi_text_printf(text, "transpose %zu bytes beside the matrix, made in %.2f us\n", plan->reason.transpose_bytes,
                     plan->reason.transpose_seconds * 1e6);
  wlmi_text_printf(text, "calls     %lld expected\n", (long long)c->calls);
  wlmi_text_printf(text, "device    %s (%s)\n", plan->device->info.name, plan->device->info.arch);
  wlmi_text_printf(text, "kernel    %s\n", c->variant);
  describe_orders(text, plan);
  wlmi_text_printf(text, "step      %s: ", wlmi_step_name(c->step));
  wlmi_explain_step(text, c);
  if (*c->pin && c->step != WLMI_STEP_PIN)
    wlmi_text_printf(text, "\npin       %s is pinned for %s but not chosen: %s", c->pin,
                     c->pin_exact ? "this very matrix" : "its bucket", c->pin_reason);
  if (c->thin_known)
    wlmi_text_printf(
        text,
        "\ntoo thin  of this very matrix %lld of %lld candidates were measured, the best of them %s, and not the one "
        "chosen: tuning again goes on",
        (long long)c->thin_known, (long long)c->thin_of, c->thin_variant);
  if (*c->borrowed)
    wlmi_text_printf(text, "\nborrowed  measured on %s, the nearest class of devices; times are that one's",
                     c->borrowed);
  if (*c->stale)
    wlmi_text_printf(text, "\nstale     measured with %s; here it is %s%s%s: tune again to measure with that", c->stale,
                     plan->device->info.compiler, *plan->device->info.driver ? ", driver " : "",
                     plan->device->info.driver);
  wlmi_text_puts(text, "\n");
  if (!isnan(c->distance)) wlmi_text_printf(text, "distance  %.2f\n", c->distance);
  wlmi_text_printf(text, "splits    a row: %s; %s\n", plan->shape.loaded.program.split,
                   plan->shape.loaded.program.deterministic ? "same bits every time" : "not deterministic");
  if (plan->bound.prepared_size)
    wlmi_text_printf(text, "prepares  %zu bytes; %s\n", plan->bound.prepared_size,
                     plan->is_prepared ? "done" : "wlm_plan_prepare has not run");
  describe_refused(text, c);
  for (int i = 0; i < WLMI_REFUSALS && *c->refusals[i].variant; i++)
    wlmi_text_printf(text, "          %s: %s\n", c->refusals[i].variant, c->refusals[i].reason);
  if (c->failed) wlmi_text_printf(text, "failed    %d on this very matrix, which are not chosen\n", c->failed);
  for (int i = 0; i < WLMI_REFUSALS && i < c->failed; i++)
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
