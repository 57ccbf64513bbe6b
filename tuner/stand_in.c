#include "tuner/stand_in.h"

#include <math.h>
#include <stdio.h>

#include "common/memory.h"
#include "csr/transpose.h"
#include "synth/input.h"

enum { BILLION = 1000000000 };
static const double max_cv = 1000;

static int64_t at_most(int64_t value, int64_t limit) { return value < limit ? value : limit; }

/* A generated row has distinct columns, and half of them at most on average; what is denser is made uniform. */
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

/* Values stay where they are: they are any. */
static wlm_status transpose(wlmi_csr_host *csr) {
  wlm_csr pattern = WLM_CSR_INIT;
  wlmi_csr_host out = {.rows = csr->cols, .cols = csr->rows, .nnz = csr->nnz};
  int64_t *order = NULL;
  wlm_status status;
  pattern.rows = csr->rows;
  pattern.cols = csr->cols;
  pattern.nnz = csr->nnz;
  pattern.rowptr = csr->rowptr;
  pattern.colind = csr->colind;
  pattern.rowptr_type = WLM_I64;
  WLM_TRY(wlmi_alloc_array(out.rows + 1, sizeof *out.rowptr, "rowptr", (void **)&out.rowptr));
  WLM_TRY(wlmi_alloc_array(out.nnz, sizeof *out.colind, "colind", (void **)&out.colind));
  WLM_TRY(wlmi_alloc_array(out.nnz, sizeof *order, "order of the transpose", (void **)&order));
  WLM_TRY(wlmi_transpose_pattern(&pattern, out.rowptr, out.colind, order));
  out.values = csr->values;
  csr->values = NULL;
  wlmi_csr_host_release(csr);
  *csr = out;
  out = (wlmi_csr_host){0};
done:
  wlmi_free(order);
  wlmi_csr_host_release(&out);
  return status;
}

wlm_status wlmi_stand_in_make(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec,
                              wlmi_upload *upload) {
  char name[WLM_STAND_IN_NAME];
  wlmi_csr_host csr = {0};
  wlm_status status;
  *upload = (wlmi_upload){.device = NULL};
  wlmi_stand_in_name(stats, name);
  WLM_TRY(wlmi_input_read(name, &csr));
  if (!spec->has_values) {
    wlmi_free(csr.values);
    csr.values = NULL;
  }
  if (spec->problem.transpose) WLM_TRY(transpose(&csr));
  status = wlmi_upload_create_typed(context, &csr, spec->rowptr_type, spec->colind_type, spec->value_type,
                                    spec->problem.heads, upload);
done:
  wlmi_csr_host_release(&csr);
  return status;
}
