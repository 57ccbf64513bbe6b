/* Suite "sampled" in short: the share of edges kept, the time, and the speed-ups over cuSPARSE and our exact kernels on
 * the full matrix, and over our exact kernels on a matrix that was sampled in advance. */
#include <math.h>
#include <string.h>

#include "bench/summary.h"

enum { STRATEGIES = 2, OTHERS = 3 };
static const char *const strategies[STRATEGIES] = {"bucket", "fastrand"};
static const struct other {
  const char *us, *name; /* keys of a line; no name if it is always the same */
  const char *what;
} others[OTHERS] = {
    {"best_cusparse_us", "best_cusparse", "the best of cuSPARSE on the full matrix"},
    {"exact_us", NULL, "what the dispatcher chooses on the full matrix"},
    {"presampled_us", NULL, "the best exact kernel on the pre-sampled matrix"},
};

struct state {
  wlmi_figure figures[STRATEGIES][OTHERS]; /* their time over that of sampling */
};

static void put_other(const char *line, const struct other *other, double over, FILE *out) {
  char name[WLM_CASE_NAME];
  if (!isfinite(over)) {
    fputs(" - | - |", out);
    return;
  }
  fprintf(out, " %.1f", wlmi_line_number(line, other->us));
  if (other->name && wlmi_line_string(line, other->name, name)) fprintf(out, " (%s)", name);
  fprintf(out, " | %.2fx |", over);
}

static wlm_status add(const char *line, void *memory, FILE *out) {
  char matrix[WLM_CASE_NAME], strategy[WLM_CASE_NAME], variant[WLM_CASE_NAME], name[WLM_CASE_NAME + 16];
  const double us = wlmi_line_number(line, "us"), n = wlmi_line_number(line, "n"), s = wlmi_line_number(line, "s");
  const double kept = wlmi_line_number(line, "kept_share");
  struct state *state = memory;
  if (!(us > 0) || !(n > 0) || !(s > 0) || !wlmi_line_string(line, "matrix", matrix) ||
      !wlmi_line_string(line, "strategy", strategy) || !wlmi_line_string(line, "variant", variant))
    return wlmi_fail(WLM_ERR_PARSE, "is no line of suite sampled: matrix, n, strategy, s, us and variant are needed");
  snprintf(name, sizeof name, "%.150s, S = %.0f", matrix, s);
  fprintf(out, "| %s | %.0f | %s | %.0f | %.1f %% | %.1f | `%s` |", matrix, n, strategy, s, 100 * kept, us, variant);
  for (int k = 0; k < OTHERS; k++) {
    const double over = wlmi_line_number(line, others[k].us) / us;
    for (int i = 0; i < STRATEGIES; i++)
      if (!strcmp(strategies[i], strategy)) wlmi_figure_add(&state->figures[i][k], over, name, n);
    put_other(line, &others[k], over, out);
  }
  fputs("\n", out);
  return WLM_OK;
}

static void put(FILE *out, const char *strategy, const char *what, const wlmi_figure *figure) {
  if (figure->count)
    fprintf(out, "- %s, %s: %.2fx, %.2fx (%s) to %.2fx (%s)\n", strategy, what, wlmi_figure_mean(figure), figure->least,
            figure->least_case, figure->greatest, figure->greatest_case);
}

static void finish(const void *memory, int64_t lines, FILE *out) {
  const struct state *state = memory;
  fprintf(out,
          "\n%lld cases. Time of others over that of the best sampling candidate, geometric mean, least, greatest:\n\n",
          (long long)lines);
  for (int i = 0; i < STRATEGIES; i++)
    for (int k = 0; k < OTHERS; k++) put(out, strategies[i], others[k].what, &state->figures[i][k]);
}

const wlmi_summary wlmi_summary_sampled = {
    "sampled",
    "| matrix | N | strategy | S | kept | us | best candidate | cuSPARSE, full matrix | over ours | our choice, "
    "full matrix | over ours | exact kernels, pre-sampled | over ours |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    sizeof(struct state),
    add,
    finish,
};
