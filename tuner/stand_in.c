#include "tuner/stand_in.h"

#include <math.h>
#include <stdio.h>

#include "core/base/memory.h"
#include "core/csr/transpose.h"
#include "core/synth/input.h"

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

wlm_status wlmi_stand_in_make(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec,
                              wlmi_upload *upload) {
  char name[WLM_STAND_IN_NAME];
  wlmi_csr_host csr = {0}, transposed = {0};
  wlm_status status;
  *upload = (wlmi_upload){.device = NULL};
  wlmi_stand_in_name(stats, name);
  WLM_TRY(wlmi_input_read(name, &csr));
  if (!spec->has_values) {
    wlmi_free(csr.values);
    csr.values = NULL;
  }
  if (spec->problem.transpose) WLM_TRY(wlmi_csr_host_transpose(&csr, &transposed));
  status = wlmi_upload_create_typed(context, spec->problem.transpose ? &transposed : &csr, spec->rowptr_type,
                                    spec->colind_type, spec->value_type, spec->problem.heads, upload);
done:
  wlmi_csr_host_release(&csr);
  wlmi_csr_host_release(&transposed);
  return status;
}
