#include "bench/result_line.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
