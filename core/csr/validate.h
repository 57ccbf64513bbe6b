/* Checks that kernels may read the arrays of a CSR matrix. */
#pragma once

#include "core/base/status.h"
#include "templates/programs/faults.h"

/* Finds the first row whose offsets or columns are wrong. rowptr must begin with 0, ascend and end with nnz. Columns
 * behind rowptr's end are not read, so a wrong nnz does no harm. The arrays lie in host memory; rows > 0. */
void wlmi_csr_validate(const wlm_csr *csr, struct wlm_row_fault *fault);

/* WLM_ERR_INVALID_ARGUMENT with a text that says what is wrong. */
wlm_status wlmi_row_fault_status(const struct wlm_row_fault *fault, const wlm_csr *csr);
