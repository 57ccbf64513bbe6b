#include "core/synth/stand_in_name.h"

#include <math.h>
#include <stdio.h>

enum { BILLION = 1000000000 };
static const double max_cv = 1000;

static int64_t at_most(int64_t value, int64_t limit) { return value < limit ? value : limit; }

/* Generated rows have distinct columns, on average at most half of all; a denser matrix is made uniform. */
void wlmi_stand_in_name(const wlm_stats *s, char name[WLM_STAND_IN_NAME]) {
  const int64_t rows = s->rows > 0 ? s->rows : 1, longest = at_most(s->longest, s->cols);
  const int64_t ceiling = (s->nnz + rows - 1) / rows;
  if (2 * ceiling > s->cols || (double)s->nnz > (double)rows * (double)longest) {
    snprintf(name, WLM_STAND_IN_NAME, "uniform:rows=%lld,cols=%lld,d=%lld", (long long)rows, (long long)s->cols,
             (long long)at_most((s->nnz + rows / 2) / rows, s->cols));
    return;
  }
  /* rounded up, so that rows * d is the non-zeros and not one less */
  const __int128 density = ((__int128)s->nnz * BILLION + rows - 1) / rows;
  const int64_t cv = (int64_t)(fmin(s->cv, max_cv) * 1e6 + 0.5);
  snprintf(name, WLM_STAND_IN_NAME, "synth:rows=%lld,cols=%lld,d=%lld.%09lld,cv=%lld.%06lld,longest=%lld",
           (long long)rows, (long long)s->cols, (long long)(density / BILLION), (long long)(density % BILLION),
           (long long)(cv / 1000000), (long long)(cv % 1000000), (long long)longest);
}
