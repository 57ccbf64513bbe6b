/* The matrix that is left of another when its rows are sampled beforehand: what a kernel without sampling is fed in
 * its place. */
#ifndef WLM_CSR_PRESAMPLE_H
#define WLM_CSR_PRESAMPLE_H

#include "csr/csr.h"

/* The edges that the problem uses with that seed, in the order in which it uses them; those that it repeats stand
 * there repeatedly.
 * Release with wlmi_csr_host_release. */
wlm_status wlmi_presample(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed, wlmi_csr_host *kept);

#endif
