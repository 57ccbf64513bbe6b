#include <math.h>

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/csr/stats.h"
#include "runtime/dispatch/explain.h"

static double rounded(double value) { return round(value * 1e6) / 1e6; } /* to six decimals */

/* The same; what is no number is null, as 0 and infinity are, which mean none. */
static double number(double value) { return value > 0 ? rounded(value) : (double)NAN; }

static void put_ranked(wlmi_text *out, const char *key, const wlmi_ranked *r) {
  wlmi_json_open(out, key, '{');
  wlmi_json_put(out, "variant=%s relative=%.15g us=%.15g spread=%.15g stale=%i predicted_us=%.15g prepares=%i",
                r->variant, number(r->relative), number(r->seconds * 1e6), number(r->spread), r->stale,
                number(r->predicted * 1e6), r->prepare > 0);
  wlmi_json_put(out, "prepare_us=%.15g prepare_calls=%.15g break_even=%.15g pays=%s", number(r->prepare_seconds * 1e6),
                number(r->prepare), number(r->break_even),
                r->break_even == 0        ? ""
                : isfinite(r->break_even) ? "reused"
                                          : "never");
  wlmi_json_close(out, '}');
}

static void put_similar(wlmi_text *out, const wlmi_similar *n) {
  wlmi_json_open(out, NULL, '{');
  wlmi_json_put(out, "matrix=%s rows=%jd nnz=%jd n=%jd distance=%.15g variant=%s us=%.15g stale=%i", n->matrix, n->rows,
                n->nnz, n->n, rounded(n->distance), n->variant, number(n->seconds * 1e6), n->stale);
  wlmi_json_close(out, '}');
}

static void put_refusals(wlmi_text *out, const char *key, const wlmi_refusal *refusals, int count) {
  wlmi_json_open(out, key, '[');
  for (int i = 0; i < count && *refusals[i].variant; i++) {
    wlmi_json_open(out, NULL, '{');
    wlmi_json_put(out, "variant=%s reason=%s", refusals[i].variant, refusals[i].reason);
    wlmi_json_close(out, '}');
  }
  wlmi_json_close(out, ']');
}

static void put_matrix(wlmi_text *out, const wlm_plan *plan) {
  const wlm_stats *s = &plan->reason.stats;
  char bucket[WLMI_BUCKET_TEXT], fingerprint[WLMI_HASH_HEX];
  wlmi_explain_bucket(s, bucket);
  wlmi_hash_to_hex((wlmi_hash){s->fingerprint[0], s->fingerprint[1]}, fingerprint);
  wlmi_json_put(out, "problem=%s n=%jd rows=%jd cols=%jd nnz=%jd mean=%.15g cv=%.15g longest=%jd device=%s",
                plan->reason.problem_key, (intmax_t)plan->bound.args.n, s->rows, s->cols, s->nnz, s->mean, s->cv,
                s->longest, plan->device->info.name);
  wlmi_json_put(out, "empty_rows=%jd top_share=%.15g bucket=%s fingerprint=%s transpose_us=%.15g transpose_bytes=%jd",
                s->empty_rows, s->top_share, bucket, wlmi_stats_has_fingerprint(s) ? fingerprint : "",
                number(plan->reason.transpose_seconds * 1e6), (intmax_t)plan->reason.transpose_bytes);
}

/* An object whose members follow, or null. */
static int open_if(wlmi_text *out, const char *key, int is_there) {
  if (is_there)
    wlmi_json_open(out, key, '{');
  else
    wlmi_json_raw(out, key, "null");
  return is_there;
}

static void put_step(wlmi_text *out, const wlm_plan *plan) {
  const wlmi_decision *c = &plan->reason.decision;
  const wlmi_device_info *device = &plan->device->info;
  wlmi_text why = {0};
  wlmi_explain_step(&why, c);
  wlmi_json_put(out, "variant=%s step=%s why=%s pin=%s unpinned=%s pin_refused=%s borrowed=%s like=%s online=%i",
                c->variant, wlmi_step_name(c->step), why.data, c->pin, c->unpinned, c->pin_reason, c->borrowed, c->like,
                c->online);
  wlmi_json_put(out, "stale=%s compiler=%s driver=%s", c->stale, device->compiler, device->driver);
  if (open_if(out, "thin", c->thin_known != 0)) {
    wlmi_json_put(out, "known=%jd of=%jd variant=%s", c->thin_known, c->thin_of, c->thin_variant);
    wlmi_json_close(out, '}');
  }
  wlmi_json_put(out, "distance=%.15g", rounded(c->distance));
  out->failed |= why.failed;
  wlmi_text_release(&why);
}

static void put_kernel(wlmi_text *out, const wlm_plan *plan) {
  const wlmi_decision *c = &plan->reason.decision;
  const wlmi_program *program = &plan->shape.loaded.program;
  wlmi_json_put(out, "split=%s deterministic=%i expected_calls=%jd prepared_bytes=%jd is_prepared=%i", program->split,
                program->deterministic, c->calls, (intmax_t)plan->bound.prepared_size, plan->is_prepared);
  wlmi_json_put(out, "refused=%d refused_failed=%d unprepared=%d", c->refused, c->refused_failed, c->unprepared);
  put_refusals(out, "refusals", c->refusals, WLMI_REFUSALS);
  wlmi_json_integer(out, "failed", c->failed);
  put_refusals(out, "failures", c->failures, c->failed < WLMI_REFUSALS ? c->failed : WLMI_REFUSALS);
}

static void put_ranking(wlmi_text *out, const wlmi_decision *c) {
  wlmi_json_put(out, "expected_us=%.15g predicted_us=%.15g spread=%.15g", number(wlmi_decision_seconds(c) * 1e6),
                number(c->predicted * 1e6), number(c->spread));
  if (open_if(out, "model", c->trained_on != 0)) {
    wlmi_json_put(out, "trained_at=%jd measurements=%jd untrained=%d", c->trained_at, c->trained_on, c->untrained);
    wlmi_json_close(out, '}');
  }
  wlmi_json_open(out, "nearest", '[');
  for (int i = 0; i < c->similar_count; i++) put_similar(out, &c->similar[i]);
  wlmi_json_close(out, ']');
  wlmi_json_open(out, "ranking", '[');
  for (int i = 0; i < c->ranked_count; i++) put_ranked(out, NULL, &c->ranked[i]);
  wlmi_json_close(out, ']');
  if (*c->other.variant)
    put_ranked(out, "other", &c->other);
  else
    wlmi_json_raw(out, "other", "null");
}

void wlmi_explain_json(wlmi_text *text, const wlm_plan *plan) {
  wlmi_json_open(text, NULL, '{');
  put_matrix(text, plan);
  put_step(text, plan);
  put_kernel(text, plan);
  put_ranking(text, &plan->reason.decision);
  wlmi_json_close(text, '}');
  wlmi_text_puts(text, "\n");
}
