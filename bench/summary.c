/* bench summary FILE: the cases as a Markdown table and the ratios that matter. Every ratio is a time of somebody
 * else over our own from the same line, that is, from the same run; a time that a line does not have (an algorithm
 * that refused) takes no part. */
#include "bench/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/summary_parts.h"
#include "common/memory.h"

/* Of the best candidate, which is unprepared; cuSPARSE's own preprocess is never in the time. */
typedef enum ratio { NO_PREPROCESS, PREPROCESSED, DEFAULT, GE_SPMM, CHOSEN, RATIOS } ratio;
static const char *const ratio_texts[RATIOS] = {
    "the best cuSPARSE algorithm without preprocess",
    "the best cuSPARSE algorithm with its preprocess kept",
    "cuSPARSE's default without preprocess",
    "GE-SpMM as published",
    "what the dispatcher chose",
};
static const char *const rivals[] = {"default", "alg1", "alg2", "alg3"};
enum { RIVALS = sizeof rivals / sizeof *rivals };

/* The quickest rival; `suffix` is "" or "_nopre". */
static double best_rival(const char *line, const char *suffix, const char **who) {
  double best = NAN;
  *who = "-";
  for (int i = 0; i < RIVALS; i++) {
    char key[32];
    snprintf(key, sizeof key, "%s%s", rivals[i], suffix);
    double us = wlm_line_number(line, key);
    if (!(us > 0) || us >= best) continue;
    best = us;
    *who = rivals[i];
  }
  return best;
}

static wlm_status add(const char *line, void *state, FILE *out) {
  wlm_figure *figures = state;
  char matrix[WLM_CASE_NAME], variant[WLM_CASE_NAME];
  const char *plain_name, *prepared_name;
  double us = wlm_line_number(line, "us"), n = wlm_line_number(line, "n"), rows = wlm_line_number(line, "rows");
  double plain = best_rival(line, "_nopre", &plain_name), prepared = best_rival(line, "", &prepared_name);
  if (!(us > 0) || !(n > 0) || !wlm_line_string(line, "matrix", matrix) || !wlm_line_string(line, "variant", variant))
    return wlm_fail(WLM_ERR_PARSE, "is no line of a results file: matrix, n, us and variant are needed");
  const double ratios[RATIOS] = {
      [NO_PREPROCESS] = plain / us,
      [PREPROCESSED] = prepared / us,
      [DEFAULT] = wlm_line_number(line, "default_nopre") / us,
      [GE_SPMM] = wlm_line_number(line, "ge_spmm_us") / us,
      [CHOSEN] = wlm_line_number(line, "chosen_us") / us,
  };
  for (int i = 0; i < RATIOS; i++) wlm_figure_add(&figures[i], ratios[i], matrix, n);
  fprintf(out, "| %s | %.0f | %.1f | %.0f | `%s` | %.1f | %.1f | %.1f | %.1f (%s) | %.1f (%s) | %.2fx / %.2fx |\n",
          matrix, rows, wlm_line_number(line, "nnz") / rows, n, variant, us, wlm_line_number(line, "chosen_us"),
          wlm_line_number(line, "ge_spmm_us"), plain, plain_name, prepared, prepared_name, ratios[NO_PREPROCESS],
          ratios[PREPROCESSED]);
  return WLM_OK;
}

static void finish(const void *state, int64_t cases, FILE *out) {
  const wlm_figure *figures = state;
  fprintf(out, "\n%lld cases. Time over that of the best candidate, geometric mean and worst case:\n\n",
          (long long)cases);
  for (int i = 0; i < RATIOS; i++) {
    const wlm_figure *figure = &figures[i];
    const int ours = i == CHOSEN; /* the worst case is the least time of a rival, and the greatest of our own choice */
    if (figure->count)
      fprintf(out, "- %s: %.2fx, %.2fx (%s)\n", ratio_texts[i], wlm_figure_mean(figure),
              ours ? figure->greatest : figure->least, ours ? figure->greatest_case : figure->least_case);
  }
}

static const wlm_summary core = {
    "core",
    "| matrix | rows | nnz/row | N | best candidate | us | chosen | GE-SpMM | cuSPARSE, no preprocess | "
    "cuSPARSE, preprocessed | cuSPARSE over ours, without / with preprocess "
    "|\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    RATIOS * sizeof(wlm_figure),
    add,
    finish,
};

/* ---- any results file ---------------------------------------------------------------------------- */

static const wlm_summary *of_suite(const char *line) {
  static const wlm_summary *const others[] = {&wlm_summary_papers, &wlm_summary_sampled};
  char suite[WLM_CASE_NAME] = "";
  wlm_line_string(line, "suite", suite);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (!strcmp(others[i]->suite, suite)) return others[i];
  return &core;
}

wlm_status wlm_bench_summary(const char *path, FILE *out) {
  const wlm_summary *summary = NULL;
  void *state = NULL;
  char *line = NULL;
  size_t capacity = 0;
  int64_t number = 0;
  wlm_status status = WLM_OK;
  FILE *file = fopen(path, "r");
  if (!file) return wlm_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  while (status == WLM_OK && getline(&line, &capacity, file) > 0) {
    if (!number++) {
      summary = of_suite(line);
      state = wlm_alloc_zero(1, summary->state_size);
      if (!state) WLM_TRY(wlm_fail(WLM_ERR_OUT_OF_MEMORY, "a summary"));
      fputs(summary->heading, out);
    }
    status = summary->add(line, state, out);
    if (status != WLM_OK) wlm_fail_in(status, "%s:%lld", path, (long long)number);
  }
  if (status == WLM_OK && summary) summary->finish(state, number, out);
done:
  fclose(file);
  free(line);
  wlm_free(state);
  return status;
}
