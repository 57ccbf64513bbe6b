/* Suite "selection" in short: in each mode the choice's time over that of the best candidate, and the best fixed
 * variant's time over the choice's. */
#include <math.h>
#include <string.h>

#include "bench/summary.h"

static const struct mode {
  const char *name;
  double mean, worst; /* target: the greatest ratio of choice to best; 0 = none */
} modes[] = {{"tuned", 1.02, 1.10}, {"loo", 1.08, 1.35}, {"estimated", 1.15, 2.0}, {"rule", 1.25, 0}};
enum { MODES = sizeof modes / sizeof *modes };
static const double fixed_target = 1.2;

struct state {
  wlmi_figure_list chosen[MODES], fixed[MODES];
};

static int mode_of(const char *name) {
  for (int i = 0; i < MODES; i++)
    if (!strcmp(modes[i].name, name)) return i;
  return -1;
}

static wlm_status add(const char *line, void *memory, FILE *out) {
  struct state *state = memory;
  char matrix[WLM_CASE_NAME], mode[WLM_CASE_NAME], variant[WLM_CASE_NAME] = "-", best[WLM_CASE_NAME] = "-";
  char source[WLM_CASE_NAME] = "-";
  const double us = wlmi_line_number(line, "us"), best_us = wlmi_line_number(line, "best_us");
  const double fixed_us = wlmi_line_number(line, "best_fixed_us"), n = wlmi_line_number(line, "n");
  if (!wlmi_line_string(line, "matrix", matrix) || !wlmi_line_string(line, "mode", mode) || mode_of(mode) < 0)
    return wlmi_fail(WLM_ERR_PARSE, "is no line of the results of selection: matrix and mode are needed");
  wlmi_line_string(line, "variant", variant);
  wlmi_line_string(line, "best_variant", best);
  wlmi_line_string(line, "source", source);
  wlmi_figure_list_add(&state->chosen[mode_of(mode)], 1, us / best_us, matrix, n);
  wlmi_figure_list_add(&state->fixed[mode_of(mode)], 0, fixed_us / us, matrix, n);
  fprintf(out, "| %s | %.0f | %s | %s | `%s` |", matrix, n, mode, source, variant);
  wlmi_put_us(out, us);
  wlmi_put_ratio(out, us / best_us);
  wlmi_put_ratio(out, fixed_us / us);
  fprintf(out, " `%s` |\n", best);
  return WLM_OK;
}

static void put_target(FILE *out, const char *bound, double target, int met) {
  if (target > 0)
    fprintf(out, " %s %.2fx, %s |", bound, target, met ? "met" : "missed");
  else
    fputs(" - |", out);
}

static void finish(const void *memory, int64_t lines, FILE *out) {
  const struct state *state = memory;
  fprintf(out,
          "\n%lld lines.\n\n| mode | time of | cases | geometric mean | target | worst | target |\n"
          "|---|---|---|---|---|---|---|\n",
          (long long)lines);
  for (int i = 0; i < MODES; i++) {
    const wlmi_figure *chosen = &state->chosen[i].all, *fixed = &state->fixed[i].all;
    if (chosen->count) {
      fprintf(out, "| %s | the choice over the best | %d | %.3fx |", modes[i].name, chosen->count,
              wlmi_figure_mean(chosen));
      put_target(out, "at most", modes[i].mean, wlmi_figure_mean(chosen) <= modes[i].mean);
      fprintf(out, " %.2fx (%s) |", chosen->greatest, chosen->greatest_case);
      put_target(out, "at most", modes[i].worst, chosen->greatest <= modes[i].worst);
      fputc('\n', out);
    }
    if (fixed->count) {
      fprintf(out, "| %s | the best fixed variant over the choice | %d | %.3fx |", modes[i].name, fixed->count,
              wlmi_figure_mean(fixed));
      put_target(out, "at least", fixed_target, wlmi_figure_mean(fixed) >= fixed_target);
      fprintf(out, " %.2fx (%s) | - |\n", fixed->least, fixed->least_case);
    }
  }
  for (int i = 0; i < MODES; i++) {
    if (!state->chosen[i].all.count) continue;
    fprintf(out, "\nThe worst, %s:", modes[i].name);
    wlmi_figure_list_put(&state->chosen[i], WLM_WORST, out);
    fputc('\n', out);
  }
}

const wlmi_summary wlmi_summary_selection = {
    "selection",
    "| matrix | N | mode | source | chosen | us | over the best | best fixed over it | best |\n"
    "|---|---|---|---|---|---|---|---|---|\n",
    sizeof(struct state),
    add,
    finish,
};
