/* Samples the rows of a matrix in advance. A kernel without sampling then computes the sampled product from the result.
 */
#pragma once

#include "core/csr/csr.h"

/* The matrix of the edges that the problem uses with that seed, in the order of use; an edge that is used several times
 * appears as often. Release with wlmi_csr_host_release. */
wlm_status wlmi_presample(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed, wlmi_csr_host *kept);

/* How each edge of A takes part in the sampled product: nnz shares in the order of colind. Of A only rows, nnz and
 * rowptr are read. The factor is that of the norm; for an SDDMM with mean it includes the division. Release with
 * wlmi_free. */
wlm_status wlmi_sample_shares(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed,
                              wlmi_edge_share **shares);
