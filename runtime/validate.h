/* wlm_matrix_validate: checks a matrix in device memory. */
#pragma once

#include "core/csr/validate.h"
#include "runtime/dispatch/device.h"

/* Checks with the kernel of WLMI_HELPER_VALIDATE; `scratch` has sizeof(struct wlm_validation) bytes. Waits for the
 * stream. rows > 0. */
wlm_status wlmi_validate_by_kernel(wlmi_device *device, void *kernel, const wlm_csr *csr, void *stream, void *scratch,
                                   struct wlm_row_fault *fault);
/* Checks on the host, with copies of rowptr and colind unless the device is the host. */
wlm_status wlmi_validate_by_host(wlmi_device *device, const wlm_csr *given, void *stream, struct wlm_row_fault *fault);
