/* A line of suite core's results, read back, with what every report asks of it. */
#ifndef WLM_BENCH_CORE_CASE_H
#define WLM_BENCH_CORE_CASE_H

#include "bench/summary_parts.h"

/* Times in microseconds, NaN where the line has none (an algorithm refused, a device without cuSPARSE). */
typedef struct wlmi_core_case {
  char matrix[WLM_CASE_NAME], variant[WLM_CASE_NAME], prepared_variant[WLM_CASE_NAME];
  double rows, nnz, n;
  double us, prepared_us, prepare_us, chosen_us, ge_spmm_us, default_us, gather_gbs;
  /* cuSPARSE: the best of the four ways without preprocess, which is what `us` is held against; and the best of all
   * eight, for `prepared_us`: who may preprocess may also leave it, and some ways lose by it. */
  double plain_us, best_us;
  const char *plain_way, *best_way;
  double openmp_us, graphblas_us; /* the host's baselines */
} wlmi_core_case;

/* WLM_ERR_PARSE if it is no such line. */
wlm_status wlmi_core_case_read(const char *line, wlmi_core_case *out);

#endif
