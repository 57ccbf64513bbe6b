/* Makes a synthetic matrix that has the stats of a recorded one. */
#pragma once

#include "core/problem/spec.h"
#include "tuner/upload.h"

/* Makes the matrix of wlmi_stand_in_name with the types of the spec on the context's device. If the spec's problem is
 * transposed, the stats are those of A^T, and the matrix made is A. */
wlm_status wlmi_stand_in_make(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec, wlmi_upload *upload);
