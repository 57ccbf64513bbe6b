/* A^T of a pattern on a CUDA device, by the kernels of templates/prelude/transpose.cu.in. */
#ifndef WLM_RUNTIME_TRANSPOSE_DEVICE_H
#define WLM_RUNTIME_TRANSPOSE_DEVICE_H

#include "runtime/dispatch/device.h"

/* What wlmi_transpose_pattern makes, in device memory; `kernels` are those of the program that wlmi_generator_transpose
 * emits. Blocking; needs as much memory again while it works. */
wlm_status wlmi_transpose_on_device(wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlm_csr *csr,
                                    void *rowptr, void *colind, void *order);

#endif
