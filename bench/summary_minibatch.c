/* Suite "minibatch" in short: the baseline's time over ours, in each direction. The baseline is the fastest cuSPARSE
 * algorithm on a GPU, and the OpenMP loop on the host. */
#include <math.h>
#include <string.h>

#include "bench/summary.h"

static const struct direction {
  const char *name;
  double mean, worst; /* target: the least ratio */
} directions[] = {{"forward", 1.8, 1.0}, {"transposed", 1.4, 1.0}};
enum { DIRECTIONS = sizeof directions / sizeof *directions };

struct state {
  wlmi_figure_list ratios[DIRECTIONS];
};

static int direction_of(const char *name) {
  for (int i = 0; i < DIRECTIONS; i++)
    if (!strcmp(directions[i].name, name)) return i;
  return -1;
}

static wlm_status add(const char *line, void *memory, FILE *out) {
  struct state *state = memory;
  char graph[WLM_CASE_NAME], direction[WLM_CASE_NAME], baseline[WLM_CASE_NAME] = "-";
  const double us = wlmi_line_number(line, "us"), n = wlmi_line_number(line, "n");
  const double cusparse_us = wlmi_line_number(line, "cusparse_us"), openmp_us = wlmi_line_number(line, "openmp_us");
  const double baseline_us = isnan(cusparse_us) ? openmp_us : cusparse_us;
  if (!wlmi_line_string(line, "graph", graph) || !wlmi_line_string(line, "direction", direction) ||
      direction_of(direction) < 0 || !(us > 0) || !(n > 0))
    return wlmi_fail(WLM_ERR_PARSE, "is no line of suite minibatch: graph, n, direction and us are needed");
  wlmi_line_string(line, "baseline", baseline);
  wlmi_figure_list_add(&state->ratios[direction_of(direction)], 0, baseline_us / us, graph, n);
  fprintf(out, "| %s | %.0f | %s | %.0f | %.0f | %.0f |", graph, n, direction, wlmi_line_number(line, "blocks"),
          wlmi_line_number(line, "rows_mean"), wlmi_line_number(line, "nnz_mean"));
  wlmi_put_us(out, us);
  wlmi_put_us(out, baseline_us);
  fprintf(out, " %s |", baseline);
  wlmi_put_ratio(out, baseline_us / us);
  fputc('\n', out);
  return WLM_OK;
}

static void finish(const void *memory, int64_t lines, FILE *out) {
  const struct state *state = memory;
  fprintf(out,
          "\n%lld lines.\n\n| direction | cases | geometric mean of the speed-up | target | worst | target |\n"
          "|---|---|---|---|---|---|\n",
          (long long)lines);
  for (int i = 0; i < DIRECTIONS; i++) {
    const struct direction *d = &directions[i];
    const wlmi_figure *all = &state->ratios[i].all;
    if (!all->count) continue;
    fprintf(out, "| %s | %d | %.2fx | at least %.1fx, %s |", d->name, all->count, wlmi_figure_mean(all), d->mean,
            wlmi_figure_mean(all) >= d->mean ? "met" : "missed");
    wlmi_figure_list_put(&state->ratios[i], 3, out);
    fprintf(out, " | at least %.1fx, %s |\n", d->worst, all->least >= d->worst ? "met" : "missed");
  }
}

const wlmi_summary wlmi_summary_minibatch = {
    "minibatch",
    "| graph | N | direction | blocks | rows | nnz | us | baseline us | method | speed-up |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n",
    sizeof(struct state),
    add,
    finish,
};
