/* Matrix Market files, plain or compressed by gzip: coordinate; pattern, integer or real; general, symmetric
 * or skew-symmetric (expanded on reading). Integers become float, rounded to nearest. */
#ifndef WLM_MATRIX_MATRIX_MARKET_H
#define WLM_MATRIX_MATRIX_MARKET_H

#include "matrix/csr.h"

/* The detail text of a failure is "path:line: what is wrong; how to mend".
 * WLM_ERR_IO (missing file, damaged gzip data), WLM_ERR_PARSE, WLM_ERR_UNSUPPORTED (complex, array...). */
wlm_status wlm_matrix_market_read(const char *path, wlm_csr_host *out);

#endif
