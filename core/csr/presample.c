#include "core/csr/presample.h"

#include "core/base/memory.h"
#include "core/problem/sampling.h"

static void copy_row(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed, int64_t row,
                     wlmi_csr_host *kept) {
  const int64_t begin = a->rowptr[row], degree = a->rowptr[row + 1] - begin;
  const int64_t to = kept->rowptr[row], count = kept->rowptr[row + 1] - to;
  const wlm_sample strategy = count < degree ? problem->sampling.sample : WLM_SAMPLE_NONE;
  const int64_t stride = wlmi_sample_stride(strategy, degree), shift = wlmi_sample_shift(seed, row, degree);
  for (int64_t k = 0; k < count; k++) {
    const int64_t from = begin + wlmi_sample_position(strategy, degree, k, stride, shift);
    kept->colind[to + k] = a->colind[from];
    if (kept->values) kept->values[to + k] = a->values[from];
  }
}

static double factor_of(const wlm_problem *problem, int64_t degree, int64_t kept) {
  const int is_mean = problem->operation == WLM_SDDMM && problem->reduce == WLM_MEAN;
  if (is_mean || problem->sampling.norm == WLM_NORM_KEPT) return 1 / (double)kept;
  return problem->sampling.norm == WLM_NORM_UNBIASED ? (double)degree / (double)kept : 1;
}

/* Enumerates the edges that the forward product takes; kernels instead compute for one edge how often it is taken, so
 * this is an independent check. */
static void share_row(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed, int64_t row,
                      wlmi_edge_share *shares) {
  const int64_t begin = a->rowptr[row], degree = a->rowptr[row + 1] - begin;
  const int64_t kept = wlmi_sample_kept(problem->sampling.sample, degree, problem->sampling.width);
  const wlm_sample strategy = kept < degree ? problem->sampling.sample : WLM_SAMPLE_NONE;
  const int64_t stride = wlmi_sample_stride(strategy, degree), shift = wlmi_sample_shift(seed, row, degree);
  for (int64_t p = begin; p < begin + degree; p++) shares[p] = (wlmi_edge_share){0, factor_of(problem, degree, kept)};
  for (int64_t k = 0; k < kept; k++) shares[begin + wlmi_sample_position(strategy, degree, k, stride, shift)].times++;
}

wlm_status wlmi_sample_shares(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed,
                              wlmi_edge_share **shares) {
  const wlm_status status = wlmi_alloc_array(a->nnz, sizeof **shares, "shares of edges", (void **)shares);
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t row = 0; row < (status == WLM_OK ? a->rows : 0); row++) share_row(a, problem, seed, row, *shares);
  return status;
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
