/* Makes a problem from its key. */
#pragma once

#include "core/problem/spec.h"

/* The spec with this key and n columns. What the key leaves out (alpha, epilogue, seed) has its default.
 * WLM_ERR_UNSUPPORTED for a key that this version would not write. */
wlm_status wlmi_spec_from_key(const char *key, int64_t n, wlmi_spec *spec);

/* What stands behind the operator in a key, ",dense=..."; NULL in another text. */
const char *wlmi_key_types(const char *key);
