/* Coordinates to CSR on the host. */
#ifndef WLM_CSR_COO_H
#define WLM_CSR_COO_H

#include "core/base/status.h"

/* wlm_csr_from_coo for checked arguments whose arrays are in host memory. */
void wlmi_coo_to_csr(const wlm_coo *coo);

#endif
