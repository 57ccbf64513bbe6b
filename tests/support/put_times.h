/* Stores times as if a tuner had measured them. Include after cmocka. */
#pragma once

#include "core/problem/spec.h"
#include "warploom/warploom.h"

/* Times of variants for a problem on a matrix with these stats: 1, 2, ... ns, of the context's device and compiler. The
 * variant `prepared`, if there is one, also has a time to prepare. */
void put_times(wlm_context *context, const char *database, const wlmi_spec *spec, const wlm_stats *stats,
               const char *const *variants, int count, const char *prepared);
