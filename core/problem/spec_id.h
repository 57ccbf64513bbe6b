/* Hashes that identify problems within one process; the store uses wlmi_spec_key. */
#pragma once

#include "core/base/hash.h"
#include "core/problem/spec.h"

/* Identifies everything of a problem and of a matrix's types that a decision and its kernels depend on. */
wlmi_hash wlmi_problem_id(const wlm_problem *problem, const wlm_csr *csr);
/* Identifies everything except the device that candidates, sources and launches depend on: all of the above but
 * expected_calls. */
wlmi_hash wlmi_spec_id(const wlmi_spec *spec);
