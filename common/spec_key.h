/* From a problem's key back to the problem. */
#ifndef WLM_COMMON_SPEC_KEY_H
#define WLM_COMMON_SPEC_KEY_H

#include "common/spec.h"

/* The spec whose key this is, for so many columns; what the key leaves out (alpha, epilogue, seed) is as initialised.
 * WLM_ERR_UNSUPPORTED for a key that this version would not write. */
wlm_status wlmi_spec_from_key(const char *key, int64_t n, wlmi_spec *spec);

#endif
