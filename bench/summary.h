/* Reports on results files: tables and plots. */
#ifndef WLM_BENCH_SUMMARY_H
#define WLM_BENCH_SUMMARY_H

#include "bench/figure.h"
#include "bench/result_line.h"
#include "cli/report.h"

/* A Markdown table of the cases, then geometric means and worst cases over all of them. WLM_ERR_PARSE names the line.
 */
wlm_status wlmi_bench_summary(const char *path, FILE *out);
/* Writes the same text as JSON; modifies `markdown`. */
void wlmi_summary_json(char *markdown, wlmi_report *report);
/* Speed-up of every case over the best of cuSPARSE, against non-zeros a row and against N, drawn by gnuplot to
 * PREFIX.svg and PREFIX.png. WLM_ERR_NOT_FOUND where there is no gnuplot, WLM_ERR_PARSE names a line. */
wlm_status wlmi_bench_plot(const char *path, const char *prefix);

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

#endif
