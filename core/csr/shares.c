#include "core/csr/shares.h"

#include "core/base/memory.h"
#include "core/problem/sampling.h"

static double factor_of(const wlm_problem *problem, const wlmi_row_sample *sample) {
  const int is_mean = problem->operation == WLM_SDDMM && problem->reduce == WLM_MEAN;
  if (is_mean || problem->sampling.norm == WLM_NORM_KEPT) return 1 / (double)sample->kept;
  return problem->sampling.norm == WLM_NORM_UNBIASED ? (double)sample->degree / (double)sample->kept : 1;
}

/* Enumerates the edges that the forward product takes; kernels instead compute for one edge how often it is taken, so
 * this is an independent check. */
static void share_row(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed, int64_t row,
                      wlmi_edge_share *shares) {
  const int64_t begin = a->rowptr[row], end = a->rowptr[row + 1];
  const wlmi_row_sample sample = wlmi_row_sample_of(&problem->sampling, seed, row, end - begin);
  for (int64_t p = begin; p < end; p++) shares[p] = (wlmi_edge_share){0, factor_of(problem, &sample)};
  for (int64_t k = 0; k < sample.kept; k++) shares[begin + wlmi_sample_position(&sample, k)].times++;
}

wlm_status wlmi_sample_shares(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed,
                              wlmi_edge_share **shares) {
  const wlm_status status = wlmi_alloc_array(a->nnz, sizeof **shares, "shares of edges", (void **)shares);
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t row = 0; row < (status == WLM_OK ? a->rows : 0); row++) share_row(a, problem, seed, row, *shares);
  return status;
}
