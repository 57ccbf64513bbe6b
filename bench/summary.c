/* bench summary FILE: the cases as a Markdown table and the ratios that matter. Every ratio is a time of somebody
 * else over our own from the same line, that is, from the same run; a time that a line does not have (an algorithm
 * that refused) takes no part. */
#include "bench/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

enum { NAME = 160 };

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

typedef struct figure {
  double log_sum, extreme;
  int count;
  char worst[NAME + 32];
} figure;

/* The text after the first "key": of the line, NULL where there is none. */
static const char *value_of(const char *line, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *found = strstr(line, quoted);
  return found ? found + strlen(quoted) : NULL;
}

/* NaN where the key is absent or null. */
static double number_of(const char *line, const char *key) {
  const char *value = value_of(line, key);
  char *end;
  double number = value ? strtod(value, &end) : NAN;
  return value && end != value ? number : NAN;
}

static int string_of(const char *line, const char *key, char out[NAME]) {
  const char *value = value_of(line, key);
  size_t size = value && *value == '"' ? strcspn(value + 1, "\"") : NAME;
  if (size >= NAME) return 0;
  memcpy(out, value + 1, size);
  out[size] = 0;
  return 1;
}

/* The quickest rival; `suffix` is "" or "_nopre". */
static double best_rival(const char *line, const char *suffix, const char **who) {
  double best = NAN;
  *who = "-";
  for (int i = 0; i < RIVALS; i++) {
    char key[32];
    snprintf(key, sizeof key, "%s%s", rivals[i], suffix);
    double us = number_of(line, key);
    if (!(us > 0) || us >= best) continue;
    best = us;
    *who = rivals[i];
  }
  return best;
}

/* The worst case is the least time of a rival, and the greatest of what we chose ourselves. */
static void add(figure *f, double value, int greatest, const char *matrix, double n) {
  if (!(value > 0)) return;
  f->log_sum += log(value);
  if (f->count++ && (greatest ? value <= f->extreme : value >= f->extreme)) return;
  f->extreme = value;
  snprintf(f->worst, sizeof f->worst, "%s, N = %.0f", matrix, n);
}

static wlm_status one_case(const char *line, FILE *out, figure figures[RATIOS]) {
  char matrix[NAME], variant[NAME];
  const char *plain_name, *prepared_name;
  double us = number_of(line, "us"), n = number_of(line, "n"), rows = number_of(line, "rows");
  double plain = best_rival(line, "_nopre", &plain_name), prepared = best_rival(line, "", &prepared_name);
  if (!(us > 0) || !(n > 0) || !string_of(line, "matrix", matrix) || !string_of(line, "variant", variant))
    return wlm_fail(WLM_ERR_PARSE, "is no line of a results file: matrix, n, us and variant are needed");
  const double ratios[RATIOS] = {
      [NO_PREPROCESS] = plain / us,
      [PREPROCESSED] = prepared / us,
      [DEFAULT] = number_of(line, "default_nopre") / us,
      [GE_SPMM] = number_of(line, "ge_spmm_us") / us,
      [CHOSEN] = number_of(line, "chosen_us") / us,
  };
  for (int i = 0; i < RATIOS; i++) add(&figures[i], ratios[i], i == CHOSEN, matrix, n);
  fprintf(out, "| %s | %.0f | %.1f | %.0f | `%s` | %.1f | %.1f | %.1f | %.1f (%s) | %.1f (%s) | %.2fx / %.2fx |\n",
          matrix, rows, number_of(line, "nnz") / rows, n, variant, us, number_of(line, "chosen_us"),
          number_of(line, "ge_spmm_us"), plain, plain_name, prepared, prepared_name, ratios[NO_PREPROCESS],
          ratios[PREPROCESSED]);
  return WLM_OK;
}

wlm_status wlm_bench_summary(const char *path, FILE *out) {
  figure figures[RATIOS] = {{0}};
  char *line = NULL;
  size_t capacity = 0;
  int64_t number = 0;
  wlm_status status = WLM_OK;
  FILE *file = fopen(path, "r");
  if (!file) return wlm_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
  fputs(
      "| matrix | rows | nnz/row | N | best candidate | us | chosen | GE-SpMM | cuSPARSE, no preprocess | "
      "cuSPARSE, preprocessed | cuSPARSE over ours, without / with preprocess "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|\n",
      out);
  while (status == WLM_OK && getline(&line, &capacity, file) > 0) {
    number++;
    status = one_case(line, out, figures);
    if (status != WLM_OK) wlm_fail_in(status, "%s:%lld", path, (long long)number);
  }
  fclose(file);
  free(line);
  if (status != WLM_OK) return status;
  fprintf(out, "\n%lld cases. Time over that of the best candidate, geometric mean and worst case:\n\n",
          (long long)number);
  for (int i = 0; i < RATIOS; i++)
    if (figures[i].count)
      fprintf(out, "- %s: %.2fx, %.2fx (%s)\n", ratio_texts[i], exp(figures[i].log_sum / figures[i].count),
              figures[i].extreme, figures[i].worst);
  return WLM_OK;
}
