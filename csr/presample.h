/* The matrix that is left of another when its rows are sampled beforehand: what a kernel without sampling is fed in
 * its place. */
#ifndef WLM_CSR_PRESAMPLE_H
#define WLM_CSR_PRESAMPLE_H

#include "csr/csr.h"

/* The edges that the problem uses with that seed, in the order in which it uses them; those that it repeats stand
 * there repeatedly.
 * Release with wlmi_csr_host_release. */
wlm_status wlmi_presample(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed, wlmi_csr_host *kept);

/* The share that each edge of A has in the sampled product, nnz in the order of colind; of A only rows, nnz and rowptr
 * are read. The factor is that of the norm, and of the sddmm of a mean what the mean divides by.
 * Release with wlmi_free. */
wlm_status wlmi_sample_shares(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed,
                              wlmi_edge_share **shares);

#endif
