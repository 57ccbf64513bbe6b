/* Matrix Market files, plain or compressed by gzip: coordinate; pattern, integer or real; general, symmetric
 * or skew-symmetric (expanded on reading). Integers become float, rounded to nearest. */
#pragma once

#include "core/csr/csr.h"
#include "core/csr/lines.h"

/* Reads the file once, from its begin to its end. `check` (NULL = none) may refuse the size. The detail text of a
 * failure is "path:line: what is wrong; what to do". WLM_ERR_IO (missing file, damaged gzip data), WLM_ERR_PARSE,
 * WLM_ERR_UNSUPPORTED (complex, array...). */
wlm_status wlmi_matrix_market_parse(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out);
