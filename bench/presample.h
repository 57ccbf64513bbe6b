/* Samples the rows of a matrix in advance. A kernel without sampling then computes the sampled product from the result.
 */
#pragma once

#include "core/csr/csr.h"

/* The matrix of the edges that the problem uses with that seed, in the order of use; an edge that is used several times
 * appears as often. Release with wlmi_csr_host_release. */
wlm_status wlmi_presample(const wlmi_csr_host *a, const wlm_problem *problem, uint64_t seed, wlmi_csr_host *kept);
