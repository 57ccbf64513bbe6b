/* Runs a suite: every matrix at every width, one after the other, each case kept as it ends. */
#ifndef WLM_BENCH_RUN_H
#define WLM_BENCH_RUN_H

#include "bench/case.h"
#include "bench/suite_file.h"

typedef struct wlmi_run_options {
  const char *device, *database; /* as of wlm_context_options */
  const char *out;               /* results file, NULL = none; cases that it has are skipped */
  const char *data;              /* folder of matrices; may be NULL */
  int64_t widths[WLM_MAX_WIDTHS];
  int width_count; /* 0 = those of the suite's file */
  char **inputs;
  int input_count;       /* 0 = those of the suite's file */
  double budget_seconds; /* no case is begun after; 0 = no limit */
  int samples;           /* 0 = as many as the suite takes */
  uint64_t seed;
} wlmi_run_options;

/* 1 where all that was begun went well, also where the budget left some for later, which is told. 0 after messages on
 * stderr; a case that fails does not stop the rest. */
int wlmi_run_suite(const wlmi_bench_suite *suite, const wlmi_run_options *options);

#endif
