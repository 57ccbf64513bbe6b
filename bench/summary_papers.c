/* Suite "papers" in short: GFLOP/s of each step, and for each N the gain of a step over the one before. */
#include <math.h>

#include "bench/summary.h"

enum { STEPS = 5, GAINS = 5, MAX_WIDTHS = 16 };

static const char *const steps[STEPS] = {"algorithm1", "crc", "cwm2", "cwm4", "cwm8"};
static const struct gain { int step, base; /* of the steps */ } gains[GAINS] = {{1, 0}, {2, 1}, {3, 1}, {4, 1}, {2, 0}};

struct width {
  double n;
  wlmi_figure gains[GAINS];
};
struct state {
  int count;
  struct width widths[MAX_WIDTHS + 1]; /* in order of appearance; the last element is for all widths together */
};

/* NULL where there are too many. */
static struct width *width_of(struct state *state, double n) {
  for (int i = 0; i < state->count; i++)
    if (state->widths[i].n == n) return &state->widths[i];
  if (state->count == MAX_WIDTHS) return NULL;
  state->widths[state->count].n = n;
  return &state->widths[state->count++];
}

static void put_number(FILE *out, double value, int decimals, const char *unit) {
  if (isfinite(value))
    fprintf(out, " %.*f%s |", decimals, value, unit);
  else
    fputs(" - |", out);
}

static wlm_status add(const char *line, void *memory, FILE *out) {
  char matrix[WLM_CASE_NAME], best[WLM_CASE_NAME];
  const char *figures = wlmi_line_value(line, "gflops");
  const double n = wlmi_line_number(line, "n"), rows = wlmi_line_number(line, "rows");
  struct state *state = memory;
  double values[STEPS], greatest = NAN;
  if (!figures || !(n > 0) || !wlmi_line_string(line, "matrix", matrix) || !wlmi_line_string(line, "best", best))
    return wlmi_fail(WLM_ERR_PARSE, "is no line of suite papers: matrix, n, gflops and best are needed");
  struct width *width = width_of(state, n), *all = &state->widths[MAX_WIDTHS];
  if (!width) return wlmi_fail(WLM_ERR_UNSUPPORTED, "more than %d widths", MAX_WIDTHS);
  for (int i = 0; i < STEPS; i++) {
    values[i] = wlmi_line_number(figures, steps[i]);
    greatest = fmax(greatest, values[i]);
  }
  for (int i = 0; i < GAINS; i++) {
    const double gain = values[gains[i].step] / values[gains[i].base];
    wlmi_figure_add(&width->gains[i], gain, matrix, n);
    wlmi_figure_add(&all->gains[i], gain, matrix, n);
  }
  fprintf(out, "| %s | %.0f | %.1f | %.0f |", matrix, rows, wlmi_line_number(line, "nnz") / rows, n);
  for (int i = 0; i < STEPS; i++) put_number(out, values[i], 1, "");
  fprintf(out, " %s |", best);
  put_number(out, greatest / values[0], 2, "x");
  fputs("\n", out);
  return WLM_OK;
}

static void put_width(FILE *out, const struct width *width) {
  for (int i = 0; i < GAINS; i++) put_number(out, wlmi_figure_mean(&width->gains[i]), 2, "x");
  fputs("\n", out);
}

static void finish(const void *memory, int64_t lines, FILE *out) {
  const struct state *state = memory;
  fprintf(out, "\n%lld cases. Geometric means of the speed-up:\n\n| N |", (long long)lines);
  for (int i = 0; i < GAINS; i++) fprintf(out, " %s over %s |", steps[gains[i].step], steps[gains[i].base]);
  fputs("\n|---|---|---|---|---|---|\n", out);
  for (int i = 0; i < state->count; i++) {
    fprintf(out, "| %.0f |", state->widths[i].n);
    put_width(out, &state->widths[i]);
  }
  fputs("| all |", out);
  put_width(out, &state->widths[MAX_WIDTHS]);
}

const wlmi_summary wlmi_summary_papers = {
    "papers",
    "| matrix | rows | nnz/row | N | Algorithm 1, GFLOP/s | CRC | CRC, CWM 2 | CWM 4 | CWM 8 | best | over Algorithm 1 "
    "|\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    sizeof(struct state),
    add,
    finish,
};
