/* bench summary FILE: writes a Markdown table of the cases and their means, by the rules of the file's suite. */
#include "bench/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/printable.h"

wlm_status wlmi_results_each(const char *path, wlm_status (*each)(void *user, const char *line), void *user) {
  char *line = NULL;
  size_t capacity = 0;
  wlm_status status = WLM_OK;
  FILE *file = fopen(path, "r");
  if (!file) return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  for (int64_t number = 1; status == WLM_OK && getline(&line, &capacity, file) > 0; number++) {
    status = each(user, line);
    if (status != WLM_OK) wlmi_fail_in(status, "%s:%lld", path, (long long)number);
  }
  fclose(file);
  free(line);
  return status;
}

/* ---- the summary of a file ---- */

static const wlmi_summary *of_suite(const char *line) {
  static const wlmi_summary *const others[] = {&wlmi_summary_papers,    &wlmi_summary_sampled,
                                               &wlmi_summary_operators, &wlmi_summary_selection,
                                               &wlmi_summary_minibatch, &wlmi_summary_dispatch};
  char suite[WLM_CASE_NAME] = "";
  wlmi_line_string(line, "suite", suite);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (!strcmp(others[i]->suite, suite)) return others[i];
  return &wlmi_summary_core;
}

struct summing {
  const wlmi_summary *summary; /* of the first line's suite */
  void *state;
  int64_t lines;
  FILE *out;
};

static wlm_status add_line(void *user, const char *line) {
  struct summing *s = user;
  if (!s->lines++) {
    s->summary = of_suite(line);
    s->state = wlmi_alloc_zero(1, s->summary->state_size);
    if (!s->state) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a summary");
    fputs(s->summary->heading, s->out);
  }
  return s->summary->add(line, s->state, s->out);
}

wlm_status wlmi_bench_summary(const char *path, FILE *out) {
  struct summing s = {.out = out};
  wlm_status status = wlmi_results_each(path, add_line, &s);
  if (status == WLM_OK && s.summary) s.summary->finish(s.state, s.lines, out);
  wlmi_free(s.state);
  return status;
}

/* ---- lines and figures ---- */

const char *wlmi_line_value(const char *line, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *found = line ? strstr(line, quoted) : NULL;
  return found ? found + strlen(quoted) : NULL;
}

double wlmi_line_number(const char *line, const char *key) {
  const char *value = wlmi_line_value(line, key);
  char *end;
  double number = value ? strtod(value, &end) : NAN;
  return value && end != value ? number : NAN;
}

int wlmi_line_string(const char *line, const char *key, char out[WLM_CASE_NAME]) {
  char raw[WLM_CASE_NAME];
  const char *value = wlmi_line_value(line, key);
  size_t size = value && *value == '"' ? strcspn(value + 1, "\"") : WLM_CASE_NAME;
  if (size >= WLM_CASE_NAME) return 0;
  memcpy(raw, value + 1, size);
  raw[size] = 0;
  wlmi_printable(raw, 0, out, WLM_CASE_NAME);
  return 1;
}

static void keep(double value, double *extreme, char name[], const char *matrix, double n) {
  *extreme = value;
  snprintf(name, WLM_CASE_NAME + 48, "%s, N = %.0f", matrix, n);
}

void wlmi_figure_add(wlmi_figure *figure, double value, const char *matrix, double n) {
  if (!(value > 0)) return;
  const int first = !figure->count++;
  figure->log_sum += log(value);
  if (first || value < figure->least) keep(value, &figure->least, figure->least_case, matrix, n);
  if (first || value > figure->greatest) keep(value, &figure->greatest, figure->greatest_case, matrix, n);
}

double wlmi_figure_mean(const wlmi_figure *figure) {
  return figure->count ? exp(figure->log_sum / figure->count) : NAN;
}

void wlmi_figure_list_add(wlmi_figure_list *ranked, int greatest_is_worst, double value, const char *matrix, double n) {
  if (!(value > 0)) return;
  wlmi_figure_add(&ranked->all, value, matrix, n);
  int place = ranked->worst_count;
  while (place && (greatest_is_worst ? value > ranked->worst[place - 1].value : value < ranked->worst[place - 1].value))
    place--;
  if (place == WLM_WORST) return;
  ranked->worst_count += ranked->worst_count < WLM_WORST;
  memmove(&ranked->worst[place + 1], &ranked->worst[place],
          (size_t)(ranked->worst_count - place - 1) * sizeof *ranked->worst);
  keep(value, &ranked->worst[place].value, ranked->worst[place].name, matrix, n);
}

void wlmi_figure_list_put(const wlmi_figure_list *ranked, int most, FILE *out) {
  for (int i = 0; i < ranked->worst_count && i < most; i++)
    fprintf(out, "%s %.2fx (%s)", i ? "," : "", ranked->worst[i].value, ranked->worst[i].name);
}

void wlmi_put_us(FILE *out, double us) {
  if (isfinite(us))
    fprintf(out, " %.1f |", us);
  else
    fputs(" - |", out);
}

void wlmi_put_ratio(FILE *out, double ratio) {
  if (isfinite(ratio))
    fprintf(out, " %.2fx |", ratio);
  else
    fputs(" - |", out);
}

/* ---- a line of suite core ---- */

static const char *const ways[] = {"default_nopre", "alg1_nopre", "alg2_nopre", "alg3_nopre",
                                   "default",       "alg1",       "alg2",       "alg3"};
enum { PLAIN_WAYS = 4, WAYS = 8 };

static double best_of(const char *line, int count, const char **who) {
  const char *cusparse = wlmi_line_value(line, "cusparse");
  double best = NAN;
  *who = "-";
  for (int i = 0; i < count; i++) {
    double us = wlmi_line_number(cusparse, ways[i]);
    if (!(us > 0) || us >= best) continue;
    best = us;
    *who = ways[i];
  }
  return best;
}

wlm_status wlmi_core_case_read(const char *line, wlmi_core_case *out) {
  *out = (wlmi_core_case){.rows = wlmi_line_number(line, "rows"),
                          .nnz = wlmi_line_number(line, "nnz"),
                          .n = wlmi_line_number(line, "n"),
                          .us = wlmi_line_number(line, "us"),
                          .prepared_us = wlmi_line_number(line, "prepared_us"),
                          .prepare_us = wlmi_line_number(line, "prepare_us"),
                          .chosen_us = wlmi_line_number(line, "chosen_us"),
                          .ge_spmm_us = wlmi_line_number(line, "ge_spmm_us"),
                          .default_us = wlmi_line_number(wlmi_line_value(line, "cusparse"), "default_nopre"),
                          .gather_gbs = wlmi_line_number(line, "gather_gbs"),
                          .openmp_us = wlmi_line_number(line, "openmp"),
                          .graphblas_us = wlmi_line_number(line, "graphblas")};
  out->plain_us = best_of(line, PLAIN_WAYS, &out->plain_way);
  out->best_us = best_of(line, WAYS, &out->best_way);
  wlmi_line_string(line, "prepared_variant", out->prepared_variant);
  if (out->us > 0 && out->n > 0 && wlmi_line_string(line, "matrix", out->matrix) &&
      wlmi_line_string(line, "variant", out->variant))
    return WLM_OK;
  return wlmi_fail(WLM_ERR_PARSE, "is no line of a results file: matrix, n, us and variant are needed");
}
