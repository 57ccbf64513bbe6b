/* Suite "dispatch" in short: each call's host time and its target. */
#include <math.h>
#include <string.h>

#include "bench/summary.h"

static const struct target {
  const char *name;
  double us;         /* at most */
  int over_baseline; /* the target is relative to the baseline */
} targets[] = {{"context_create", 20000, 0}, {"plan_known", 5, 0},      {"rebind", 0.5, 0}, {"matrix_estimated", 1, 0},
               {"matrix_measured", 60, 0},   {"spmm_new_matrix", 3, 1}, {"execute", 0.3, 1}};

struct state {
  wlmi_figure_list ratios; /* of a call over its baseline */
  int met, missed;
};

static const struct target *target_of(const char *name) {
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    if (!strcmp(targets[i].name, name)) return &targets[i];
  return NULL;
}

static void put_us(FILE *out, double us) {
  if (isfinite(us))
    fprintf(out, " %.2f |", us);
  else
    fputs(" - |", out);
}

static wlm_status add(const char *line, void *memory, FILE *out) {
  struct state *state = memory;
  char name[WLM_CASE_NAME];
  const double us = wlmi_line_number(line, "us"), baseline_us = wlmi_line_number(line, "baseline_us");
  const struct target *target = wlmi_line_string(line, "case", name) ? target_of(name) : NULL;
  if (!target) return wlmi_fail(WLM_ERR_PARSE, "is no line of suite dispatch: a known case is needed");
  const int met = us <= target->us + (target->over_baseline ? baseline_us : 0); /* false if a time is missing */
  state->met += met;
  state->missed += !met;
  wlmi_figure_list_add(&state->ratios, 1, us / baseline_us, name, wlmi_line_number(line, "n"));
  fprintf(out, "| %s |", name);
  put_us(out, us);
  put_us(out, baseline_us);
  wlmi_put_ratio(out, us / baseline_us);
  fprintf(out, " %s%g us, %s |\n", target->over_baseline ? "at most the baseline + " : "at most ", target->us,
          met ? "met" : "missed");
  return WLM_OK;
}

static void finish(const void *memory, int64_t lines, FILE *out) {
  const struct state *state = memory;
  fprintf(out, "\n%lld cases, %d targets met, %d missed.\n", (long long)lines, state->met, state->missed);
  if (!state->ratios.all.count) return;
  fprintf(out, "\nTime over the baseline, geometric mean: %.2fx; worst:", wlmi_figure_mean(&state->ratios.all));
  wlmi_figure_list_put(&state->ratios, WLM_WORST, out);
  fputc('\n', out);
}

const wlmi_summary wlmi_summary_dispatch = {
    "dispatch", "| case | us | baseline us | over it | target |\n|---|---|---|---|---|\n", sizeof(struct state), add,
    finish,
};
