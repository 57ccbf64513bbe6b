#include "bench/presample.h"

#include "core/base/memory.h"
#include "core/problem/sampling.h"

static void copy_row(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed, int64_t row,
                     wlmi_csr_host *kept) {
  const int64_t begin = a->rowptr[row], to = kept->rowptr[row];
  const wlmi_row_sample sample = wlmi_row_sample_of(&problem->sampling, seed, row, a->rowptr[row + 1] - begin);
  for (int64_t k = 0; k < sample.kept; k++) {
    const int64_t from = begin + wlmi_sample_position(&sample, k);
    kept->colind[to + k] = a->colind[from];
    if (kept->values) kept->values[to + k] = a->values[from];
  }
}

wlm_status wlmi_presample(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed, wlmi_csr_host *kept) {
  wlm_status status;
  *kept = (wlmi_csr_host){.rows = a->rows, .cols = a->cols};
  WLM_TRY(wlmi_alloc_array(a->rows + 1, sizeof *kept->rowptr, "kept rowptr", (void **)&kept->rowptr));
  kept->rowptr[0] = 0;
  for (int64_t row = 0; row < a->rows; row++)
    kept->rowptr[row + 1] =
        kept->rowptr[row] +
        wlmi_sample_kept(problem->sampling.sample, a->rowptr[row + 1] - a->rowptr[row], problem->sampling.width);
  kept->nnz = kept->rowptr[a->rows];
  WLM_TRY(wlmi_alloc_array(kept->nnz, sizeof *kept->colind, "kept colind", (void **)&kept->colind));
  if (a->values) WLM_TRY(wlmi_alloc_array(kept->nnz, sizeof *kept->values, "kept values", (void **)&kept->values));
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t row = 0; row < a->rows; row++) copy_row(a, problem, seed, row, kept);
done:
  if (status != WLM_OK) wlmi_csr_host_release(kept);
  return status;
}
