/* Coordinates to CSR on the host. */
#pragma once

#include "core/base/status.h"

/* wlm_csr_from_coo for checked arguments whose arrays are in host memory. */
void wlmi_coo_to_csr(const wlm_coo *coo);
