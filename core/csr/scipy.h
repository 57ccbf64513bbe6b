/* Matrices of scipy.sparse.save_npz: csr, csc and coo. Values become float, rounded to nearest. */
#pragma once

#include "core/csr/csr.h"
#include "core/csr/lines.h"

/* As wlmi_matrix_market_parse; errors name the array and its entry in the place of a line. */
wlm_status wlmi_scipy_parse(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out);
