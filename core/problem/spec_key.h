/* Makes a problem from its key. */
#pragma once

#include "core/base/hash.h"
#include "core/problem/spec.h"

/* The spec with this key and n columns. What the key leaves out (alpha, epilogue, seed) has its default.
 * WLM_ERR_UNSUPPORTED for a key that this version would not write; WLM_ERR_OUT_OF_MEMORY. */
wlm_status wlmi_spec_from_key(const char *key, int64_t n, wlmi_spec *spec);

/* What stands behind the operator in a key, ",dense=..."; NULL in another text. */
const char *wlmi_key_types(const char *key);

/* Hashes that identify problems within one process; the store uses wlmi_spec_key. */

/* Identifies everything of a problem and of a matrix's types that a decision and its kernels depend on. */
wlmi_hash wlmi_problem_id(const wlm_problem *problem, const wlm_csr *csr);
/* Identifies everything except the device that candidates, sources and launches depend on: all of the above but
 * expected_calls. */
wlmi_hash wlmi_spec_id(const wlmi_spec *spec);
