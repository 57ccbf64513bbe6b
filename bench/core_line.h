/* Writes the JSON line of suite core for one case; other suites extend it. */
#pragma once

#include "bench/baseline_cusparse.h"
#include "bench/comparison.h"

/* All methods were timed, unless they have a failure. */
typedef struct wlmi_core_result {
  const char *op; /* "sum" */
  const wlmi_bench_case *bench;
  const wlmi_comparison *comparison;
  const wlmi_method *best, *prepared, *chosen, *ge_spmm; /* NULL = there is none, or it was not timed */
  const wlmi_method *baselines;                          /* cuSPARSE's ways on a GPU, the host's baselines on the host
                                                          */
  int baseline_count;                                    /* 0 = none was timed */
  double prepare_seconds;
  double preprocess[WLMI_CUSPARSE_WAYS]; /* seconds, 0 = none */
  int64_t calls;
  const char *more; /* further members of the line; NULL = none */
} wlmi_core_result;

void wlmi_core_write_line(const wlmi_core_result *result, wlmi_text *line);
