/* Converts coordinates to CSR on a CUDA device with the program of wlmi_generator_coo. */
#pragma once

#include "runtime/dispatch/device.h"

/* Bytes of scratch that wlmi_coo_enqueue needs, aligned to 256; 0 where there is nothing to sort. */
wlm_status wlmi_coo_scratch_size(const wlm_coo *coo, size_t *size);

/* No malloc and no sync, so it can be captured in a graph. Behaves as wlm_csr_from_coo, which has checked the
 * arguments. */
wlm_status wlmi_coo_enqueue(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlm_coo *coo,
                            void *scratch);
