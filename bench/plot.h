/* A results file as pictures. */
#ifndef WLM_BENCH_PLOT_H
#define WLM_BENCH_PLOT_H

#include "common/text.h"

/* Speed-up of every case over the best of cuSPARSE, against non-zeros a row and against N, drawn by gnuplot to
 * PREFIX.svg and PREFIX.png. WLM_ERR_NOT_FOUND where there is no gnuplot, WLM_ERR_PARSE names a line. */
wlm_status wlmi_bench_plot(const char *path, const char *prefix);

#endif
