/* Makes a synthetic matrix that has the stats of a recorded one. */
#ifndef WLM_TUNER_STAND_IN_H
#define WLM_TUNER_STAND_IN_H

#include "common/spec.h"
#include "tuner/upload.h"

enum { WLM_STAND_IN_NAME = 192 };

/* The name, as wlmi_input_read takes it, of a matrix with the rows, columns, non-zeros and longest row of the
 * statistics, and their CV as far as a generated matrix may have it. Columns are scattered: statistics know nothing of
 * them. */
void wlmi_stand_in_name(const wlm_stats *stats, char name[WLM_STAND_IN_NAME]);

/* Such a matrix with the types of the spec on the context's device. Where the spec's problem is transposed, the
 * statistics are those of the transpose, and the matrix is the one that has it. */
wlm_status wlmi_stand_in_make(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec, wlmi_upload *upload);

#endif
