/* Decides from a compiled kernel's use of resources whether it is worth a measurement. */
#pragma once

#include "core/base/text.h"
#include "runtime/dispatch/device.h"

/* Appends the reason if it is not worth it, otherwise nothing. The reason is that no block fits, or that its threads
 * spill so many registers that it cannot be among the best; the latter only if other candidates do not spill
 * (`spared`). */
void wlmi_kernel_refusal(const wlmi_kernel_facts *facts, unsigned int threads, int spared, wlmi_text *reason);
/* Whether its threads spill that much. */
int wlmi_kernel_spills(const wlmi_kernel_facts *facts);
