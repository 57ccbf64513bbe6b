/* Reports on results files: tables and plots, reading lines back, and geometric means with their extremes. */
#ifndef WLM_BENCH_SUMMARY_H
#define WLM_BENCH_SUMMARY_H

#include <stdint.h>
#include <stdio.h>

#include "cli/report.h"
#include "core/base/status.h"

/* A Markdown table of the cases, then geometric means and worst cases over all of them. WLM_ERR_PARSE names the line.
 */
wlm_status wlmi_bench_summary(const char *path, FILE *out);
/* Writes the same text as JSON; modifies `markdown`. */
void wlmi_summary_json(char *markdown, wlmi_report *report);
/* Speed-up of every case over the best of cuSPARSE, against non-zeros a row and against N, drawn by gnuplot to
 * PREFIX.svg and PREFIX.png. WLM_ERR_NOT_FOUND where there is no gnuplot, WLM_ERR_PARSE names a line. */
wlm_status wlmi_bench_plot(const char *path, const char *prefix);

/* Calls `each` for the lines of a file until it fails; the error then names the file and the line. */
wlm_status wlmi_results_each(const char *path, wlm_status (*each)(void *user, const char *line), void *user);

/* The summary of the results files of one suite. */
typedef struct wlmi_summary {
  const char *suite;
  const char *heading; /* of a Markdown table */
  size_t state_size;   /* bytes, zero at first */
  /* Writes a line of the file as a row of the table. WLM_ERR_PARSE if it is not a line of this suite. */
  wlm_status (*add)(const char *line, void *state, FILE *out);
  void (*finish)(const void *state, int64_t lines, FILE *out); /* writes the text below the table */
} wlmi_summary;

extern const wlmi_summary wlmi_summary_core, wlmi_summary_papers, wlmi_summary_sampled, wlmi_summary_operators,
    wlmi_summary_selection, wlmi_summary_minibatch, wlmi_summary_dispatch;

enum { WLM_CASE_NAME = 160 };

/* Find members of a line by the text of their key; the first one counts. For members of a nested object start at
 * wlmi_line_value(line, object). */
const char *wlmi_line_value(const char *line, const char *key); /* the text after "key":, NULL where there is none */
double wlmi_line_number(const char *line, const char *key);     /* NaN where the key is absent or null */
int wlmi_line_string(const char *line, const char *key, char out[WLM_CASE_NAME]); /* 0 where there is none */

typedef struct wlmi_figure {
  double log_sum, least, greatest;
  int count;
  char least_case[WLM_CASE_NAME + 48], greatest_case[WLM_CASE_NAME + 48]; /* "cora, N = 32" */
} wlmi_figure;

void wlmi_figure_add(wlmi_figure *figure, double value, const char *matrix,
                     double n);                     /* values that are not above 0 are left out */
double wlmi_figure_mean(const wlmi_figure *figure); /* NaN of nothing */

/* A figure with its worst cases, which have the least or the greatest values. */
enum { WLM_WORST = 10 };
typedef struct wlmi_figure_list {
  wlmi_figure all;
  int worst_count;
  struct wlmi_worst {
    double value;
    char name[WLM_CASE_NAME + 48];
  } worst[WLM_WORST]; /* the worst first */
} wlmi_figure_list;

void wlmi_figure_list_add(wlmi_figure_list *ranked, int greatest_is_worst, double value, const char *matrix, double n);
/* " 1.20x (cora, N = 32), ..." of the worst so many */
void wlmi_figure_list_put(const wlmi_figure_list *ranked, int most, FILE *out);

/* Cells of the table, a space before and " |" behind; "-" for NaN: what a line does not have. */
void wlmi_put_us(FILE *out, double us);
void wlmi_put_ratio(FILE *out, double ratio); /* "1.20x" */

/* ---- a line of suite core, read back ---- */

/* Times in microseconds, NaN where the line has none (an algorithm refused, a device without cuSPARSE). */
typedef struct wlmi_core_case {
  char matrix[WLM_CASE_NAME], variant[WLM_CASE_NAME], prepared_variant[WLM_CASE_NAME];
  double rows, nnz, n;
  double us, prepared_us, prepare_us, chosen_us, ge_spmm_us, default_us, gather_gbs;
  /* cuSPARSE: the best of the four ways without preprocess, with which `us` is compared; and the best of all eight, for
   * `prepared_us`, because a caller that may preprocess need not, and some ways become slower. */
  double plain_us, best_us;
  const char *plain_way, *best_way;
  double openmp_us, graphblas_us; /* the host's baselines */
} wlmi_core_case;

/* WLM_ERR_PARSE if it is no such line. */
wlm_status wlmi_core_case_read(const char *line, wlmi_core_case *out);

#endif
