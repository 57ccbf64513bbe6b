/* cuSPARSE among the entrants that tuner/entrant.h times. */
#ifndef WLM_BENCH_ENTRANT_H
#define WLM_BENCH_ENTRANT_H

#include "tuner/entrant.h"

/* One of cuSPARSE's ways over the operands' memory, which must be those of an sddmm for its way.
 * *preprocess_seconds may be NULL. */
void wlmi_entrant_cusparse(const wlmi_operands *operands, int way, wlmi_entrant *entrant, double *preprocess_seconds);

#endif
