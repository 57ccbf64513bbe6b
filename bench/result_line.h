/* Reads lines of results files back. */
#ifndef WLM_BENCH_RESULT_LINE_H
#define WLM_BENCH_RESULT_LINE_H

#include "core/base/status.h"

/* Calls `each` for the lines of a file until it fails; the error then names the file and the line. */
wlm_status wlmi_results_each(const char *path, wlm_status (*each)(void *user, const char *line), void *user);

enum { WLM_CASE_NAME = 160 };

/* Find members of a line by the text of their key; the first one counts. For members of a nested object start at
 * wlmi_line_value(line, object). */
const char *wlmi_line_value(const char *line, const char *key); /* the text after "key":, NULL where there is none */
double wlmi_line_number(const char *line, const char *key);     /* NaN where the key is absent or null */
int wlmi_line_string(const char *line, const char *key, char out[WLM_CASE_NAME]); /* 0 where there is none */

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
