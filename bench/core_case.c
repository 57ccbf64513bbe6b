#include "bench/core_case.h"

#include <math.h>
#include <string.h>

static const char *const ways[] = {"default_nopre", "alg1_nopre", "alg2_nopre", "alg3_nopre",
                                   "default",       "alg1",       "alg2",       "alg3"};
enum { PLAIN_WAYS = 4, WAYS = 8 };

static double best_of(const char *line, int count, const char **who) {
  const char *cusparse = wlm_line_value(line, "cusparse");
  double best = NAN;
  *who = "-";
  for (int i = 0; i < count; i++) {
    double us = wlm_line_number(cusparse, ways[i]);
    if (!(us > 0) || us >= best) continue;
    best = us;
    *who = ways[i];
  }
  return best;
}

wlm_status wlm_core_case_read(const char *line, wlm_core_case *out) {
  *out = (wlm_core_case){.rows = wlm_line_number(line, "rows"),
                         .nnz = wlm_line_number(line, "nnz"),
                         .n = wlm_line_number(line, "n"),
                         .us = wlm_line_number(line, "us"),
                         .prepared_us = wlm_line_number(line, "prepared_us"),
                         .prepare_us = wlm_line_number(line, "prepare_us"),
                         .chosen_us = wlm_line_number(line, "chosen_us"),
                         .ge_spmm_us = wlm_line_number(line, "ge_spmm_us"),
                         .default_us = wlm_line_number(wlm_line_value(line, "cusparse"), "default_nopre"),
                         .gather_gbs = wlm_line_number(line, "gather_gbs"),
                         .openmp_us = wlm_line_number(line, "openmp"),
                         .graphblas_us = wlm_line_number(line, "graphblas")};
  out->plain_us = best_of(line, PLAIN_WAYS, &out->plain_way);
  out->best_us = best_of(line, WAYS, &out->best_way);
  wlm_line_string(line, "prepared_variant", out->prepared_variant);
  if (out->us > 0 && out->n > 0 && wlm_line_string(line, "matrix", out->matrix) &&
      wlm_line_string(line, "variant", out->variant))
    return WLM_OK;
  return wlm_fail(WLM_ERR_PARSE, "is no line of a results file: matrix, n, us and variant are needed");
}
