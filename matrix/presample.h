/* The matrix that is left of another when its rows are sampled beforehand: what a kernel without sampling is fed in
 * its place. */
#ifndef WLM_MATRIX_PRESAMPLE_H
#define WLM_MATRIX_PRESAMPLE_H

#include "matrix/csr.h"

/* The edges that the problem uses, in the order in which it uses them; those that it repeats stand there repeatedly.
 * Release with wlm_csr_host_release. */
wlm_status wlm_presample(const wlm_csr_host *a, const wlm_problem *problem, wlm_csr_host *kept);

#endif
