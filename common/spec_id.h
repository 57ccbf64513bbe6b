/* Hashes that tell problems apart while a process lives; the store has wlmi_spec_key. */
#ifndef WLM_COMMON_SPEC_ID_H
#define WLM_COMMON_SPEC_ID_H

#include "common/hash.h"
#include "common/spec.h"

/* Identifies everything of a problem and of a matrix's types that a decision and its kernels depend on. */
wlmi_hash wlmi_problem_id(const wlm_problem *problem, const wlm_csr *csr);
/* Everything that candidates, sources and launches depend on besides the device: all of the above but expected_calls.
 */
wlmi_hash wlmi_spec_id(const wlmi_spec *spec);

#endif
