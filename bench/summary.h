/* What a results file says in short. */
#ifndef WLM_BENCH_SUMMARY_H
#define WLM_BENCH_SUMMARY_H

#include <stdio.h>

#include "common/status.h"

/* A Markdown table of the cases, then geometric means and worst cases over all of them. WLM_ERR_PARSE names the line.
 */
wlm_status wlmi_bench_summary(const char *path, FILE *out);

#endif
