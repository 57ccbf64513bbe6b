/* What suite core says of one case. */
#ifndef WLM_BENCH_CORE_LINE_H
#define WLM_BENCH_CORE_LINE_H

#include "bench/contest.h"
#include "bench/rival_cusparse.h"

/* The entrants are timed; one with a failure has no time. */
typedef struct wlm_core_result {
  const char *suite;
  const wlm_bench_case *bench;
  const wlm_contest *contest;
  const wlm_entrant *best, *prepared, *chosen;
  const wlm_entrant *ge_spmm; /* NULL where the device has none */
  const wlm_entrant *rivals;  /* cuSPARSE's ways on a GPU, those of the host on the host */
  int rival_count;
  double prepare_seconds;
  double preprocess[WLM_CUSPARSE_WAYS]; /* seconds, 0 = none */
  double max_rel_err;                   /* of best and prepared */
  int64_t calls;
} wlm_core_result;

void wlm_core_write_line(const wlm_core_result *result, wlm_text *line);
extern const char wlm_core_heading[];
void wlm_core_write_row(const wlm_core_result *result, wlm_text *row);

#endif
