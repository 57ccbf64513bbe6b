/* Checks that kernels may read the arrays of a CSR matrix. */
#pragma once

#include "core/base/status.h"
#include "templates/programs/faults.h"

/* The end of a message about a wrong offset, an integer of this type: the other type, if it looks like half of a 64-bit
 * integer, as 0 behind a larger one does, or like two 32-bit ones; otherwise "". */
const char *wlmi_offset_hint(wlm_index type, int64_t offset);
/* The same about a first offset that is not the base. */
const char *wlmi_first_hint(wlm_index type, int64_t base, int64_t first);

/* Finds the first row whose offsets or columns are wrong. rowptr must begin with csr->base, ascend and end with nnz
 * more. The fault's offsets and column count from 0. Columns behind rowptr's end are not read, so a wrong nnz does no
 * harm. The arrays lie in host memory; rows > 0. */
void wlmi_csr_validate(const wlm_csr *csr, struct wlm_row_fault *fault);

/* WLM_ERR_INVALID_ARGUMENT with a text that says what is wrong. */
wlm_status wlmi_row_fault_status(const struct wlm_row_fault *fault, const wlm_csr *csr);
