/* Whether a compiled kernel is worth a measurement, by what it takes of a multiprocessor. */
#ifndef WLM_TUNER_KERNEL_FIT_H
#define WLM_TUNER_KERNEL_FIT_H

#include "common/text.h"
#include "runtime/dispatch/device.h"

/* Appends why it is not, nothing where it is: no block fits, or, where others are `spared` of that, its threads keep
 * so much in memory for want of registers that it cannot be among the best. */
void wlmi_kernel_refusal(const wlmi_kernel_facts *facts, unsigned int threads, int spared, wlmi_text *reason);
/* Whether threads keep that much in memory. */
int wlmi_kernel_spills(const wlmi_kernel_facts *facts);

#endif
