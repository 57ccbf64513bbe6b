/* Finds the decision and the loaded kernels for a problem and stats, through the cache of decisions. */
#pragma once

#include "runtime/context_state.h"

typedef struct wlmi_decide_request {
  const wlm_problem *problem;
  const wlm_csr *types; /* of op(A): index and value types, and whether there are values */
  wlm_stats *stats;     /* of op(A); with a fingerprint if the matrix may have been tuned (for one-call products it is
                         * added here). Those of a batch are changed to its */
  wlmi_use use;
  const wlmi_variant *variant; /* the variant that the caller named; NULL = choose */
} wlmi_decide_request;

/* Whether a transposed product with a matrix that is used once is expected to be faster by scattering from A than by
 * building A^T. There may be no family that can scatter it. */
int wlmi_scatter_pays(const wlm_problem *problem, const wlm_csr *csr);

/* wlm_spmm runs a loaded kernel that is expected to take at most this many times the best one's time instead of
 * compiling another. */
extern const double wlmi_near_enough;
/* The same for plans that the model decides, where there is a kernel archive and policy.deterministic is 0. */
extern const double wlmi_near_enough_for_plans;

/* A batch keeps a device as busy as the block-diagonal matrix that repeats A, so kernels are chosen for that one. Turns
 * the stats of A into its. */
void wlmi_stats_of_batch(const wlm_problem *problem, wlm_stats *stats);

/* Takes the decision from the cache, or chooses, compiles and loads. Release *decided with wlmi_decided_drop.
 * WLM_ERR_NOT_FOUND for WLMI_USE_SCATTER if no family can scatter; the cache remembers that too. */
wlm_status wlmi_decide(wlm_context *context, const wlmi_decide_request *request, wlmi_decided **decided);
