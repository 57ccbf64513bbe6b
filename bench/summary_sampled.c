/* Suite "sampled" in short: how much is kept, how quick that is, and what it brings over cuSPARSE on the full matrix
 * and over exact kernels on a matrix that was sampled beforehand. */
#include <math.h>
#include <string.h>

#include "bench/summary_parts.h"

enum { STRATEGIES = 2 };
static const char *const strategies[STRATEGIES] = {"bucket", "fastrand"};

struct state {
  struct strategy {
    wlm_figure cusparse, presampled; /* their time over ours */
  } strategies[STRATEGIES];
};

static wlm_status add(const char *line, void *memory, FILE *out) {
  char matrix[WLM_CASE_NAME], strategy[WLM_CASE_NAME], variant[WLM_CASE_NAME], rival[WLM_CASE_NAME] = "-";
  char name[WLM_CASE_NAME + 16];
  const double us = wlm_line_number(line, "us"), n = wlm_line_number(line, "n"), s = wlm_line_number(line, "s");
  const double kept = wlm_line_number(line, "kept_share");
  const double cusparse = wlm_line_number(line, "best_cusparse_us");
  const double presampled = wlm_line_number(line, "presampled_us");
  struct state *state = memory;
  if (!(us > 0) || !(n > 0) || !(s > 0) || !wlm_line_string(line, "matrix", matrix) ||
      !wlm_line_string(line, "strategy", strategy) || !wlm_line_string(line, "variant", variant))
    return wlm_fail(WLM_ERR_PARSE, "is no line of suite sampled: matrix, n, strategy, s, us and variant are needed");
  wlm_line_string(line, "best_cusparse", rival);
  snprintf(name, sizeof name, "%.150s, S = %.0f", matrix, s);
  for (int i = 0; i < STRATEGIES; i++) {
    if (strcmp(strategies[i], strategy)) continue;
    wlm_figure_add(&state->strategies[i].cusparse, cusparse / us, name, n);
    wlm_figure_add(&state->strategies[i].presampled, presampled / us, name, n);
  }
  fprintf(out, "| %s | %.0f | %s | %.0f | %.1f %% | %.1f | `%s` |", matrix, n, strategy, s, 100 * kept, us, variant);
  if (isfinite(cusparse))
    fprintf(out, " %.1f (%s) | %.2fx |", cusparse, rival, cusparse / us);
  else
    fputs(" - | - |", out);
  if (isfinite(presampled))
    fprintf(out, " %.1f | %.2fx |\n", presampled, presampled / us);
  else
    fputs(" - | - |\n", out);
  return WLM_OK;
}

static void put(FILE *out, const char *strategy, const char *what, const wlm_figure *figure) {
  if (figure->count)
    fprintf(out, "- %s, %s: %.2fx, %.2fx (%s) to %.2fx (%s)\n", strategy, what, wlm_figure_mean(figure), figure->least,
            figure->least_case, figure->greatest, figure->greatest_case);
}

static void finish(const void *memory, int64_t lines, FILE *out) {
  const struct state *state = memory;
  fprintf(out,
          "\n%lld cases. Time of others over that of the best sampling candidate, geometric mean, least, greatest:\n\n",
          (long long)lines);
  for (int i = 0; i < STRATEGIES; i++) {
    put(out, strategies[i], "the best of cuSPARSE on the full matrix", &state->strategies[i].cusparse);
    put(out, strategies[i], "the best exact kernel on the pre-sampled matrix", &state->strategies[i].presampled);
  }
}

const wlm_summary wlm_summary_sampled = {
    "sampled",
    "| matrix | N | strategy | S | kept | us | best candidate | cuSPARSE, full matrix | over ours | exact kernels, "
    "pre-sampled | over ours |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    sizeof(struct state),
    add,
    finish,
};
