/* How the edges of a matrix take part in a sampled product. */
#pragma once

#include "core/csr/csr.h"

/* nnz shares in the order of colind. Of A only rows, nnz and rowptr are read. The factor is that of the norm; for an
 * SDDMM with mean it includes the division. Release with wlmi_free. */
wlm_status wlmi_sample_shares(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed,
                              wlmi_edge_share **shares);
