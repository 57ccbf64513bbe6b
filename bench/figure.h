/* Geometric means with their extremes, and the cells of tables. */
#ifndef WLM_BENCH_FIGURE_H
#define WLM_BENCH_FIGURE_H

#include <stdio.h>

#include "bench/result_line.h"

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

#endif
