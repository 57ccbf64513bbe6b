/* Block rows (BSR) to CSR on the host. */
#pragma once

#include "core/base/status.h"

/* wlm_csr_from_bsr for checked arguments whose arrays are in host memory. */
void wlmi_bsr_to_csr(const wlm_bsr *bsr);
