/* What a summary is, and what every one needs: reading back the lines of a results file, and geometric means with their
 * extremes. */
#ifndef WLM_BENCH_SUMMARY_PARTS_H
#define WLM_BENCH_SUMMARY_PARTS_H

#include <stdint.h>
#include <stdio.h>

#include "common/status.h"

/* Of the results files of one suite. */
typedef struct wlmi_summary {
  const char *suite;
  const char *heading; /* of a Markdown table */
  size_t state_size;   /* bytes, zero at first */
  /* A line of the file to a row of the table. WLM_ERR_PARSE if it is none of this suite's. */
  wlm_status (*add)(const char *line, void *state, FILE *out);
  void (*finish)(const void *state, int64_t lines, FILE *out); /* what is said below the table */
} wlmi_summary;

extern const wlmi_summary wlmi_summary_core, wlmi_summary_papers, wlmi_summary_sampled, wlmi_summary_operators,
    wlmi_summary_selection, wlmi_summary_minibatch, wlmi_summary_dispatch;

enum { WLM_CASE_NAME = 160 };

/* Members of a line are found by their key's text, the first one counts; for those of a nested object begin at
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
                     double n);                     /* what is not above 0 is left out */
double wlmi_figure_mean(const wlmi_figure *figure); /* NaN of nothing */

/* A figure with its worst cases, which are the least values or the greatest. */
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
