/* Suite "foundation": every candidate for a plain fp32 sum, GE-SpMM as published, what the dispatcher chooses, and
 * cuSPARSE, on one matrix at one width. */
#ifndef WLM_BENCH_FOUNDATION_H
#define WLM_BENCH_FOUNDATION_H

#include "common/text.h"
#include "tuner/upload.h"

typedef struct wlm_bench_case {
  wlm_context *context;
  const wlm_upload *upload; /* with values */
  const char *matrix;       /* name */
  int64_t n;
  int samples; /* of every reported time */
  uint64_t seed;
} wlm_bench_case;

extern const char wlm_foundation_name[];
extern const char wlm_foundation_heading[]; /* of the rows below */

/* One JSON line for the results file and one row of the table for people. */
wlm_status wlm_foundation_run(const wlm_bench_case *bench, wlm_text *line, wlm_text *row);

#endif
