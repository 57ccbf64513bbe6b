/* Why this kernel, for people and as JSON. One list of facts, two ways to write it. */
#include "common/locale.h"
#include "common/text.h"
#include "runtime/dispatch/plan.h"

static void describe_step(wlm_text *text, const wlm_plan *plan) {
  const wlm_decision *c = &plan->decision;
  switch (c->step) {
    case WLM_STEP_FINGERPRINT:
      wlm_text_printf(text, "this very matrix was tuned for n = %lld", (long long)c->tuned_n);
      break;
    case WLM_STEP_BUCKET:
      wlm_text_printf(text, "%lld tuned matri%s, n = %lld, %s", (long long)c->matrices, c->matrices == 1 ? "x" : "ces",
                      (long long)c->tuned_n, c->distance == 0 ? "in the same bucket" : "in the nearest bucket");
      break;
    case WLM_STEP_RULE: wlm_text_printf(text, "nothing like it was tuned; built-in rule: %s", c->rule); break;
    case WLM_STEP_NAMED: wlm_text_puts(text, "named by the caller"); break;
    case WLM_STEP_BUILTIN:
      wlm_text_puts(text, "nothing could be compiled here; the kernel that the library carries");
      break;
  }
}

static void as_text(wlm_text *text, const wlm_plan *plan) {
  const wlm_decision *c = &plan->decision;
  const wlm_stats *s = &plan->stats;
  wlm_text_printf(text, "problem   %s, n = %lld\n", plan->problem_key, (long long)plan->args.n);
  wlm_text_printf(text, "matrix    %lld x %lld, %lld non-zeros, %.2f a row, cv %.2f, longest row %lld\n",
                  (long long)s->rows, (long long)s->cols, (long long)s->nnz, s->mean, s->cv, (long long)s->longest);
  wlm_text_printf(text, "device    %s (%s)\n", plan->device->info.name, plan->device->info.arch);
  wlm_text_printf(text, "kernel    %s\n", c->variant);
  wlm_text_printf(text, "step      %s: ", wlm_step_name(c->step));
  describe_step(text, plan);
  wlm_text_printf(text, "\ndistance  %.2f\n", c->distance);
  wlm_text_printf(text, "splits    a row: %s; %s\n", plan->split,
                  plan->deterministic ? "same bits every time" : "not deterministic");
  if (c->refused) wlm_text_printf(text, "refused   %d better ranked, not valid for this problem\n", c->refused);
  for (int i = 0; i < c->runner_count; i++) {
    const wlm_runner_up *r = &c->runners[i];
    wlm_text_printf(text, "%s%-40s %.3fx", i ? "          " : "ranking   ", r->variant, r->relative);
    if (r->seconds > 0) wlm_text_printf(text, "  %.2f us", r->seconds * 1e6);
    wlm_text_puts(text, "\n");
  }
}

static void as_json(wlm_text *text, const wlm_plan *plan) {
  const wlm_decision *c = &plan->decision;
  const wlm_stats *s = &plan->stats;
  wlm_text why = {0};
  describe_step(&why, plan);
  wlm_text_puts(text, "{\"problem\":");
  wlm_text_json_string(text, plan->problem_key);
  wlm_text_printf(text,
                  ",\"n\":%lld,\"rows\":%lld,\"cols\":%lld,\"nnz\":%lld,\"mean\":%.17g,\"cv\":%.17g,\"longest\":%lld,"
                  "\"device\":",
                  (long long)plan->args.n, (long long)s->rows, (long long)s->cols, (long long)s->nnz, s->mean, s->cv,
                  (long long)s->longest);
  wlm_text_json_string(text, plan->device->info.name);
  wlm_text_puts(text, ",\"variant\":");
  wlm_text_json_string(text, c->variant);
  wlm_text_printf(text, ",\"step\":\"%s\",\"why\":", wlm_step_name(c->step));
  wlm_text_json_string(text, why.data);
  wlm_text_printf(text, ",\"distance\":%.6f,\"split\":\"%s\",\"deterministic\":%s,\"refused\":%d,\"ranking\":[",
                  c->distance, plan->split, plan->deterministic ? "true" : "false", c->refused);
  for (int i = 0; i < c->runner_count; i++) {
    const wlm_runner_up *r = &c->runners[i];
    wlm_text_puts(text, i ? ",{\"variant\":" : "{\"variant\":");
    wlm_text_json_string(text, r->variant);
    wlm_text_printf(text, ",\"relative\":%.6f,\"us\":", r->relative);
    if (r->seconds > 0)
      wlm_text_printf(text, "%.6f}", r->seconds * 1e6);
    else
      wlm_text_puts(text, "null}");
  }
  wlm_text_puts(text, "]}\n");
  wlm_text_release(&why);
}

wlm_status wlm_plan_explain(const wlm_plan *plan, int json, char **out) {
  wlm_text text = {0};
  const wlm_c_locale locale = wlm_c_locale_enter();
  (json ? as_json : as_text)(&text, plan);
  wlm_c_locale_leave(locale);
  return wlm_text_take(&text, out);
}
