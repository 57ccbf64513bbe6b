/* From seconds to the records that the store keeps. */
#ifndef WLM_TUNER_MEASURED_H
#define WLM_TUNER_MEASURED_H

#include "runtime/context.h"

/* What all measurements of a problem on a matrix by this device have in common, made now; its strings are the caller's
 * and the context's. */
void wlmi_measured_begin(const wlm_context *context, const char *matrix_name, const wlm_stats *stats,
                         const char *problem, int64_t n, wlmi_measurement_record *record);
/* spread: (third quartile - first) / median. */
void wlmi_measured_time(wlmi_measurement_record *record, double seconds, double spread, int samples, int64_t calls);

int64_t wlmi_picoseconds(double seconds); /* 1 at least */

#endif
