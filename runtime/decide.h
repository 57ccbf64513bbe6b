/* The way from a problem and stats to loaded kernels, through the cache of decisions. */
#ifndef WLM_RUNTIME_DECIDE_H
#define WLM_RUNTIME_DECIDE_H

#include "runtime/context_state.h"

typedef struct wlmi_decide_request {
  const wlm_problem *problem;
  const wlm_csr *types; /* of op(A): index and value types, and whether there are values */
  wlm_stats *stats;     /* of op(A); with a fingerprint where the matrix may have been tuned (one call: added here) */
  wlmi_cell_use use;
  const wlmi_variant *variant; /* named by the caller; NULL = choose */
} wlmi_decide_request;

/* Whether a transposed product of a matrix that is used once is better scattered from A than gathered from an A^T that
 * is built for it; where it is, no family may be able to. */
int wlmi_scatter_pays(const wlm_problem *problem, const wlm_csr *csr);

/* From the cache, or by choosing, compiling and loading. Give *decided back by wlmi_decided_drop. WLM_ERR_NOT_FOUND for
 * WLM_CELL_SCATTER where no family can; that is remembered, too. */
wlm_status wlmi_decide(wlm_context *context, const wlmi_decide_request *request, wlmi_decided **decided);

/* Loads what was decided; for the thread that compiles in the background. */
wlm_status wlmi_decide_load(wlm_context *context, const wlm_problem *problem, const wlm_csr *types,
                            const wlmi_decision *decision, const wlmi_hash *key, wlmi_decided **decided);
/* The plan that an upgrade brought; NULL until then. */
const wlm_plan *wlmi_plan_upgraded(const wlm_plan *plan);

#endif
