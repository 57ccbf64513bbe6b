#include "bench/summary_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *wlm_line_value(const char *line, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *found = line ? strstr(line, quoted) : NULL;
  return found ? found + strlen(quoted) : NULL;
}

double wlm_line_number(const char *line, const char *key) {
  const char *value = wlm_line_value(line, key);
  char *end;
  double number = value ? strtod(value, &end) : NAN;
  return value && end != value ? number : NAN;
}

int wlm_line_string(const char *line, const char *key, char out[WLM_CASE_NAME]) {
  const char *value = wlm_line_value(line, key);
  size_t size = value && *value == '"' ? strcspn(value + 1, "\"") : WLM_CASE_NAME;
  if (size >= WLM_CASE_NAME) return 0;
  memcpy(out, value + 1, size);
  out[size] = 0;
  return 1;
}

static void keep(double value, double *extreme, char name[], const char *matrix, double n) {
  *extreme = value;
  snprintf(name, WLM_CASE_NAME + 48, "%s, N = %.0f", matrix, n);
}

void wlm_figure_add(wlm_figure *figure, double value, const char *matrix, double n) {
  if (!(value > 0)) return;
  const int first = !figure->count++;
  figure->log_sum += log(value);
  if (first || value < figure->least) keep(value, &figure->least, figure->least_case, matrix, n);
  if (first || value > figure->greatest) keep(value, &figure->greatest, figure->greatest_case, matrix, n);
}

double wlm_figure_mean(const wlm_figure *figure) { return figure->count ? exp(figure->log_sum / figure->count) : NAN; }
